#ifndef SOFTVERBS_NIC_ENGINE_H_
#define SOFTVERBS_NIC_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "softverbs/base/mutex.h"
#include "softverbs/base/thread_watch.h"
#include "softverbs/nic/link.h"
#include "softverbs/nic/patience.h"
#include "softverbs/nic/qp_table.h"
#include "softverbs/nic/wire.h"

namespace softverbs {

// Executes what arrives on the links. There is one driver at a time, whoever holds the progress
// lock: the loop thread when a peer rang, or an application thread that polls an empty CQ and so
// drives the NIC itself.
//
// Asleep means: published in the shared tables, every link was looked at after that, peers ring for
// whatever they send: the loop thread, or the bell of an application thread that waits. Whoever was
// rung publishes something else, then looks at every link. Awake means: somebody polls, nobody need
// be rung. Whoever polls for a while makes the engine awake; so does a thread that was rung.
// req_notify puts it to sleep at once.
//
// An application may stop polling, and one that armed its CQ need not wait. So while the engine is
// awake, or peers ring a bell, a standby timer on the loop thread looks whether the application
// takes part, or would if it had a core. When it does not, the engine falls asleep with peers
// ringing the loop thread, and the timer ends. patience.h says when it looks.
//
// A peer that sleeps is not woken for an acknowledgement alone while an application thread drives
// an engine that is awake: that thread is about to see the request, and its answer wakes the peer
// for both. If no answer follows, the ring is made up for by the second poll that finds nothing, by
// going to sleep, or by the standby timer. So a request and its answer wake the requester once.
class Engine {
 public:
  Engine(SharedTables* own, QpTable* qps)
      : own_(own), qps_(qps), simulated_(Loop::Get().Simulated()), wire_(qps, simulated_) {
    own_->sleep.store(Sleep::kFirst, std::memory_order_seq_cst);
  }

  // An application thread found nothing in a CQ.
  void Poll();
  // An application thread is about to wait for an event. Peers are to ring `bell`, 0: the loop
  // thread.
  void PrepareToSleep(uint32_t bell);
  // An application thread was rung, or may have been: it took what was in the bell's descriptor.
  void OnBell(uint32_t bell);
  // Nobody waits at this bell any more.
  void ForgetBell(uint32_t bell);
  // Loop thread: a peer rang. Works, spins a little for more, sleeps.
  void OnDoorbell();

  // Executes parked packets that need not wait any more: a fault is over.
  void HandleParked();
  // In a simulation: how many queue pairs have a packet to be executed, and execute the oldest of
  // the choice-th. False when there is none.
  size_t SimulatedChoices();
  void RestartSimulation();
  bool ExecuteSimulated(size_t choice, PacketHeader* executed);

  void AddLink(std::shared_ptr<Link> link);
  // Executes what the peer still sent, takes the link down and tells its queue pairs.
  void RemoveLink(const std::shared_ptr<Link>& link);

  // While one lives nothing is executed. For control calls; never on the data path.
  class SV_SCOPED_CAPABILITY Pause {
   public:
    explicit Pause(Engine& engine) SV_ACQUIRE(engine.mutex_) : engine_(engine) {
      engine_.LockForControl();
    }
    ~Pause() SV_RELEASE() { engine_.mutex_.unlock(); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Engine& engine_;
  };

 private:
  void LockForControl() SV_ACQUIRE(mutex_);
  // Drive methods return whether there was anything to do.
  bool DriveLocked(bool all) SV_REQUIRES(mutex_);
  // By an application thread.
  bool DriveForApplicationLocked(bool all) SV_REQUIRES(mutex_);
  // Rings where acknowledgements did not.
  void RingForAcksLocked() SV_REQUIRES(mutex_);
  bool DriveLink(Link& link) SV_REQUIRES(mutex_);
  // Executes the packet, or parks it.
  void Dispatch(Link& link, const PacketHeader& header, const uint8_t* payload) SV_REQUIRES(mutex_);
  // To every queue pair of the group that is attached in this process.
  void DispatchMulticast(Link& link, const PacketHeader& header, const uint8_t* payload)
      SV_REQUIRES(mutex_);
  void Execute(Link& link, const PacketHeader& header, const uint8_t* payload) SV_REQUIRES(mutex_);
  void ExecuteParked(const Wire::Packet& packet) SV_REQUIRES(mutex_);
  void FinishLink(Link& link) SV_REQUIRES(mutex_);
  void Refuse(Link& link, const PacketHeader& request) SV_REQUIRES(mutex_);
  bool SendRefusals(Link& link) SV_REQUIRES(mutex_);
  bool ResumeWaiting(Link& link) SV_REQUIRES(mutex_);
  // Publishes whether the engine sleeps, and whom to ring.
  void PublishLocked(bool asleep, uint32_t bell) SV_REQUIRES(mutex_);
  void WakeLocked() SV_REQUIRES(mutex_);
  // Returns true when something still arrives: the caller is not asleep then.
  bool SleepLocked(uint32_t bell) SV_REQUIRES(mutex_);
  void StartStandbyLocked() SV_REQUIRES(mutex_);
  void ArmStandbyLocked(int64_t wait_ns) SV_REQUIRES(mutex_);
  void Standby();
  // REQUIRES: the engine is awake, or its bell is rung.
  Patience::Found LookAtApplicationLocked() SV_REQUIRES(mutex_);
  void DropCorrupt(Link& link);

  SharedTables* const own_;
  QpTable* const qps_;
  const bool simulated_;

  std::atomic<uint32_t> polls_{0};  // by application threads; a hint, not exact
  std::atomic<int> controls_{0};    // control calls waiting for mutex_

  Mutex mutex_;  // the progress lock
  Wire wire_ SV_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<Link>> links_ SV_GUARDED_BY(mutex_);
  size_t next_link_ SV_GUARDED_BY(mutex_) = 0;
  bool asleep_ SV_GUARDED_BY(mutex_) = true;
  uint32_t bell_ SV_GUARDED_BY(mutex_) = 0;  // that peers ring, while asleep
  uint32_t empty_polls_ SV_GUARDED_BY(mutex_) = 0;
  bool acks_owe_rings_ SV_GUARDED_BY(mutex_) = false;
  uint32_t quiet_polls_ SV_GUARDED_BY(mutex_) = 0;  // since acks_owe_rings_, that found nothing
  int spin_credit_ SV_GUARDED_BY(mutex_) = 1;
  uint32_t doorbells_ SV_GUARDED_BY(mutex_) = 0;
  uint32_t waits_ SV_GUARDED_BY(mutex_) = 0;       // of application threads: began or ended
  ThreadWatch application_ SV_GUARDED_BY(mutex_);  // the thread that last began to poll or to wait
  Patience patience_ SV_GUARDED_BY(mutex_);
  bool standby_ SV_GUARDED_BY(mutex_) = false;         // the timer runs
  uint32_t waits_at_start_ SV_GUARDED_BY(mutex_) = 0;  // when the timer was last started
  // When it was last armed.
  int64_t standby_since_ SV_GUARDED_BY(mutex_) = 0;
  int64_t standby_cpu_ns_ SV_GUARDED_BY(mutex_) = 0;  // of application_
  uint32_t standby_polls_ SV_GUARDED_BY(mutex_) = 0;
  uint32_t standby_waits_ SV_GUARDED_BY(mutex_) = 0;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_ENGINE_H_
