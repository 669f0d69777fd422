#ifndef SOFTVERBS_NIC_REMOTE_PUMP_H_
#define SOFTVERBS_NIC_REMOTE_PUMP_H_

#include <atomic>
#include <cstdint>

#include "softverbs/base/mutex.h"
#include "softverbs/base/unique_fd.h"
#include "softverbs/nic/loop.h"
#include "softverbs/nic/packet.h"
#include "softverbs/nic/ring.h"

namespace softverbs {

// Moves the packets of a link to another host: from the link's transmit ring into a TCP connection,
// and from the connection into its receive ring. Both rings are private to this process. The stream
// has the records of the rings as they are.
//
// Whoever sends a packet writes to the socket, without a lock that others wait for. Whoever drives
// the engine reads from it. The loop thread watches the socket while no application thread polls.
//
// Silence is not death: a host that does not answer may have been cut off, and TCP delivers what it
// has when the cut is over. But once the requester has reported an error, nothing of the connection
// may be executed any more. So packets have a limited life (tests/model/late_write_model.h):
//
// - Each side sends its clock now and then, a tick. A record of the type kTick in the stream says
//   which of the receiver's ticks was the newest that the sender had, and how long the packets
//   behind it live. They left after that tick. The receiver executes none whose tick is older.
// - The sender sends nothing while its newest tick is too old, and asks for one.
// - The sender gives up with Abort. From QuietInNs() later on, nothing is executed any more.
//
// The limit of life is a part of the shortest time that a queue pair on the link waits for answers.
// Without such a queue pair there are no ticks. Clocks of both hosts run equally fast; a paused
// virtual machine's does not, and a process may be stopped between the check and the copy.
class RemotePump {
 public:
  // REQUIRES: the rings live as long as the pump.
  RemotePump(UniqueFd socket, RingControl* tx, const uint8_t* tx_data, RingControl* rx,
             uint8_t* rx_data);
  RemotePump(const RemotePump&) = delete;
  RemotePump& operator=(const RemotePump&) = delete;

  int socket() const { return socket_.get(); }
  // The loop watches the socket with this watch, for EPOLLIN at first.
  void SetWatch(Loop::Watch watch);
  // Says whether the loop is to watch for what arrives. Any thread.
  void WatchInput(bool on);

  // --- Any thread.
  // Writes what the transmit ring has to the socket. If another thread does so, it does that too.
  void Flush();
  // Returns how much the transmit ring has.
  uint64_t UnsentBytes() const;
  // Bounds the life of all packets that are sent from now on. Does not raise an earlier bound.
  void LimitLife(int64_t life_ns);
  // Drops the connection (RST). Nothing is sent after the return.
  void Abort();
  // Returns the time from now on after which the peer executes nothing of this connection any more.
  // REQUIRES: Abort was called.
  int64_t QuietInNs() const;
  // Returns how many bytes the peer's kernel has acknowledged.
  uint64_t AcknowledgedBytes() const;

  // --- Under the engine's progress lock.
  enum class Received { kNothing, kSome, kEnded, kCorrupt };
  // Reads what arrived into the receive ring. Stops while the ring is full. kEnded: the peer closed
  // the connection, and everything before that is in the ring.
  Received Receive();
  // Takes a record of the type kTick, in its turn. Returns false if no peer sends that.
  bool TakeTick(const PacketHeader& tick);
  // Returns whether the packets behind the last tick are too old to be executed.
  bool TooOld() const;

 private:
  // What the two flags of a tick say.
  static constexpr uint8_t kStamps =
      1;                               // `swap` is the newest tick we have, `remote_addr` the life
  static constexpr uint8_t kAsks = 2;  // send a tick

  void FlushLocked() SV_REQUIRES(flush_mutex_);
  void PrepareTick(int64_t now) SV_REQUIRES(flush_mutex_);
  void ScanRing() SV_REQUIRES(flush_mutex_);
  bool Write() SV_REQUIRES(flush_mutex_);
  void Wrote(uint64_t bytes) SV_REQUIRES(flush_mutex_);
  bool MaySend(int64_t now) const SV_REQUIRES(flush_mutex_);
  void WatchOutput(bool on);
  void ApplyWatch() SV_REQUIRES(watch_mutex_);

  const UniqueFd socket_;
  RingControl* const tx_;
  const uint8_t* const tx_data_;
  RingControl* const rx_;
  uint8_t* const rx_data_;

  // Transmit side.
  std::atomic<bool> flush_again_{false};
  Mutex flush_mutex_;
  bool dead_ SV_GUARDED_BY(flush_mutex_) = false;
  uint64_t sent_ SV_GUARDED_BY(flush_mutex_) = 0;     // of the ring
  uint64_t scanned_ SV_GUARDED_BY(flush_mutex_) = 0;  // whole records, from sent_ on
  PacketHeader tick_ SV_GUARDED_BY(flush_mutex_){};
  uint32_t tick_left_ SV_GUARDED_BY(flush_mutex_) = 0;  // bytes of tick_ to send, before the ring's
  int64_t asked_with_ SV_GUARDED_BY(flush_mutex_) = -1;  // the tick that we had when we asked
  int64_t stamped_at_ SV_GUARDED_BY(flush_mutex_) = 0;   // when the tick came that was echoed last
  int64_t stamped_life_ SV_GUARDED_BY(flush_mutex_) = 0;
  std::atomic<int64_t> quiet_at_{0};
  std::atomic<int64_t> life_{0};  // 0: no limit

  // Written under the engine's progress lock, read by who flushes.
  std::atomic<int64_t> peer_tick_{0};  // the newest; 0: none
  std::atomic<int64_t> peer_tick_at_{0};
  std::atomic<bool> owes_tick_{true};

  // Receive side, under the engine's progress lock.
  uint64_t received_ = 0;   // bytes, also of incomplete records
  uint64_t published_ = 0;  // whole records
  int64_t stamp_ = 0;       // our tick that the packets being executed were sent after
  int64_t stamp_life_ = 0;  // 0: no limit

  Mutex watch_mutex_;
  Loop::Watch watch_ SV_GUARDED_BY(watch_mutex_) = 0;
  bool watch_input_ SV_GUARDED_BY(watch_mutex_) = true;
  bool watch_output_ SV_GUARDED_BY(watch_mutex_) = false;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_REMOTE_PUMP_H_
