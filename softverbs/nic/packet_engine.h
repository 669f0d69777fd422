#ifndef SOFTVERBS_NIC_PACKET_ENGINE_H_
#define SOFTVERBS_NIC_PACKET_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "softverbs/base/mutex.h"
#include "softverbs/nic/application_watch.h"
#include "softverbs/nic/link.h"
#include "softverbs/nic/packet_executor.h"
#include "softverbs/nic/qp_table.h"

namespace softverbs {

// Decides when the packets that arrive on the links are executed, and by whom. One thread at a time
// drives the engine: the one that holds the progress lock. It is the loop thread after a peer rang
// the doorbell, or an application thread that polls an empty CQ.
//
// The engine is awake or asleep:
//
// - Awake: some thread polls, so peers send without ringing a doorbell. The engine wakes up when an
//   application thread has polled for a while, and when a thread was rung.
// - Asleep: the shared tables say so, and peers ring for each packet that they send. They ring the
//   loop thread, or the bell of an application thread that waits. req_notify puts the engine to
//   sleep at once.
//
// Who wakes whom. Three things are waited for:
//
// - Packets, by an engine that sleeps. It publishes its sleep word (shared_tables.h). The sender
//   publishes the packet (the ring's tail), then reads that word, and rings.
// - Room in a ring, by queue pairs that are noted in the link. The link sets `starving` (ring.h).
//   The peer's engine frees room (the ring's head), then takes `starving`, and if it was set rings
//   as for a packet: our engine serves the queue pairs.
// - Completions, by an application that armed its CQ. Who adds one takes the mark away, and puts an
//   event into the channel (cq/channel.h).
//
// The rule is the same for all of them, and for both sides of a link:
//
// 1. Who waits publishes that first, and then looks once more. Who has something for others
//    publishes it first, and then looks whether they wait. A full barrier lies between the two
//    steps, so one of both sees the other.
// 2. A ring is one for each sign. So who was rung takes part in the rule anew: whoever is to sleep
//    again, because it found nothing or too little, publishes the sign again and looks again.
// 3. An engine that is awake is not rung. Before it sleeps it publishes its word, and then looks at
//    all rings and at all queue pairs that wait for room. For those it asks again.
//
// Without the second, a ring for room that had just been used up was the last one, and both sides
// slept in the middle of a message that was larger than the ring. tests/model/room_model.h searches
// all orders of the three between two processes that sleep, and doorbell_model.h one process with
// its threads.
//
// An application may stop polling, and an application that armed its CQ need not wait for it. So a
// standby timer runs on the loop thread while the engine is awake or peers ring a bell. It checks
// that the application takes part, or would take part if it had a core. If not, the engine falls
// asleep, peers ring the loop thread from then on, and the timer ends. patience.h says how often
// the timer checks.
//
// Doorbells for acknowledgements are coalesced with those for answers. While an application thread
// drives an engine that is awake, an acknowledgement alone does not wake a peer that sleeps. The
// application is about to see the request, and its answer wakes the peer for both. So a request and
// its answer wake the requester once. If no answer follows, the engine rings late: at the second
// poll that finds nothing, before it goes to sleep, or when the standby timer fires.
//
// A packet to another host costs a system call, so requests that are posted one after the other are
// sent together, if that delays nobody: the application polls steadily, and others of the queue
// pair's requests are under way. They are sent at its next poll that finds nothing, or when there
// are many. If it stops polling, the standby timer sends them, within Patience::kPollsNsMax.
//
// A poll that finds nothing from another host is a system call of half a microsecond. An
// application thread that polls in vain for a while gives up its core after each poll, for the
// threads of its own session: the loop thread that fills or empties the socket, or, in tests, the
// peer. With nobody else to run, that takes as long as the poll.
class PacketEngine {
 public:
  PacketEngine(SharedTables* own, QpTable* qps)
      : own_(own), qps_(qps), simulated_(Loop::Get().Simulated()), executor_(qps, simulated_) {
    own_->sleep.store(Sleep::kFirst, std::memory_order_seq_cst);
  }

  // Drives the links. Called by an application thread that found its CQ empty.
  void Poll();
  // Puts the engine to sleep, because an application thread is about to wait for an event. Peers
  // then ring `bell`, or the loop thread if it is 0.
  void PrepareToSleep(uint32_t bell);
  // Wakes the engine and drives it. Called by an application thread after it emptied the bell's
  // descriptor, so a peer may have rung.
  void OnBell(uint32_t bell);
  // Makes peers ring the loop thread, if they ring this bell now. Nobody waits for it any more.
  void ForgetBell(uint32_t bell);
  // Leaves what was sent on this link to the application's next poll. Returns false if it may not
  // wait for that: the caller then rings. Any thread, without locks.
  bool LeaveToPoll(Link& link);
  // Executes what arrived, spins a little for more, and goes to sleep. Loop thread, after a peer
  // rang.
  void OnDoorbell();

  // Executes parked packets that need not wait any more, because a fault is over.
  void HandleParked();
  // In a simulation, returns how many queue pairs have a packet that can be executed.
  size_t SimulatedChoices();
  void RestartSimulation();
  // In a simulation, executes the oldest packet of the `choice`-th of these queue pairs. Returns
  // false if there is none.
  bool ExecuteSimulated(size_t choice, PacketHeader* executed);

  void AddLink(std::shared_ptr<Link> link);
  // Executes all packets that the peer sent, takes the link down and tells its queue pairs.
  void RemoveLink(const std::shared_ptr<Link>& link);

  // Stops the execution of packets as long as it lives. For control calls, never on the data path.
  class SV_SCOPED_CAPABILITY Pause {
   public:
    explicit Pause(PacketEngine& engine) SV_ACQUIRE(engine.mutex_) : engine_(engine) {
      engine_.LockForControl();
    }
    ~Pause() SV_RELEASE() { engine_.mutex_.unlock(); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    PacketEngine& engine_;
  };

 private:
  void LockForControl() SV_ACQUIRE(mutex_);
  // The Drive methods return true if there was anything to do.
  bool DriveLocked(bool all) SV_REQUIRES(mutex_);
  // DriveLocked for an application thread: doorbells for acknowledgements may wait.
  bool DriveForApplicationLocked(bool all) SV_REQUIRES(mutex_);
  // Rings the doorbells that acknowledgements still owe.
  void RingForAcksLocked() SV_REQUIRES(mutex_);
  // Rings the doorbells that LeaveToPoll left.
  void RingForPostsLocked() SV_REQUIRES(mutex_);
  // Publishes whether the engine sleeps, and which bell peers ring.
  void PublishLocked(bool asleep, uint32_t bell) SV_REQUIRES(mutex_);
  void WakeLocked() SV_REQUIRES(mutex_);
  // Returns true if packets still arrive. Then somebody must go on driving the engine.
  bool SleepLocked(uint32_t bell) SV_REQUIRES(mutex_);
  void StartStandbyLocked() SV_REQUIRES(mutex_);
  // The same for an engine that the application's polls woke, so nobody rings. The application may
  // have armed its CQ before it polled, and may wait from now on. So the timer looks soon.
  void StartPollStandbyLocked() SV_REQUIRES(mutex_);
  void ArmStandbyLocked(int64_t wait_ns) SV_REQUIRES(mutex_);
  void Standby(uint32_t number);
  // REQUIRES: the engine is awake, or its bell is rung.
  Patience::Found LookAtApplicationLocked() SV_REQUIRES(mutex_);
  void WatchRemoteLocked(bool on) SV_REQUIRES(mutex_);
  // Counts the application's poll. Returns true if many in a row found nothing.
  bool IsIdleLocked(bool worked) SV_REQUIRES(mutex_);

  SharedTables* const own_;
  QpTable* const qps_;
  const bool simulated_;

  std::atomic<uint32_t> polls_{0};  // polls by application threads; a hint, not exact
  std::atomic<int> controls_{0};    // control calls waiting for mutex_

  std::atomic<bool> polled_steadily_{false};  // polled_awake_, for threads without the lock
  std::atomic<bool> posts_owe_rings_{false};

  Mutex mutex_;  // the progress lock
  PacketExecutor executor_ SV_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Link>> links_ SV_GUARDED_BY(mutex_);
  size_t next_link_ SV_GUARDED_BY(mutex_) = 0;
  bool has_remote_ SV_GUARDED_BY(mutex_) = false;  // there is or was a link to another host
  bool asleep_ SV_GUARDED_BY(mutex_) = true;
  uint32_t bell_ SV_GUARDED_BY(mutex_) = 0;  // the bell that peers ring while the engine sleeps
  uint32_t empty_polls_ SV_GUARDED_BY(mutex_) = 0;
  bool acks_owe_rings_ SV_GUARDED_BY(mutex_) = false;
  uint32_t quiet_polls_ SV_GUARDED_BY(mutex_) = 0;  // empty polls since acks_owe_rings_
  uint32_t idle_polls_ SV_GUARDED_BY(mutex_) = 0;   // in a row, if there is a remote link
  int spin_credit_ SV_GUARDED_BY(mutex_) = 1;
  uint32_t doorbells_ SV_GUARDED_BY(mutex_) = 0;
  ApplicationWatch application_ SV_GUARDED_BY(mutex_);
  bool polled_awake_ SV_GUARDED_BY(mutex_) = false;    // polls woke it, and no wait since
  bool standby_ SV_GUARDED_BY(mutex_) = false;         // the timer runs
  uint32_t standby_number_ SV_GUARDED_BY(mutex_) = 0;  // which timer; older ones are ignored
  int64_t standby_due_ SV_GUARDED_BY(mutex_) = 0;      // when the timer looks
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_PACKET_ENGINE_H_
