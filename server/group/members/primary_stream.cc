// What workers do to the stream, under its mutex: append, write to the followers, and advance what
// is committed. The clock is read after completions were polled, so a lease that was valid then
// covers them.

#include "server/group/members/primary_stream.h"

#include <utility>

#include "common/rdma/queue_pair.h"

namespace gannet {

PrimaryStream::PrimaryStream(const GroupContext& context, const GroupTerms& terms,
                             uint64_t stream_id, const GroupRegister& known, const RingTail& tail,
                             LinkQueues queues)
    : context_(context),
      queues_(std::move(queues)),
      lead_(context, terms, known, tail),
      ring_(queues_.ring(), stream_id, lead_.opening().first_lsn(),
            known.configuration.epoch << 32),
      followers_(context, queues_.environments(), &ring_, &lead_) {}

bool PrimaryStream::Append(const Change& change, uint64_t position) {
  WordMutexLock lock(mutex_);
  if (!TakesChanges()) {
    takes_.store(false, std::memory_order_relaxed);
    return false;
  }
  ring_.Append(change, position);
  return true;
}

// It is small, and there are no more of them than writes that wait. So it is taken though the ring
// is full: the ring may be full because what waits behind the undone write keeps it so.
bool PrimaryStream::AppendUndo(const Change& deletion, std::span<const SessionRecord> answers,
                               uint64_t end) {
  WordMutexLock lock(mutex_);
  if (!lead_.records()) return false;
  for (const SessionRecord& answer : answers) ring_.AppendSession(answer);
  ring_.Append(deletion, end);
  return true;
}

void PrimaryStream::AppendSession(const SessionRecord& record) {
  WordMutexLock lock(mutex_);
  ring_.AppendSession(record);
}

bool PrimaryStream::BeginUpdates(UpdateLane* lane) {
  mutex_.Lock();
  if (!TakesChanges()) {
    takes_.store(false, std::memory_order_relaxed);
    mutex_.Unlock();
    return false;
  }
  ring_.BeginUpdates(lane);
  return true;
}

void PrimaryStream::EndUpdates(UpdateLane* lane) {
  ring_.EndUpdates(lane);
  mutex_.Unlock();
}

void PrimaryStream::Pump() {
  WordMutexLock lock(mutex_);
  const uint64_t before = safe_.load(std::memory_order_relaxed);
  PumpLocked();
  if (!ring_.WantsRoom() && !followers_.failed() && !OthersWaitFor(before)) return;
  if (!nudged_.exchange(true, std::memory_order_relaxed)) context_.server->WakeMember();
}

// The member's thread wakes workers that sleep until more is committed, if another worker took the
// completions.
bool PrimaryStream::OthersWaitFor(uint64_t before) const {
  return context_.workers > 1 && workers_wait() && safe_.load(std::memory_order_relaxed) != before;
}

int PrimaryStream::BeginWait() {
  waiting_workers_.fetch_add(1, std::memory_order_relaxed);
  queues_.ArmStream().IgnoreError();  // a queue that is lost fails the next WRITE
  return queues_.stream_fd();
}

void PrimaryStream::EndWait(bool slept) {
  waiting_workers_.fetch_sub(1, std::memory_order_relaxed);
  if (slept) queues_.TakeStreamEvents();
}

void PrimaryStream::PumpLocked() {
  if (ring_.keeps()) ring_.LetPublishedGo(context_.server->published());
  ring_.Fill();
  followers_.Ship();
  followers_.PollWrites();
  AdvanceCommit();
}

// The clock is read after the completions were polled (Commit::Advance says why).
void PrimaryStream::AdvanceCommit() {
  if (!lead_.membership().MayCommit()) return;
  const uint64_t safe = ring_.OnCommitted(
      lead_.commit().Advance(ring_.writer().end().lsn, lead_.lease(), context_.clocks.boot.Now()));
  if (safe != safe_.load(std::memory_order_relaxed) && !lead_.HasCopies()) [[unlikely]]
    short_commits_.fetch_add(1, std::memory_order_relaxed);
  safe_.store(safe, std::memory_order_release);
}

void PrimaryStream::TellWhetherItTakes() {
  has_copies_.store(lead_.HasCopies(), std::memory_order_relaxed);
  takes_.store(lead_.open() && TakesChanges(), std::memory_order_relaxed);
}

}  // namespace gannet
