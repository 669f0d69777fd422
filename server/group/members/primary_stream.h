#ifndef GANNET_SERVER_GROUP_MEMBERS_PRIMARY_STREAM_H_
#define GANNET_SERVER_GROUP_MEMBERS_PRIMARY_STREAM_H_

#include <atomic>
#include <cstdint>
#include <span>

#include "common/base/mutex.h"
#include "common/base/word_mutex.h"
#include "server/group/members/followers.h"
#include "server/group/members/group_context.h"
#include "server/group/members/leadership.h"
#include "server/group/members/link_queues.h"
#include "server/group/members/primary_ring.h"
#include "server/log/changes/change.h"
#include "server/log/changes/session_record.h"
#include "server/log/changes/update_lane.h"

namespace gannet {

// What workers and the member's thread of a primary share: the group's stream. Workers append to
// it, WRITE it into the rings of followers, and publish what is committed.
//
//   stream->Append(change, position);  // by the stream of changes
//   stream->Pump();                    // before it publishes
//   writes.Publish(stream->safe());
//
// 1. safe() tells of a position only once the completions of all whom the commit needs were polled,
//    and the lease was valid after that.
// 2. Whoever acquired safe() finds counted in short_commits() what happened up to there.
//
// Thread safety: workers call it from any thread. A mutex guards its parts, which the member's
// thread (Primary) uses while it holds that. It is taken behind the stream of changes', and nothing
// is called under it that takes others, but the register's requests.
class PrimaryStream {
 public:
  // As Primary::Create has them.
  PrimaryStream(const GroupContext& context, const GroupTerms& terms, uint64_t stream_id,
                const GroupRegister& known, const RingTail& tail, LinkQueues queues);

  // Takes the next change of the stream of changes, which ends at `position`. Returns false if it
  // must not happen now.
  bool Append(const Change& change, uint64_t position);
  // The same for a deletion that undoes waiting writes, with the answers that come before it.
  bool AppendUndo(const Change& deletion, std::span<const SessionRecord> answers, uint64_t end);
  // As ChangeConsumer has them. The lane's memory is in the ring, if there is room.
  GANNET_UNCHECKED_LOCKS bool BeginUpdates(UpdateLane* lane);
  GANNET_UNCHECKED_LOCKS void EndUpdates(UpdateLane* lane);
  // Takes a record of a session, which lies between the change before and the next one.
  void AppendSession(const SessionRecord& record);
  bool takes() const { return takes_.load(std::memory_order_relaxed); }
  // Whether as many members are in sync as writes need. A hint.
  bool has_copies() const { return has_copies_.load(std::memory_order_relaxed); }
  // WRITEs what was appended, and sees what is committed now.
  void Pump();
  // A worker is going to sleep until more is committed. Returns a descriptor that is readable when
  // WRITEs have completed. The worker must Pump between BeginWait and its sleep, and end the wait
  // when it is awake.
  int BeginWait();
  void EndWait(bool slept);
  // What ends there or before is committed. Acquire: whoever publishes it has it in all rings.
  uint64_t safe() const { return safe_.load(std::memory_order_acquire); }
  // How often something was committed while fewer members than the terms want had it.
  uint64_t short_commits() const { return short_commits_.load(std::memory_order_relaxed); }

  // The parts, for who holds the mutex.
  WordMutex& mutex() const GANNET_THREAD_ANNOTATION(lock_returned(mutex_)) { return mutex_; }
  PrimaryRing& ring() GANNET_REQUIRES(mutex_) { return ring_; }
  const PrimaryRing& ring() const GANNET_REQUIRES(mutex_) { return ring_; }
  Leadership& lead() GANNET_REQUIRES(mutex_) { return lead_; }
  const Leadership& lead() const GANNET_REQUIRES(mutex_) { return lead_; }
  Followers& followers() GANNET_REQUIRES(mutex_) { return followers_; }
  const Followers& followers() const GANNET_REQUIRES(mutex_) { return followers_; }
  void PumpLocked() GANNET_REQUIRES(mutex_);
  // The member's thread looks: a Pump that finds it needed again wakes it again.
  void OnTurn() GANNET_REQUIRES(mutex_) { nudged_.store(false, std::memory_order_relaxed); }
  // Tells workers whether changes may happen now.
  void TellWhetherItTakes() GANNET_REQUIRES(mutex_);

  // The queues of messages and of WRITEs, by which the member's thread sleeps.
  const LinkQueues& queues() const { return queues_; }
  bool workers_wait() const { return waiting_workers_.load(std::memory_order_relaxed) > 0; }

 private:
  // Whether a change may happen now.
  bool TakesChanges() const GANNET_REQUIRES(mutex_) {
    return lead_.records() && !ring_.crowded() && lead_.HasCopies();
  }
  // Whether workers sleep until more is committed than `before`, as is the case now.
  bool OthersWaitFor(uint64_t before) const GANNET_REQUIRES(mutex_);
  void AdvanceCommit() GANNET_REQUIRES(mutex_);

  const GroupContext& context_;
  const LinkQueues queues_;

  mutable WordMutex mutex_;
  Leadership lead_ GANNET_GUARDED_BY(mutex_);
  PrimaryRing ring_ GANNET_GUARDED_BY(mutex_);
  Followers followers_ GANNET_GUARDED_BY(mutex_);

  std::atomic<bool> takes_{false};          // relaxed: a hint
  std::atomic<bool> has_copies_{false};     // relaxed: a hint
  std::atomic<uint64_t> safe_{0};           // release: after the completions were polled
  std::atomic<uint64_t> short_commits_{0};  // relaxed: counted before safe_ is stored
  std::atomic<bool> nudged_{false};         // relaxed: the member's thread was asked for a Turn
  // Workers that wait for WRITEs. Counted before they Pump and afterwards sleep. So whoever Pumps
  // later, behind the mutex, sees them.
  std::atomic<uint32_t> waiting_workers_{0};
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_PRIMARY_STREAM_H_
