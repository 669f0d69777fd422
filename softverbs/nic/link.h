#ifndef SOFTVERBS_NIC_LINK_H_
#define SOFTVERBS_NIC_LINK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "softverbs/base/mutex.h"
#include "softverbs/base/spin_lock.h"
#include "softverbs/nic/bells.h"
#include "softverbs/nic/imported_regions.h"
#include "softverbs/nic/loop.h"
#include "softverbs/nic/ring.h"
#include "softverbs/nic/shared_memory.h"
#include "softverbs/nic/shared_tables.h"

namespace softverbs {

// While true, acknowledgements that this thread sends do not wake a peer that sleeps. A link owes
// the peer a ring then. The application's own answer, which usually follows, rings for both; the
// engine sees to the rest.
inline thread_local bool acks_may_wait = false;

// The wire between this process's NIC and one other's (or its own): two packet rings in shared
// memory and a control socket. There is one link for a pair of processes, whatever the number of
// queue pairs; packets are addressed by queue pair number.
//
// 1. States: connecting (no rings yet: Send says full) -> up -> down, for good. A link that goes
//    down is replaced by a new one for later connections.
// 2. Threads: Send under the transmit lock by anybody; the receiving side is the NIC's, under its
//    progress lock; the control socket is the loop thread's.
// 3. Nothing a peer writes can do more than take this link down.
class Link {
 public:
  enum class State : uint32_t { kConnecting, kUp, kDown };
  enum class SendResult { kSent, kFull, kDown, kNotFilled };

  explicit Link(uint32_t peer_slot) : peer_slot_(peer_slot) {}
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Size of the memory a link is made of.
  static size_t MemoryBytes();

  // --- Set-up and end; loop thread, or the creator before the link is visible to others.
  enum class Side { kDialer, kAcceptor, kLoopback };
  // Maps the rings and goes up. False when the memory cannot be mapped.
  bool Attach(int memory_fd, Side side);
  // The peer's tables, from its hello or welcome; for a loopback link the process's own.
  bool AttachTables(int fd);
  void AttachOwnTables(const SharedTables* tables);
  void SetSocket(UniqueFd socket);
  void SetWatch(Loop::Watch watch) { watch_ = watch; }
  // Keeps the socket of a knock (kDialMe) open as long as the link.
  void KeepKnock(UniqueFd socket) { knock_ = std::move(socket); }
  void GoDown() { state_.store(State::kDown, std::memory_order_release); }

  uint32_t peer_slot() const { return peer_slot_; }
  // Acquire pairs with the release stores of Attach and GoDown.
  State state() const { return state_.load(std::memory_order_acquire); }
  int socket() const { return socket_.get(); }
  Loop::Watch watch() const { return watch_; }
  // Null until they arrived. Acquire pairs with the release in AttachTables: it is mapped.
  const SharedTables* peer_tables() const { return tables_.load(std::memory_order_acquire); }
  ImportedRegions& regions() { return regions_; }

  // --- Transmit side.
  // Sends one packet whose payload `bool fill(uint8_t*)` writes; false: it could not, and nothing
  // is sent. When the ring is full, or not there yet, header.from_qpn is noted (unless *waiting
  // says it is already) for TakeWaiting.
  template <class Fill>
  SendResult Send(const PacketHeader& header, bool* waiting, Fill&& fill);
  SendResult Send(const PacketHeader& header, bool* waiting) {
    return Send(header, waiting, [](uint8_t*) { return true; });
  }
  // Wakes the peer's NIC if it sleeps.
  void RingDoorbell();
  bool OwesRing() const { return owes_ring_.load(std::memory_order_relaxed); }
  // A bell of the peer came, or is no more.
  void InstallBell(uint32_t bell, UniqueFd fd);
  void RetireBell(uint32_t bell);
  // The queue pairs that wait for space, if some may be there now.
  std::vector<uint32_t> TakeWaiting();
  bool HasWaiting() const { return has_waiting_.load(std::memory_order_relaxed); }

  // --- Receive side, under the NIC's progress lock.
  RingConsumer& consumer() { return consumer_; }
  // Answers for queue pairs that do not exist, which found the ring full.
  std::vector<PacketHeader>& refusals() { return refusals_; }

 private:
  uint8_t* ReserveLocked(uint32_t bytes, uint32_t qpn, bool* waiting) SV_REQUIRES(tx_lock_);
  void RingDoorbellLocked() SV_REQUIRES(tx_lock_);
  void RingPeerLocked(uint32_t bell) SV_REQUIRES(tx_lock_);

  const uint32_t peer_slot_;
  std::atomic<State> state_{State::kConnecting};
  std::atomic<const SharedTables*> tables_{nullptr};
  Mapping control_;
  Mapping tx_;
  Mapping rx_;
  Mapping tables_mapping_;
  ImportedRegions regions_;

  UniqueFd socket_;        // written once, under tx_lock_, before or while connecting
  UniqueFd knock_;         // loop thread only
  Loop::Watch watch_ = 0;  // loop thread only

  SpinLock tx_lock_;
  RingProducer producer_ SV_GUARDED_BY(tx_lock_);
  std::vector<uint32_t> waiting_ SV_GUARDED_BY(tx_lock_);
  std::atomic<bool> has_waiting_{false};       // a hint; written under tx_lock_, read by the driver
  std::atomic<bool> owes_ring_{false};         // see acks_may_wait; written under tx_lock_
  uint64_t rung_ SV_GUARDED_BY(tx_lock_) = 0;  // the sleep of the peer that was rung already
  PeerBells bells_ SV_GUARDED_BY(tx_lock_);

  // Guarded by the NIC's progress lock.
  RingConsumer consumer_;
  std::vector<PacketHeader> refusals_;
};

template <class Fill>
Link::SendResult Link::Send(const PacketHeader& header, bool* waiting, Fill&& fill) {
  const LockGuard guard(tx_lock_);
  const State state = state_.load(std::memory_order_relaxed);
  if (state == State::kDown) return SendResult::kDown;
  uint8_t* record = ReserveLocked(header.record_bytes, header.from_qpn, waiting);
  if (record == nullptr) return SendResult::kFull;
  memcpy(record, &header, sizeof(header));
  if (!fill(record + sizeof(header))) return SendResult::kNotFilled;
  producer_.Publish(header.record_bytes);
  if (header.type == PacketType::kAck && acks_may_wait) {
    owes_ring_.store(true, std::memory_order_relaxed);
  } else {
    RingDoorbellLocked();
  }
  return SendResult::kSent;
}

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_LINK_H_
