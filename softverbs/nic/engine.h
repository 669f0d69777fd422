#ifndef SOFTVERBS_NIC_ENGINE_H_
#define SOFTVERBS_NIC_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "softverbs/nic/link.h"
#include "softverbs/nic/qp_table.h"
#include "softverbs/nic/wire.h"

namespace softverbs {

// Executes what arrives on the links. There is one driver at a time, whoever holds the progress
// lock: the loop thread when a peer rang, or an application thread that polls an empty CQ and so
// drives the NIC itself.
//
// Asleep means: published in the shared tables, every link was looked at after that, peers ring a
// doorbell for whatever they send. Awake means: somebody polls, no doorbells wanted. Whoever polls
// for a while makes the engine awake; a standby timer on the loop thread notices when the polling
// stopped and puts it to sleep properly. req_notify puts it to sleep at once.
class Engine {
 public:
  Engine(SharedTables* own, QpTable* qps)
      : own_(own), qps_(qps), simulated_(Loop::Get().Simulated()), wire_(qps, simulated_) {
    own_->sleep_epoch.store(1, std::memory_order_seq_cst);
  }

  // An application thread found nothing in a CQ.
  void Poll();
  // An application thread is about to wait for an event.
  void PrepareToSleep();
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
  class Pause {
   public:
    explicit Pause(Engine& engine) : engine_(engine) { engine_.LockForControl(); }
    ~Pause() { engine_.mutex_.unlock(); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Engine& engine_;
  };

 private:
  void LockForControl();
  // All Locked methods: with mutex_ held. Drive methods return whether there was anything to do.
  bool DriveLocked(bool all);
  bool DriveLink(Link& link);
  // Executes the packet, or parks it.
  void Dispatch(Link& link, const PacketHeader& header, const uint8_t* payload);
  // To every queue pair of the group that is attached in this process.
  void DispatchMulticast(Link& link, const PacketHeader& header, const uint8_t* payload);
  void Execute(Link& link, const PacketHeader& header, const uint8_t* payload);
  void ExecuteParked(const Wire::Packet& packet);
  void FinishLink(Link& link);
  void Refuse(Link& link, const PacketHeader& request);
  bool SendRefusals(Link& link);
  bool ResumeWaiting(Link& link);
  void WakeLocked();
  bool SleepLocked();
  void StartStandbyLocked();
  void ArmStandbyLocked();
  void Standby();
  void DropCorrupt(Link& link);

  SharedTables* const own_;
  QpTable* const qps_;
  const bool simulated_;

  std::atomic<uint32_t> polls_{0};  // by application threads; a hint, not exact
  std::atomic<int> controls_{0};    // control calls waiting for mutex_

  std::mutex mutex_;  // the progress lock
  // Guarded by mutex_.
  Wire wire_;
  std::vector<std::shared_ptr<Link>> links_;
  size_t next_link_ = 0;
  bool asleep_ = true;
  uint32_t empty_polls_ = 0;
  int spin_credit_ = 1;
  uint32_t doorbells_ = 0;
  bool standby_ = false;
  uint32_t standby_polls_ = 0;
  int64_t standby_since_ = 0;
  int64_t standby_ns_ = 0;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_ENGINE_H_
