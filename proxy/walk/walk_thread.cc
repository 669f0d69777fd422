#include "proxy/walk/walk_thread.h"

#include <chrono>
#include <iterator>
#include <optional>
#include <utility>

#include "proxy/jobs/glob.h"

namespace gannet::proxy {
namespace {

// How often connections are kept alive. A server takes a silent client for dead after --silence_ms
// (5 s by default).
constexpr std::chrono::milliseconds kTurn{200};
constexpr uint32_t kIdleTurnsMax = 25;

}  // namespace

WalkThread::~WalkThread() {
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
  }
  wakes_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void WalkThread::Begin(Operation* walk, WalkInbox* inbox) {
  {
    const MutexLock lock(mutex_);
    asked_.push_back({walk, inbox});
    if (!thread_.joinable()) thread_ = std::thread([this] { Run(); });
  }
  wakes_.notify_one();
}

std::optional<WalkThread::Asked> WalkThread::Next() GANNET_UNCHECKED_LOCKS {
  std::unique_lock<std::mutex> lock(mutex_.native());
  const auto wanted = [this]() GANNET_UNCHECKED_LOCKS { return stopping_ || !asked_.empty(); };
  // Without connections there is nothing to keep alive.
  if (walkers_.empty()) {
    wakes_.wait(lock, wanted);
  } else if (!wakes_.wait_for(lock, kTurn, wanted)) {
    return std::nullopt;
  }
  if (asked_.empty()) return Asked{nullptr, nullptr};  // stopping
  const Asked asked = asked_.front();
  asked_.pop_front();
  return asked;
}

void WalkThread::Run() {
  for (;;) {
    const std::optional<Asked> asked = Next();
    if (!asked) {
      KeepAlive();
      continue;
    }
    if (asked->walk == nullptr) return;
    Do(*asked->walk);
    asked->inbox->Put(asked->walk);
  }
}

void WalkThread::Do(Operation& walk) {
  const absl::Status status = Walk(walk);
  walk.code = status.code();
  walk.refusal = std::string(status.message());
  // The connection is made anew for the next walk.
  if (!status.ok()) walkers_.erase(walk.server);
}

// The keys that were found, and where to go on.
absl::Status WalkThread::Walk(Operation& walk) {
  absl::StatusOr<Walker*> walker = WalkerOf(walk.server);
  if (!walker.ok()) return walker.status();
  size_t bytes = 0;
  const auto take = [&](const WalkedItem& item) {
    const std::optional<std::string_view> name = walk.database.NameOf(item.key);
    if (!name || !GlobMatches(walk.key, *name)) return;
    bytes += name->size() + sizeof(std::string);
    if (bytes <= walk.room) walk.keys.emplace_back(*name);
  };
  absl::StatusOr<uint64_t> next = (*walker)->WalkPart(walk.part, take);
  if (absl::IsUnavailable(next.status())) {
    // The connection may have broken since the last walk.
    walkers_.erase(walk.server);
    walker = WalkerOf(walk.server);
    if (!walker.ok()) return walker.status();
    walk.keys.clear();
    bytes = 0;
    next = (*walker)->WalkPart(walk.part, take);
  }
  if (!next.ok()) return next.status();
  if (bytes > walk.room) {
    return absl::OutOfRangeError("too many keys match; use SCAN, or a narrower pattern");
  }
  walk.part.position = *next;
  return absl::OkStatus();
}

absl::StatusOr<Walker*> WalkThread::WalkerOf(uint32_t server) {
  Connected& connected = walkers_[server];
  connected.idle_turns = 0;
  if (connected.walker != nullptr) return connected.walker.get();
  absl::StatusOr<std::unique_ptr<Walker>> made =
      Walker::Connect(servers_[server], options_, {.reads_per_second = 0});
  if (!made.ok()) return made.status();
  connected.walker = *std::move(made);
  return connected.walker.get();
}

void WalkThread::KeepAlive() {
  for (auto it = walkers_.begin(); it != walkers_.end();) {
    Connected& connected = it->second;
    const bool keep =
        ++connected.idle_turns <= kIdleTurnsMax && connected.walker->ReadOnce(64).ok();
    it = keep ? std::next(it) : walkers_.erase(it);
  }
}

}  // namespace gannet::proxy
