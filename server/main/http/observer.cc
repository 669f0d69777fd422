// Reads what workers publish, whenever somebody asks, and the lock words once a second. Each word
// is loaded once, and that value says all that is known of its lock.

#include "server/main/http/observer.h"

#include <algorithm>
#include <utility>

#include "common/base/words.h"
#include "common/layout/lock_word.h"
#include "common/rdma/device.h"

namespace gannet {
namespace {

void AddWorker(const WorkerCounters& counters, ServerView* to) {
  for (size_t i = 0; i < to->requests.size(); ++i) to->requests[i] += counters.by_opcode[i].value();
  to->clients.hits += counters.client_hits.value();
  to->clients.misses += counters.client_misses.value();
  to->clients.reads += counters.client_reads.value();
  to->clients.by_rpc += counters.client_gets_by_rpc.value();
  for (size_t kind = 0; kind < kLatencyKinds; ++kind) {
    for (size_t bucket = 0; bucket < LatencyBucket::kCount; ++bucket) {
      to->latencies[kind][bucket] += counters.client_latencies[kind][bucket].value();
    }
  }
}

std::vector<ServerView::Rail> RailsOf(const Server& server) {
  const ServerContext& context = server.context();
  std::vector<ServerView::Rail> rails;
  if (context.rails.size() == 1) return rails;
  for (size_t i = 0; i < context.rails.size(); ++i) {
    const RailBoard::Seen seen = context.rail_board.Of(i);
    ServerView::Rail& rail =
        rails.emplace_back(ServerView::Rail{.address = context.rails[i].address.ToString(),
                                            .device = context.rails[i].device.name,
                                            .up = seen.state == RailState::kUp,
                                            .mbit_per_second = seen.mbit_per_second,
                                            .mtu_bytes = seen.mtu_bytes,
                                            .connections = context.rail_board.ConnectionsOf(i),
                                            .moved = context.rail_board.MovedTo(i),
                                            .not_moved = context.rail_board.NotMovedFrom(i)});
    for (const auto& worker : server.workers())
      rail.requests += worker->counters().rail_requests[i].value();
  }
  return rails;
}

}  // namespace

Observer::Observer(const ServerThreads* threads, Options options)
    : threads_(*threads), options_(std::move(options)), watcher_([this] { WatchLocks(); }) {}

Observer::~Observer() {
  {
    const std::lock_guard lock(stop_mutex_);
    stopping_ = true;
  }
  stop_wanted_.notify_one();
  watcher_.join();
}

void Observer::WatchLocks() {
  std::unique_lock waiting(stop_mutex_);
  while (!stop_wanted_.wait_for(waiting, kLocksEvery, [this] { return stopping_; })) {
    ServerView unused;
    MutexLock lock(mutex_);
    LookAtLocks(threads_.now().boot, &unused);
  }
}

ServerView Observer::Look() {
  const Now now = threads_.now();
  MutexLock lock(mutex_);
  if (taken_at_ == BootTime() || now.boot - taken_at_ > kAgeNsMax) {
    last_ = Take(now);
    taken_at_ = now.boot;
  }
  return last_;
}

bool Observer::Healthy() const {
  return !threads_.server().context().board.AnyOlderThan(threads_.now().boot - options_.hangs_ns);
}

std::string Observer::WhyNotReady() const {
  if (const Member* const member = threads_.server().member()) {
    return WhyMemberIsNotReady(member->Look());  // a member serves even if its disk fails
  }
  const DiskLog* disk = threads_.server().disk();
  const absl::Status taking = disk == nullptr ? absl::OkStatus() : disk->Taking();
  if (taking.ok()) return "";
  const bool later = disk->takes() == ChangeConsumer::Takes::kLater;
  return (later ? "writes wait: " : "writes are refused: ") + std::string(taking.message());
}

std::string Observer::WhatFails() const {
  const ServerTier* const tier = threads_.server().tier();
  if (tier == nullptr) return "";
  switch (tier->disk()) {
    case TierWriter::Disk::kWorks:
    case TierWriter::Disk::kSlow:
      return "";
    case TierWriter::Disk::kFull:
      return "the tier's disk is full: what should go there is evicted";
    case TierWriter::Disk::kFailed:
      return "the tier's disk has failed: what should go there is evicted";
  }
  return "";
}

ServerView Observer::Take(const Now& now) {
  const Server& server = threads_.server();
  const ServerContext& context = server.context();
  ServerView view;
  view.version = options_.version;
  view.name = std::string(NameOf(context.grant));
  view.address = options_.address;
  view.cluster = options_.cluster;
  view.group_name = options_.group;
  view.device = context.lock_rail().device.name;
  view.kind = std::string(DeviceKindName(context.lock_rail().device.kind));
  view.workers = static_cast<uint32_t>(server.workers().size());
  view.evicts = context.store.evicts();
  view.time_ms = now.server_time.ms();
  view.stats = server.Stats(now);
  for (const auto& worker : server.workers()) AddWorker(worker->counters(), &view);
  const auto uses = context.store.heap().UseByClass();
  for (size_t i = 0; i < uses.size(); ++i) view.blocks[i] = {uses[i].blocks, uses[i].bytes};
  view.connections = context.board.All();
  if (context.slow_log) {
    view.slow = context.slow_log->Entries();
    view.slow_requests = context.slow_log->count();
  }
  view.rails = RailsOf(server);
  if (const Member* const member = server.member()) view.group = member->Look();
  LookAtLocks(now.boot, &view);
  view.lock_rail_changes = context.lock_rail_changes.value();
  return view;
}

// The NIC changes the words. So each is loaded once, and that value says all that is known of its
// lock.
void Observer::LookAtLocks(BootTime now, ServerView* view) {
  const ServerContext& context = threads_.server().context();
  absl::flat_hash_map<uint32_t, Seen> seen;
  for (uint32_t index = 0; index < context.lock_words.size(); ++index) {
    const uint64_t word = LoadWord(&context.lock_words[index]);
    if (word == 0) continue;
    ++view->locks_held;
    const auto before = locks_seen_.find(index);
    const bool same = before != locks_seen_.end() && before->second.word == word;
    const BootTime since = same ? before->second.since : now;
    seen[index] = {word, since};
    const uint64_t held_ms = static_cast<uint64_t>((now - since) / kNsPerMs);
    view->longest_lock_ms = std::max(view->longest_lock_ms, held_ms);
    if (view->locks.size() == ServerView::kLocksMax) continue;
    SeenLock lock{.entry = {.lock_word = word, .index = index}, .held_ms = held_ms};
    if (const auto holder = context.connection_ids.HolderOf(LockWord(word).connection_id())) {
      lock.entry.session_id = holder->session_id;
      std::ranges::copy(holder->peer, lock.entry.peer);
    }
    const BootTime end = context.leases.Deadline({index, word});
    if (end != BootTime::Never()) {
      const int64_t left_ms = std::max<int64_t>((end - now) / kNsPerMs, 1);
      lock.entry.lease_ms = static_cast<uint32_t>(std::min<int64_t>(left_ms, UINT32_MAX));
    }
    view->locks.push_back(lock);
  }
  locks_seen_ = std::move(seen);
}

}  // namespace gannet
