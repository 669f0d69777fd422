#include "server/control/server.h"

#include <sys/random.h>
#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/nonzero_random.h"
#include "common/base/status_macros.h"
#include "common/protocol/client_report.h"
#include "common/protocol/touch.h"
#include "common/rdma/status.h"
#include "glog/logging.h"
#include "server/control/first_version.h"
#include "server/control/store_in_file.h"
#include "server/store/heat.h"

namespace gannet {
namespace {

constexpr int kEventsPerPollMax = 64;
// The pauses between two steps of tidying the store: after a step that left nothing to do, and
// after one that left some. A step takes some 2 ms, so a server with much to tidy spends up to a
// fifth of a core on it.
constexpr int64_t kTidyPeriodNs = kNsPerSecond;
constexpr int64_t kTidyAgainNs = 10 * kNsPerMs;
// The pause while the index grows, whose steps are shorter. They take up to half of a core.
constexpr int64_t kGrowAgainNs = kNsPerMs;
// The pause in a store that evicts. There, writes soon use up what a step made free.
constexpr int64_t kEvictAgainNs = kNsPerMs;
constexpr int64_t kLookPeriodNs = kNsPerSecond;

uint64_t KernelRandom() {
  uint64_t value = 0;
  // With at most 256 bytes asked for, it neither fails nor is cut short once the kernel has booted.
  CHECK_EQ(getrandom(&value, sizeof(value), 0), static_cast<ssize_t>(sizeof(value)));
  return value;
}

int64_t ProcessCpuUs() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& t) { return t.tv_sec * int64_t{1'000'000} + t.tv_usec; };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

std::span<uint64_t> WordsOf(std::span<std::byte> memory, uint64_t words) {
  return {reinterpret_cast<uint64_t*>(memory.data()), words};
}

double MsSince(int64_t start_ns) {
  return static_cast<double>(MonotonicNs() - start_ns) / kNsPerMs;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Create(const Options& options) {
  if (!options.name.empty() && !IsServerName(options.name)) {
    return absl::InvalidArgumentError(absl::StrCat("a server's name has 1 to ", kServerNameBytesMax,
                                                   " letters, digits or ._:-[], unlike \"",
                                                   options.name, "\""));
  }
  std::unique_ptr<Server> server(new Server(options));
  GANNET_ASSIGN_OR_RETURN(server->authenticator_,
                          Authenticator::Create(options.auth_file, options.wall_ms()));
  if (!server->options_.random) server->options_.random = KernelRandom;
  server->started_ns_ = ServerNs();
  server->incarnation_ = NonzeroRandom(server->options_.random);
  server->hash_seed_ = server->options_.random();
  if (server->options_.first_version == 0) {
    GANNET_ASSIGN_OR_RETURN(server->options_.first_version, FirstVersionByClock(WallNs()));
  }
  // Before the memory, which takes long: a port in use is the likelier mistake.
  GANNET_ASSIGN_OR_RETURN(server->listener_, Listener::Create(options.listen));
  server->options_.disk.of_member = options.group.has_value();
  GANNET_ASSIGN_OR_RETURN(server->disk_, ServerDisk::Open(server->options_.disk));
  if (options.answer_while_starting) {
    GANNET_ASSIGN_OR_RETURN(server->startup_answers_,
                            StartupAnswers::Start(server->listener_.get(), options.memory_bytes));
  }
  const absl::Status status = server->CreateAll();
  server->startup_answers_.reset();
  if (!status.ok()) return status;
  return server;
}

absl::Status Server::CreateAll() {
  GANNET_RETURN_IF_ERROR(CreateMemory());
  GANNET_RETURN_IF_ERROR(CreateStore());
  GANNET_RETURN_IF_ERROR(CreateWorkers());
  return options_.group ? CreateMember() : absl::OkStatus();
}

Server::~Server() {
  // Destroys the connections before the listener, whatever the order of the members.
  workers_.clear();
  member_.reset();
  move_tasks_.reset();
}

absl::Status Server::CreateMemory() {
  const Device& device = options_.device;
  const int64_t start_ns = MonotonicNs();
  pd_.reset(ibv_alloc_pd(device.verbs));
  if (pd_ == nullptr) return LastErrnoStatus("cannot allocate a protection domain");
  const auto on_ready = [this](uint64_t bytes) {
    if (startup_answers_ != nullptr) startup_answers_->AddReady(bytes);
  };
  GANNET_ASSIGN_OR_RETURN(
      region_,
      SharedMemory::Create({.name = "gannet-region",
                            .bytes = options_.memory_bytes,
                            .huge_pages = options_.huge_pages,
                            .prefault_hooks = {.on_ready = on_ready, .touch = options_.touch},
                            .file = options_.memory_file}));
  const double allocated_ms = MsSince(start_ns);
  const int64_t register_ns = MonotonicNs();
  GANNET_ASSIGN_OR_RETURN(region_mr_,
                          RegisterMemory(pd_.get(), region_->bytes(), RemoteAccess::kRead));
  lock_mode_ = options_.lock_mode.value_or(device.caps.has_atomics() ? LockMode::kNicCas
                                                                     : LockMode::kRpcServer);
  GANNET_ASSIGN_OR_RETURN(locks_,
                          SharedMemory::Create({.name = "gannet-locks",
                                                .bytes = options_.lock_words * sizeof(uint64_t),
                                                .huge_pages = HugePages::kOff,
                                                .remote_write = true}));
  const RemoteAccess lock_access =
      lock_mode_ == LockMode::kRpcServer ? RemoteAccess::kRead : RemoteAccess::kReadAtomic;
  GANNET_ASSIGN_OR_RETURN(locks_mr_, RegisterMemory(pd_.get(), locks_->bytes(), lock_access));
  LOG(INFO) << "allocated and touched " << region_->bytes().size() << " bytes in pages of "
            << region_->page_bytes() << " in " << allocated_ms << " ms, registered them and "
            << options_.lock_words << " lock words with " << device.name << " in "
            << MsSince(register_ns) << " ms";
  return absl::OkStatus();
}

// The heats are shared memory, so that a client READs them without this server's CPU, on softverbs
// too. If the server may not lock so much memory, clients cannot see the heats.
absl::Status Server::CreateHeats() {
  if (!options_.evict) return absl::OkStatus();
  GANNET_ASSIGN_OR_RETURN(heats_,
                          SharedMemory::Create({.name = "gannet-heats",
                                                .bytes = Heat::BytesFor(region_->bytes().size()),
                                                .huge_pages = HugePages::kOff}));
  auto mr = RegisterMemory(pd_.get(), heats_->bytes(), RemoteAccess::kRead);
  if (mr.ok()) {
    heats_mr_ = *std::move(mr);
  } else {
    LOG(WARNING) << "clients cannot see which keys are hot: " << mr.status().message();
  }
  return absl::OkStatus();
}

HeatsReply Server::HeatsTemplate() const {
  if (heats_mr_ == nullptr) return {};
  return {.address = reinterpret_cast<uint64_t>(heats_->bytes().data()),
          .bytes = Heat::BytesFor(region_->bytes().size()),
          .rkey = heats_mr_->rkey,
          .granule_bytes = uint16_t{Heat::kGranuleBytes},
          .used_once = Heat::kUsedOnce,
          .units_per_doubling = uint8_t{Heat::kUnitsPerDoubling},
          .most = Heat::kMost};
}

absl::Status Server::CreateStore() {
  Store::Options options;
  options.region = region_->bytes();
  options.lock_words = WordsOf(locks_->bytes(), options_.lock_words);
  options.index_slots = options_.index_slots;
  options.index_slots_min = disk_->slots_min();
  options.evict = options_.evict;
  GANNET_RETURN_IF_ERROR(CreateHeats());
  if (heats_) options.heats = heats_->bytes();
  options.index_grows = options_.index_grows;
  GANNET_ASSIGN_OR_RETURN(tidy_wanted_, WakeUp::Create());
  GANNET_ASSIGN_OR_RETURN(sync_wanted_, WakeUp::Create());
  GANNET_ASSIGN_OR_RETURN(disk_sync_wanted_, WakeUp::Create());
  options.wants_tidy = [wake_up = tidy_wanted_.get()] { wake_up->Ask(); };
  options.incarnation = incarnation_;
  options.hash_seed = hash_seed_;
  options.first_version = options_.first_version;
  options.memory_file = !options_.memory_file.empty();
  GANNET_ASSIGN_OR_RETURN(store_, CreateStoreIn(options_.memory_file, options));
  // A memory file keeps its own values, which may not be those that were asked for.
  incarnation_ = store_->superblock().incarnation;
  hash_seed_ = store_->superblock().hash_seed;
  index_generation_ = store_->index_generation();
  const IndexGeometry index = store_->superblock().index;
  LOG(INFO) << "index of " << index.slots() << " slots (" << index.bytes() << " bytes) "
            << (options_.index_grows ? "at first" : "that does not grow");
  writes_ = std::make_unique<Writes>(store_.get());
  const ServerDisk::Run run = {.store = store_.get(),
                               .writes = writes_.get(),
                               .changes = &changes_,
                               .region_bytes = region_->bytes().size(),
                               .first_version = options_.first_version,
                               .incarnation = incarnation_,
                               .wall_ms = options_.wall_ms(),
                               .random = options_.random};
  if (!options_.group) return disk_->Restore(run);
  standing_.emplace(options_.group->terms.history);
  options_.standing = &*standing_;
  options_.streams_sessions = true;
  GANNET_RETURN_IF_ERROR(disk_->OpenMember(run));
  group_stream_.UseDisk(disk_->member());
  changes_.Add(&group_stream_, ChangeStream::Need::kRequired);
  if (MemberLog* const disk = disk_->member()) {
    changes_.Add(disk, disk->always() ? ChangeStream::Need::kRequired : ChangeStream::Need::kHears);
  }
  store_->UseSink(&changes_);
  writes_->WaitFor(&changes_);
  return absl::OkStatus();
}

Grant Server::GrantTemplate() const {
  Grant grant = NewGrant();
  SetName(&grant, options_.name);
  grant.incarnation = incarnation_;
  grant.region_address = reinterpret_cast<uint64_t>(region_->bytes().data());
  grant.region_bytes = region_->bytes().size();
  grant.region_rkey = region_mr_->rkey;
  grant.lock_address = reinterpret_cast<uint64_t>(locks_->bytes().data());
  grant.lock_rkey = locks_mr_->rkey;
  grant.lock_words = static_cast<uint32_t>(options_.lock_words);
  grant.hash_seed = hash_seed_;
  grant.index = store_->superblock().index;
  grant.message_bytes_max = kMessageBytesMax;
  grant.value_bytes_max = kValueBytesMax;
  if (options_.evict) grant.features |= kGrantEvicts;
  grant.features |= kGrantTakesReports;
  grant.lock_mode = static_cast<uint8_t>(lock_mode_);
  return grant;
}

absl::Status Server::CreateWorkers() {
  shared_.device = options_.device;
  shared_.pd = pd_.get();
  shared_.listener = listener_.get();
  shared_.store = store_.get();
  shared_.writes = writes_.get();
  shared_.changes = &changes_;
  shared_.group = options_.group ? &group_stream_ : nullptr;
  shared_.wants_sync = [this] {
    sync_wanted_->Ask();
    if (group_stream_.waits_for_disk()) disk_sync_wanted_->Ask();
  };
  shared_.connection_ids = &connection_ids_;
  shared_.server_sets = &server_sets_;
  if (options_.streams_sessions) shared_.session_stream = &session_stream_.emplace(&changes_);
  shared_.log = &log_;
  shared_.board = &board_.emplace(options_.workers);
  if (options_.slow_ns > 0) shared_.slow_log = &slow_log_.emplace(options_.slow_ns, ServerNs);
  shared_.grant = GrantTemplate();
  shared_.heats = HeatsTemplate();
  shared_.region_lkey = region_mr_->lkey;
  shared_.lock_words = WordsOf(locks_->bytes(), options_.lock_words);
  shared_.leases = &leases_.emplace(shared_.lock_words, options_.workers);
  shared_.stats = [this](const Now& now) { return Stats(now); };
  shared_.storage = [this](bool snapshot, StorageReply* reply) {
    return disk_->Storage(snapshot, options_.memory_file, reply);
  };
  shared_.standing = options_.standing;
  shared_.lease_now_ns = options_.lease_now_ns;
  shared_.random = options_.random;
  shared_.idle = options_.idle;
  for (uint32_t i = 0; i < options_.workers; ++i) {
    GANNET_ASSIGN_OR_RETURN(workers_.emplace_back(),
                            Worker::Create({.index = i,
                                            .workers = options_.workers,
                                            .credits = options_.credits,
                                            .connections_max = options_.connections_max,
                                            .receives = options_.receives,
                                            .reply_buffers = options_.reply_buffers,
                                            .lock_requests_max = options_.lock_requests_max,
                                            .session_grace_ns = options_.session_grace_ns,
                                            .silence_ns_max = options_.silence_ms * kNsPerMs},
                                           &shared_));
  }
  return absl::OkStatus();
}

void Server::AddConsumer(ChangeConsumer* consumer, ChangeStream::Need need) {
  changes_.Add(consumer, need);
  store_->UseSink(&changes_);
  if (need == ChangeStream::Need::kRequired) writes_->WaitFor(&changes_);
}

bool Server::Poll(const Now& now) {
  now_ = now;
  int events = 0;
  for (; events < kEventsPerPollMax; ++events) {
    std::optional<ListenerEvent> event = listener_->Poll();
    if (!event) break;
    switch (event->type) {
      case ListenerEvent::Type::kRequest:
        OnRequest(std::move(*event->request));
        break;
      case ListenerEvent::Type::kEstablished:
        Notify(event->connection, Notice::Type::kEstablished);
        break;
      case ListenerEvent::Type::kFailed:
        LOG(WARNING) << "connection " << event->connection << ": " << event->status.message();
        Notify(event->connection, Notice::Type::kGone);
        break;
      case ListenerEvent::Type::kDisconnected:
        Notify(event->connection, Notice::Type::kGone);
        break;
      case ListenerEvent::Type::kDeviceRemoved:
        status_ =
            absl::UnavailableError(absl::StrCat("device ", options_.device.name, " was removed"));
        break;
    }
  }
  AnswerWaiting();
  if (tidy_wanted_->Take() || now.monotonic_ns >= next_tidy_ns_) TidyStore(now);
  if (now.monotonic_ns >= next_look_ns_) {
    next_look_ns_ = now.monotonic_ns + kLookPeriodNs;
    log_.connections.Poll(now.monotonic_ns);
    WarnOfDifferentSets(now);
    LookAtAuthFile();
  }
  return events > 0;
}

void Server::TidyStore(const Now& now) {
  TellOfIndex();
  bool more = store_->Tidy(now.wall_ms);
  more |= PublishEvictions();
  const int64_t again_ns = store_->growing()  ? kGrowAgainNs
                           : store_->evicts() ? kEvictAgainNs
                                              : kTidyAgainNs;
  const int64_t rest_ns = store_->NearlyFull() ? kTidyAgainNs : kTidyPeriodNs;
  next_tidy_ns_ = now.monotonic_ns + (more ? again_ns : rest_ns);
  StatsReply stats{};
  store_->FillStats(&stats);
  const FullLog::Lines lines = full_log_.Report(stats, now.monotonic_ns);
  if (lines.heap) LOG(WARNING) << *lines.heap;
  if (lines.index) LOG(WARNING) << *lines.index;
}

// Whoever waits for room has no answer that waits, so no worker publishes for it.
bool Server::PublishEvictions() {
  if (!writes_->evictions_wait()) return false;
  writes_->Publish(changes_.safe());
  if (!writes_->evictions_wait()) return false;
  shared_.wants_sync();
  return true;
}

void Server::LookAtAuthFile() {
  const bool asked = reload_asked_.exchange(false, std::memory_order_relaxed);
  const auto keys = authenticator_->Look(asked);
  if (!keys) return;
  if (keys->ok()) {
    LOG(INFO) << "read " << options_.auth_file << " again: " << **keys << " keys";
  } else {
    LOG(ERROR) << "the keys stay as they were: " << keys->status().message();
  }
}

// Tells the store which indexes clients may still READ, and tells the workers of a new one.
void Server::TellOfIndex() {
  uint64_t generation = UINT64_MAX;
  for (const auto& worker : workers_) {
    generation = std::min(generation, worker->counters().index_generation.value());
  }
  store_->Acknowledge(generation);
  if (index_generation_ == store_->index_generation()) return;
  index_generation_ = store_->index_generation();
  Notify(0, Notice::Type::kIndexChanged);
  const IndexGeometry index = store_->superblock().index;
  LOG(INFO) << "the index has " << index.slots() << " slots now (" << index.bytes() << " bytes)";
}

void Server::WarnOfDifferentSets(const Now& now) {
  const auto different = server_sets_.Different();
  if (!different || !log_.different_sets.Allow(now.monotonic_ns)) return;
  LOG(WARNING) << "clients have different lists of servers, " << different->first << " and "
               << different->second
               << " for example: what one of them stores the other may look for at another server, "
                  "and not find. Start all clients with the same list";
}

void Server::BeginStop() {
  stopping_ = true;
  for (const auto& worker : workers_) worker->inbox().PutClose();
}

StatsReply Server::Stats(const Now& now) const {
  StatsReply stats{};
  store_->FillStats(&stats);
  if (disk() != nullptr) disk()->FillStats(&stats);
  for (const auto& worker : workers_) {
    const WorkerCounters& counters = worker->counters();
    stats.rpcs += counters.rpcs.value();
    stats.heartbeats += counters.heartbeats.value();
    stats.sessions += counters.sessions.value();
    stats.connections += counters.connections.value();
    stats.locks_broken += counters.locks_broken.value();
    stats.locks_expired += counters.locks_expired.value();
    stats.session_bytes += counters.session_bytes.value();
    stats.reply_posts += counters.reply_posts.value();
    stats.receive_posts += counters.receive_posts.value();
    stats.send_completions += counters.send_completions.value();
    stats.refused_connections += counters.refused_connections.value();
    stats.refused_requests += counters.refused_requests.value();
  }
  stats.refused_connections += refused_connections_.value();
  stats.cpu_us = static_cast<uint64_t>(ProcessCpuUs());
  stats.uptime_ms = static_cast<uint64_t>((now.monotonic_ns - started_ns_) / kNsPerMs);
  return stats;
}

}  // namespace gannet
