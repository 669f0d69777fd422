// Looks at the lock rail's port while it serves, and at the workers while it changes. Each step is
// taken by a Poll that finds what it waits for.

#include "server/main/control/lock_rail.h"

#include <span>
#include <utility>

#include "common/base/status_macros.h"
#include "common/protocol/rails_reply.h"
#include "common/rdma/alternate_paths.h"
#include "common/rdma/port.h"
#include "glog/logging.h"

namespace gannet {

LockRail::LockRail(const ServerWorkers& workers, LockMemory first, int64_t silence_ns)
    : workers_(workers), context_(workers.context()), life_(silence_ns) {
  words_.push_back({std::move(first)});
}

void LockRail::Poll(BootTime now) {
  if (now < due_) return;
  due_ = now + (life_.state() == LockRailState::kServes ? kLookNs : kStepNs);
  switch (life_.state()) {
    case LockRailState::kServes:
      LookDead(now);
      break;
    case LockRailState::kEnds:
      LookKnown(now);
      break;
    case LockRailState::kWaits:
      LookServe(now);
      break;
  }
  Deregister();
}

// The board's ports are up to a second old. One that is back would be taken for dead by them.
bool LockRail::IsUp(uint32_t rail) const {
  const Rail& it = context_.rails[rail];
  return !context_.rail_board.Of(rail).lost && LookAtPort(it.device.verbs, it.port).up;
}

bool LockRail::MaySwap(uint32_t rail) const {
  ibv_context* const verbs = context_.rails[rail].device.verbs;
  if (IsUp(rail)) return true;
  if (!HasAlternatePaths(verbs)) return false;
  for (uint32_t other = 0; other < context_.rails.size(); ++other) {
    if (context_.rails[other].device.verbs == verbs && IsUp(other)) return true;
  }
  return false;
}

bool LockRail::SwapsWork() const {
  return All([this](const LockRailProgress& of) { return of.failed() != message_; });
}

void LockRail::LookDead(BootTime now) {
  const LockRailLife::Seen seen{.port_up = MaySwap(rail_), .swaps = SwapsWork()};
  if (!life_.LookDead(seen, now)) return;
  if (const absl::Status status = End(); !status.ok()) {
    LOG(ERROR) << "the lock rail is dead, and its locks go on: " << status.message();
    due_ = now + kRetryNs;
    return;
  }
  life_.End();
  died_at_ = now;
  due_ = now;
  LOG(WARNING) << "the lock rail, " << context_.rails[rail_].address.ToString() << " on "
               << context_.rails[rail_].device.name << ", is dead ("
               << (seen.port_up ? "its device swaps no words" : "its port is down")
               << "): all locks are lost, and none is given before another rail serves them";
}

// From here on a write under an old lock finds a free word, and is refused.
absl::Status LockRail::End() {
  GANNET_ASSIGN_OR_RETURN(LockMemory next, LockMemory::Create(context_.lock_words.size()));
  const std::span<const uint64_t> lost = words_.back().memory.words();
  words_.back().lost_by = ++message_;
  context_.store.lock_words().MoveTo(next.words());
  words_.push_back({std::move(next)});
  for (const auto& worker : workers_.all()) {
    worker->inbox().PutLocks({.number = message_, .place = {}, .cas = nullptr, .lost = lost});
  }
  return absl::OkStatus();
}

void LockRail::LookKnown(BootTime now) {
  if (!All([this](const LockRailProgress& of) { return of.known() == message_; })) return;
  life_.OnAllKnow(context_.leases.Last(), now);
  context_.leases.Clear();
}

void LockRail::LookServe(BootTime now) {
  const bool gone = All([this](const LockRailProgress& of) { return of.gone() == message_; });
  if (!gone) workers_.Wake();  // so that they look, too
  if (gone && life_.free_at() > now) due_ = std::min(life_.free_at(), now + kRetryNs);
  if (!life_.MayServe(gone, now)) return;
  if (next_) return LookConnected(now);
  const auto rails = static_cast<uint32_t>(context_.rails.size());
  while (tried_ < rails) {
    const uint32_t rail = (rail_ + ++tried_) % rails;
    if (!IsUp(rail) || !context_.rails[rail].device.caps.has_atomics()) continue;
    const absl::Status status = BeginServe(rail);
    if (status.ok()) return;
    GiveUpNext(status);
  }
  tried_ = 0;
  due_ = now + kRetryNs;
}

absl::Status LockRail::BeginServe(uint32_t rail) {
  const Rail& by = context_.rails[rail];
  LockMemory& memory = words_.back().memory;
  next_ = {.rail = rail, .place = {}, .made = {}};
  GANNET_RETURN_IF_ERROR(memory.Register(by.pd, RemoteAccess::kReadAtomic));
  next_->place = {.rail = rail, .address = memory.address(), .rkey = memory.rkey()};
  for (size_t i = 0; i < workers_.all().size(); ++i) {
    GANNET_ASSIGN_OR_RETURN(next_->made.emplace_back(),
                            LoopbackLockCas::Begin(by.device, {.pd = by.pd,
                                                               .address = next_->place.address,
                                                               .rkey = next_->place.rkey,
                                                               .device_address = by.address,
                                                               .idle = context_.idle}));
  }
  return absl::OkStatus();
}

void LockRail::LookConnected(BootTime now) {
  bool all = true;
  for (const auto& cas : next_->made) {
    const absl::StatusOr<bool> connected = cas->LookConnected();
    if (!connected.ok()) return GiveUpNext(connected.status());
    all &= *connected;
  }
  if (all) Serve(now);
}

// The next Poll tries the next rail.
void LockRail::GiveUpNext(const absl::Status& why) {
  LOG(ERROR) << context_.rails[next_->rail].device.name
             << " cannot swap lock words: " << why.message();
  for (const auto& cas : next_->made) cas->BeginDrain();  // or it would block until it is flushed
  next_.reset();
}

void LockRail::Serve(BootTime now) {
  rail_ = next_->rail;
  tried_ = 0;
  context_.lock_rail_number.store(rail_, std::memory_order_relaxed);
  context_.lock_rail_changes.Add(1);
  ++message_;
  for (const auto& worker : workers_.all()) {
    worker->inbox().PutLocks(
        {.number = message_, .place = next_->place, .cas = std::move(next_->made.back())});
    next_->made.pop_back();
  }
  next_.reset();
  life_.Serve();
  LOG(INFO) << context_.rails[rail_].address.ToString() << " on "
            << context_.rails[rail_].device.name << " is the lock rail, "
            << (now - died_at_) / kNsPerMs << " ms after the other was found dead";
}

void LockRail::Deregister() {
  for (Words& words : words_) {
    if (words.lost_by == 0 || !words.memory.registered()) continue;
    const auto obeyed = [&](const LockRailProgress& of) { return of.obeyed() >= words.lost_by; };
    if (All(obeyed)) words.memory.Deregister();
  }
}

}  // namespace gannet
