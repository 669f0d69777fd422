#ifndef SOFTVERBS_NIC_LINK_H_
#define SOFTVERBS_NIC_LINK_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "softverbs/base/mutex.h"
#include "softverbs/base/spin_lock.h"
#include "softverbs/nic/bells.h"
#include "softverbs/nic/imported_regions.h"
#include "softverbs/nic/late_acks.h"
#include "softverbs/nic/loop.h"
#include "softverbs/nic/remote_pump.h"
#include "softverbs/nic/ring.h"
#include "softverbs/nic/shared_memory.h"
#include "softverbs/nic/shared_tables.h"

namespace softverbs {

// When the packets that this thread sends wake a peer that sleeps. A ring that comes later is owed:
// somebody must call RingDoorbell for each link with OwesRing.
enum class RingFor : uint8_t {
  kAll,       // at once
  kRequests,  // acknowledgements wait for the application's answer, which usually follows and
              // rings for both. Otherwise the engine rings later
  kNone,  // the thread rings itself when it holds no lock. To wake a peer is a system call, after
          // which the peer may have the core, and others would wait for the locks meanwhile
};
inline thread_local RingFor ring_for = RingFor::kAll;
// Set when a packet that is more than an acknowledgement was sent under RingFor::kNone.
inline thread_local bool sent_more_than_acks = false;

// Connects this process's NIC to the NIC of another process, or to itself. A link consists of two
// packet rings in shared memory and a control socket. Two processes share one link, however many
// queue pairs they connect. Packets carry the number of their queue pair.
//
// A remote link connects to a process of another host. Its rings are private, and a pump carries
// the packets over TCP. It has no control socket and no tables of the peer.
//
// 1. States: connecting, up, down. A connecting link has no rings yet, so Send returns kFull. Down
//    is final: later connections get a new link.
// 2. Threads: any thread may Send, under the transmit lock. The NIC receives, under its progress
//    lock. The loop thread uses the control socket.
// 3. The worst that a hostile peer's bytes can do is to take this link down.
class Link {
 public:
  enum class State : uint32_t { kConnecting, kUp, kDown };
  enum class SendResult { kSent, kFull, kDown, kNotFilled };

  explicit Link(uint32_t peer_slot, bool remote = false) : peer_slot_(peer_slot), remote_(remote) {}
  ~Link();
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  // Returns the size of a link's shared memory.
  static size_t MemoryBytes();

  // --- Set-up and end. For the loop thread, or for the creator while no other thread sees the
  // link.
  enum class Side { kDialer, kAcceptor, kLoopback };
  // Maps the rings and goes up. Returns false if the memory cannot be mapped.
  bool Attach(int memory_fd, Side side);
  // Makes the rings of a remote link and the pump for them, and goes up. Returns false if there is
  // no memory.
  bool AttachRemote(UniqueFd socket);
  // Maps the peer's tables, which its hello or welcome brought. Returns false if that fails. A
  // loopback link uses the process's own tables instead.
  bool AttachTables(int fd);
  void AttachOwnTables(const SharedTables* tables);
  void SetSocket(UniqueFd socket);
  void SetWatch(Loop::Watch watch) { watch_ = watch; }
  // Keeps the socket of a knock (kDialMe) open as long as the link lives.
  void KeepKnock(UniqueFd socket) { knock_ = std::move(socket); }
  // Returns the state before.
  State GoDown() { return state_.exchange(State::kDown, std::memory_order_acq_rel); }

  uint32_t peer_slot() const { return peer_slot_; }
  bool remote() const { return remote_; }
  // Returns the pump of a remote link, or null if it was never up. Acquire: the pump is complete.
  RemotePump* pump() const { return pump_.load(std::memory_order_acquire); }
  // Returns when the peer is known to execute nothing more of a link that is down, from now on.
  int64_t QuietInNs() const { return pump() == nullptr ? 0 : pump()->QuietInNs(); }
  // Acquire pairs with the release stores of Attach and GoDown.
  State state() const { return state_.load(std::memory_order_acquire); }
  int socket() const { return socket_.get(); }
  Loop::Watch watch() const { return watch_; }
  // Returns null until the tables arrived. Acquire pairs with the release in AttachOwnTables: the
  // tables are mapped.
  const SharedTables* peer_tables() const { return tables_.load(std::memory_order_acquire); }
  ImportedRegions& regions() { return regions_; }

  // --- Transmit side.
  // Sends one packet. `bool fill(uint8_t*)` writes its payload. If fill returns false, nothing is
  // sent. If the ring is full, or not there yet, this notes header.from_qpn for TakeWaiting and
  // sets *waiting. If *waiting is already true, the queue pair has been noted before.
  template <class Fill>
  SendResult Send(const PacketHeader& header, bool* waiting, Fill&& fill);
  SendResult Send(const PacketHeader& header, bool* waiting) {
    return Send(header, waiting, [](uint8_t*) { return true; });
  }
  // Wakes the peer's NIC if it sleeps. Holds no lock while it does.
  void RingDoorbell();
  // Returns true if a packet was sent whose ring is owed. Acquire, as RingDoorbell.
  bool OwesRing() const { return owes_ring_.load(std::memory_order_acquire); }
  // Returns how much of what was sent on a remote link has not been written to the socket.
  // REQUIRES: the link was up.
  uint64_t UnsentBytes() const { return pump()->UnsentBytes(); }
  // Adds a bell of the peer, or removes one that no longer exists.
  void InstallBell(uint32_t bell, UniqueFd fd);
  void RetireBell(uint32_t bell);
  // Removes and returns the queue pairs that wait for space, if there is space now. Otherwise
  // returns an empty list, and if `ask` asks the peer for a doorbell once more. An engine that is
  // awake need not ask, because it looks again before it sleeps.
  std::vector<uint32_t> TakeWaiting(bool ask);
  // Returns false if nobody waits for space. Sequentially consistent: must come after our own sleep
  // word was published.
  bool HasWaiting() const { return has_waiting_.load(std::memory_order_seq_cst); }

  // Of a loopback link, under the NIC's progress lock: both ends of its ring begin again at the
  // ring's start, if it is empty.
  void RestartRing() {
    const LockGuard guard(tx_lock_);
    if (state() == State::kUp && producer_.Restart()) consumer_.Restart();
  }

  // --- Receive side, under the NIC's progress lock.
  RingConsumer& consumer() { return consumer_; }
  // Refusals for requests to queue pairs that do not exist. They wait here while the ring is full.
  std::vector<PacketHeader>& refusals() { return refusals_; }
  LateAcks& late_acks() { return late_acks_; }

 private:
  bool MapRings(int memory_fd, Side side);
  uint8_t* ReserveLocked(uint32_t bytes, uint32_t qpn, bool* waiting) SV_REQUIRES(tx_lock_);
  // Asks the peer for a doorbell when it frees space, and looks for space after that. Returns null
  // if there is none: then the peer rings.
  uint8_t* AskForRoomLocked(uint32_t bytes) SV_REQUIRES(tx_lock_);
  // Returns whether the longest record fits. REQUIRES: up.
  bool HasRoomLocked(bool ask) SV_REQUIRES(tx_lock_);
  // Send without the ring.
  template <class Fill>
  SendResult Put(const PacketHeader& header, bool* waiting, Fill&& fill);

  const uint32_t peer_slot_;
  const bool remote_;
  std::atomic<State> state_{State::kConnecting};
  std::atomic<const SharedTables*> tables_{nullptr};
  Mapping control_;
  Mapping tx_;
  Mapping rx_;
  Mapping tables_mapping_;
  ImportedRegions regions_;
  std::unique_ptr<RemotePump> owned_pump_;  // behind the rings that it uses
  std::atomic<RemotePump*> pump_{nullptr};

  UniqueFd socket_;        // written once, under tx_lock_, before the link is up
  UniqueFd knock_;         // loop thread only
  Loop::Watch watch_ = 0;  // loop thread only

  SpinLock tx_lock_;
  RingProducer producer_ SV_GUARDED_BY(tx_lock_);
  std::vector<uint32_t> waiting_ SV_GUARDED_BY(tx_lock_);
  std::atomic<bool> has_waiting_{false};       // or somebody is about to; written under tx_lock_
  std::atomic<bool> owes_ring_{false};         // see RingFor
  uint64_t rung_ SV_GUARDED_BY(tx_lock_) = 0;  // the peer's sleep word when we last rang
  PeerBells bells_ SV_GUARDED_BY(tx_lock_);

  // Guarded by the NIC's progress lock.
  RingConsumer consumer_;
  std::vector<PacketHeader> refusals_;
  LateAcks late_acks_;
};

template <class Fill>
Link::SendResult Link::Put(const PacketHeader& header, bool* waiting, Fill&& fill) {
  const LockGuard guard(tx_lock_);
  const State state = state_.load(std::memory_order_relaxed);
  if (state == State::kDown) return SendResult::kDown;
  uint8_t* record = ReserveLocked(header.record_bytes, header.from_qpn, waiting);
  if (record == nullptr) return SendResult::kFull;
  memcpy(record, &header, sizeof(header));
  if (!fill(record + sizeof(header))) return SendResult::kNotFilled;
  producer_.Publish(header.record_bytes);
  return SendResult::kSent;
}

template <class Fill>
Link::SendResult Link::Send(const PacketHeader& header, bool* waiting, Fill&& fill) {
  const SendResult result = Put(header, waiting, std::forward<Fill>(fill));
  if (result != SendResult::kSent) return result;
  if (ring_for == RingFor::kAll ||
      (ring_for == RingFor::kRequests && header.type != PacketType::kAck)) {
    RingDoorbell();
  } else {
    // Release pairs with the exchange in RingDoorbell: who takes the debt over sees the packet
    // published, and looks only then whether the peer sleeps.
    owes_ring_.store(true, std::memory_order_release);
    sent_more_than_acks |= header.type != PacketType::kAck;
  }
  return result;
}

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_LINK_H_
