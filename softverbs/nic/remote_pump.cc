#include "softverbs/nic/remote_pump.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "softverbs/nic/net_wire.h"
#include "softverbs/nic/nic.h"

namespace softverbs {
namespace {

constexpr uint64_t kWriteMax = 128 * 1024;  // of the ring in one system call

// Counts while the host is suspended, too: what lay in a buffer meanwhile is old.
int64_t BootNs() {
  timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

RemotePump::RemotePump(UniqueFd socket, RingControl* tx, const uint8_t* tx_data, RingControl* rx,
                       uint8_t* rx_data)
    : socket_(std::move(socket)), tx_(tx), tx_data_(tx_data), rx_(rx), rx_data_(rx_data) {}

void RemotePump::SetWatch(Loop::Watch watch) {
  const LockGuard guard(watch_mutex_);
  watch_ = watch;
  ApplyWatch();
}

void RemotePump::WatchInput(bool on) {
  const LockGuard guard(watch_mutex_);
  if (std::exchange(watch_input_, on) != on) ApplyWatch();
}

void RemotePump::WatchOutput(bool on) {
  const LockGuard guard(watch_mutex_);
  if (std::exchange(watch_output_, on) != on) ApplyWatch();
}

void RemotePump::ApplyWatch() {
  if (watch_ == 0) return;
  Loop::Get().Modify(watch_, (watch_input_ ? EPOLLIN : 0u) | (watch_output_ ? EPOLLOUT : 0u));
}

void RemotePump::Flush() {
  // Sequentially consistent, so that of two threads one sends what both have put into the ring: the
  // one that does not get the lock has set the flag before, and the other looks at it afterwards.
  flush_again_.store(true, std::memory_order_seq_cst);
  while (flush_again_.load(std::memory_order_seq_cst)) {
    if (!flush_mutex_.try_lock()) return;
    flush_again_.store(false, std::memory_order_seq_cst);
    FlushLocked();
    flush_mutex_.unlock();
  }
}

uint64_t RemotePump::UnsentBytes() const {
  // Relaxed: a hint. The head first, so that it is not larger than the tail.
  const uint64_t head = tx_->head.load(std::memory_order_relaxed);
  return tx_->tail.load(std::memory_order_relaxed) - head;
}

void RemotePump::FlushLocked() {
  while (!dead_) {
    const int64_t now = BootNs();
    if (sent_ == scanned_ && tick_left_ == 0) PrepareTick(now);
    if (sent_ == scanned_ && MaySend(now)) ScanRing();
    if (sent_ == scanned_ && tick_left_ == 0) return WatchOutput(false);
    if (!Write()) return;
  }
}

// Decides whether a tick goes before the ring's next record.
void RemotePump::PrepareTick(int64_t now) {
  const int64_t life = life_.load(std::memory_order_relaxed);
  // The time is read after the tick. Together with a newer time an older tick does no harm.
  const int64_t peer_tick = peer_tick_.load(std::memory_order_acquire);
  const int64_t peer_tick_at = peer_tick_at_.load(std::memory_order_relaxed);
  // Acquire: the record is complete.
  const bool sends = tx_->tail.load(std::memory_order_acquire) != sent_ && life != 0;
  uint8_t flags = 0;
  const bool renews = stamped_life_ != life || now - stamped_at_ > life / 4;
  if (sends && renews && peer_tick != 0 && peer_tick_at > stamped_at_) flags |= kStamps;
  if (sends && (peer_tick == 0 || now - peer_tick_at > life / 4) && asked_with_ != peer_tick) {
    flags |= kAsks;
    asked_with_ = peer_tick;
  }
  if (!owes_tick_.exchange(false, std::memory_order_relaxed) && flags == 0) return;
  tick_ = PacketHeader{};
  tick_.record_bytes = RecordBytes(0);
  tick_.type = PacketType::kTick;
  tick_.flags = flags;
  tick_.operand = static_cast<uint64_t>(now);
  tick_left_ = sizeof(tick_);
  if ((flags & kStamps) == 0) return;
  tick_.swap = static_cast<uint64_t>(peer_tick);
  tick_.remote_addr = static_cast<uint64_t>(life);
  stamped_at_ = peer_tick_at;
  stamped_life_ = life;
  quiet_at_.store(peer_tick_at + life, std::memory_order_relaxed);
}

bool RemotePump::MaySend(int64_t now) const {
  const int64_t life = life_.load(std::memory_order_relaxed);
  return life == 0 || (stamped_life_ == life && now - stamped_at_ < life / 2);
}

// Finds the records to send next. They are contiguous, because the ring is mapped twice in a row.
void RemotePump::ScanRing() {
  // Acquire: the records are complete.
  const uint64_t tail = tx_->tail.load(std::memory_order_acquire);
  while (scanned_ < tail && scanned_ - sent_ < kWriteMax) {
    PacketHeader header;
    memcpy(&header, tx_data_ + scanned_ % kRingBytes, sizeof(header));
    if (header.type == PacketType::kSkip) {
      if (sent_ != scanned_) return;
      sent_ += header.record_bytes;
    }
    scanned_ += header.record_bytes;
  }
}

// Returns false if nothing more can be sent now.
bool RemotePump::Write() {
  const auto* tick = reinterpret_cast<uint8_t*>(&tick_);
  iovec parts[2] = {{const_cast<uint8_t*>(tick + sizeof(tick_) - tick_left_), tick_left_},
                    {const_cast<uint8_t*>(tx_data_ + sent_ % kRingBytes), scanned_ - sent_}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) {
    Wrote(static_cast<uint64_t>(sent));
    return true;
  }
  if (errno == EINTR) return true;
  if (errno == EAGAIN || errno == EWOULDBLOCK) {
    WatchOutput(true);
  } else {
    dead_ = true;  // the reading side sees the end
  }
  return false;
}

void RemotePump::Wrote(uint64_t bytes) {
  const uint64_t of_tick = std::min<uint64_t>(bytes, tick_left_);
  tick_left_ -= static_cast<uint32_t>(of_tick);
  sent_ += bytes - of_tick;
  // Release: we have read everything below.
  tx_->head.store(sent_, std::memory_order_release);
  // The exchange is a full barrier, as in RingConsumer.
  if (tx_->starving.exchange(0, std::memory_order_seq_cst) != 0) Nic::Get()->WakeLoop();
}

void RemotePump::LimitLife(int64_t life_ns) {
  int64_t life = life_.load(std::memory_order_relaxed);
  while ((life == 0 || life_ns < life) &&
         !life_.compare_exchange_weak(life, life_ns, std::memory_order_relaxed)) {
  }
}

void RemotePump::Abort() {
  const LockGuard guard(flush_mutex_);
  if (std::exchange(dead_, true)) return;
  // This resets a TCP connection and drops what was not sent. The descriptor stays open for the
  // thread that reads.
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  connect(socket_.get(), &nowhere, sizeof(nowhere));
}

int64_t RemotePump::QuietInNs() const {
  return std::max<int64_t>(0, quiet_at_.load(std::memory_order_relaxed) - BootNs());
}

uint64_t RemotePump::AcknowledgedBytes() const {
  tcp_info info{};
  socklen_t size = sizeof(info);
  getsockopt(socket_.get(), IPPROTO_TCP, TCP_INFO, &info, &size);
  return info.tcpi_bytes_acked;
}

RemotePump::Received RemotePump::Receive() {
  // Our own consumer writes the head, under the same lock.
  const uint64_t head = rx_->head.load(std::memory_order_relaxed);
  const uint64_t space = kRingBytes - (received_ - head);
  if (space == 0) return Received::kNothing;
  const ssize_t got = recv(socket_.get(), rx_data_ + received_ % kRingBytes, space, MSG_DONTWAIT);
  if (got < 0) {
    const bool later = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    return later ? Received::kNothing : Received::kEnded;
  }
  if (got == 0) return Received::kEnded;
  received_ += static_cast<uint64_t>(got);
  bool corrupt;
  published_ +=
      CompletePackets(rx_data_ + published_ % kRingBytes, received_ - published_, &corrupt);
  rx_->tail.store(published_, std::memory_order_seq_cst);
  return corrupt ? Received::kCorrupt : Received::kSome;
}

bool RemotePump::TakeTick(const PacketHeader& tick) {
  const int64_t now = BootNs();
  if ((tick.flags & kStamps) != 0) {
    const auto stamp = static_cast<int64_t>(tick.swap);
    const auto life = static_cast<int64_t>(tick.remote_addr);
    if (stamp < stamp_ || stamp > now || life <= 0) return false;
    stamp_ = stamp;
    stamp_life_ = life;
  }
  // Release: who reads the tick then reads this time or a later one.
  peer_tick_at_.store(now, std::memory_order_relaxed);
  peer_tick_.store(static_cast<int64_t>(tick.operand), std::memory_order_release);
  if ((tick.flags & kAsks) != 0) owes_tick_.store(true, std::memory_order_relaxed);
  Flush();
  return true;
}

bool RemotePump::TooOld() const { return stamp_life_ != 0 && BootNs() - stamp_ > stamp_life_; }

}  // namespace softverbs
