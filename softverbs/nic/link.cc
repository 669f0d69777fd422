#include "softverbs/nic/link.h"

#include <utility>

#include "softverbs/base/mutex.h"
#include "softverbs/nic/control_socket.h"
#include "softverbs/nic/nic.h"

namespace softverbs {
namespace {

struct LinkControl {
  RingControl rings[2];  // [0]: from the dialer to the acceptor; [1]: back
};
constexpr size_t kControlBytes = 4096;
static_assert(sizeof(LinkControl) <= kControlBytes);

}  // namespace

Link::~Link() = default;

size_t Link::MemoryBytes() { return kControlBytes + 2 * kRingBytes; }

bool Link::MapRings(int memory_fd, Side side) {
  const int tx = side == Side::kAcceptor ? 1 : 0;
  const int rx = side == Side::kDialer ? 1 : 0;
  control_ = Mapping(memory_fd, kControlBytes, true);
  tx_ = Mapping::Doubled(memory_fd, kRingBytes, kControlBytes + tx * kRingBytes);
  if (!control_ || !tx_) return false;
  if (rx != tx) {
    rx_ = Mapping::Doubled(memory_fd, kRingBytes, kControlBytes + rx * kRingBytes);
    if (!rx_) return false;
  }
  auto* control = static_cast<LinkControl*>(control_.data());
  void* rx_data = rx == tx ? tx_.data() : rx_.data();
  consumer_ = RingConsumer(&control->rings[rx], static_cast<const uint8_t*>(rx_data));
  return true;
}

bool Link::Attach(int memory_fd, Side side) {
  if (!MapRings(memory_fd, side)) return false;
  const int tx = side == Side::kAcceptor ? 1 : 0;
  auto* control = static_cast<LinkControl*>(control_.data());
  const LockGuard guard(tx_lock_);
  producer_ = RingProducer(&control->rings[tx], static_cast<uint8_t*>(tx_.data()));
  state_.store(State::kUp, std::memory_order_release);
  return true;
}

bool Link::AttachRemote(UniqueFd socket) {
  UniqueFd memory = CreateSealedMemory("softverbs-remote-link", Link::MemoryBytes());
  if (!memory || !MapRings(memory.get(), Side::kDialer)) return false;
  auto* control = static_cast<LinkControl*>(control_.data());
  auto* tx = static_cast<uint8_t*>(tx_.data());
  owned_pump_ = std::make_unique<RemotePump>(std::move(socket), &control->rings[0], tx,
                                             &control->rings[1], static_cast<uint8_t*>(rx_.data()));
  pump_.store(owned_pump_.get(), std::memory_order_release);
  const LockGuard guard(tx_lock_);
  producer_ = RingProducer(&control->rings[0], tx);
  State connecting = State::kConnecting;  // it may have been given up meanwhile
  return state_.compare_exchange_strong(connecting, State::kUp, std::memory_order_acq_rel);
}

bool Link::AttachTables(int fd) {
  if (!IsSealedMemory(fd, sizeof(SharedTables))) return false;
  tables_mapping_ = Mapping(fd, sizeof(SharedTables), false);
  if (!tables_mapping_) return false;
  AttachOwnTables(static_cast<const SharedTables*>(tables_mapping_.data()));
  return true;
}

void Link::AttachOwnTables(const SharedTables* tables) {
  tables_.store(tables, std::memory_order_release);
}

void Link::SetSocket(UniqueFd socket) {
  const LockGuard guard(tx_lock_);
  std::swap(socket_, socket);
}

uint8_t* Link::ReserveLocked(uint32_t bytes, uint32_t qpn, bool* waiting) {
  const bool up = state_.load(std::memory_order_relaxed) == State::kUp;
  uint8_t* record = up ? producer_.Reserve(bytes) : nullptr;
  if (record == nullptr) record = AskForRoomLocked(bytes);
  if (record != nullptr) return record;
  if (!*waiting) waiting_.push_back(qpn);
  *waiting = true;
  return nullptr;
}

uint8_t* Link::AskForRoomLocked(uint32_t bytes) {
  // Before the question: the driver that the answer wakes finds it, and waits for the transmit lock
  // to see who waits. Sequentially consistent, as is the driver's load.
  has_waiting_.store(true, std::memory_order_seq_cst);
  if (state_.load(std::memory_order_relaxed) != State::kUp) return nullptr;
  producer_.Starve();
  return producer_.Reserve(bytes);
}

bool Link::HasRoomLocked(bool ask) {
  constexpr uint32_t kMost = RecordBytes(kMaxPayload);
  return producer_.Reserve(kMost) != nullptr || (ask && AskForRoomLocked(kMost) != nullptr);
}

std::vector<uint32_t> Link::TakeWaiting(bool ask) {
  std::vector<uint32_t> taken;
  const LockGuard guard(tx_lock_);
  const State state = state_.load(std::memory_order_relaxed);
  if (state == State::kConnecting) return taken;
  if (waiting_.empty() || state == State::kDown || HasRoomLocked(ask)) {
    taken.swap(waiting_);
    has_waiting_.store(false, std::memory_order_relaxed);
  }
  return taken;
}

void Link::RingDoorbell() {
  owes_ring_.exchange(false, std::memory_order_seq_cst);
  if (remote_) [[unlikely]]
    return pump()->Flush();
  const SharedTables* peer = tables_.load(std::memory_order_acquire);
  uint64_t sleep = Sleep::kFirst;  // until its tables arrive, the peer may be asleep
  if (peer != nullptr) {
    // This load comes after the barrier in RingProducer::Publish: this thread's own, or, through
    // owes_ring_, that of whoever sent the packet. The peer publishes that it sleeps before its
    // last look at the ring. So either we see it asleep, or it sees the record.
    sleep = peer->sleep.load(std::memory_order_seq_cst);
    if (!Sleep::Asleep(sleep)) return;
  }
  if (!socket_) {
    if (peer != nullptr) Nic::Get()->WakeLoop();  // a loopback link: the peer is our own NIC
    return;
  }
  PeerBells::Found bell;
  {
    const LockGuard guard(tx_lock_);
    // Another thread has rung for this sleep, or is about to. A thread that was slow may put an
    // older word here. Then somebody rings once more than needed.
    if (peer != nullptr && std::exchange(rung_, sleep) == sleep) return;
    bell = bells_.Find(Sleep::Bell(sleep));
  }
  if (bell.fd != nullptr && RingBell(bell.fd->get())) return;
  if (bell.ask_for_it) {
    SendControl(socket_.get(), {.type = ControlType::kBellRequest, .region = Sleep::Bell(sleep)});
  }
  SendControl(socket_.get(), {.type = ControlType::kDoorbell});
}

void Link::InstallBell(uint32_t bell, UniqueFd fd) {
  const LockGuard guard(tx_lock_);
  bells_.Install(bell, std::move(fd));
}

void Link::RetireBell(uint32_t bell) {
  const LockGuard guard(tx_lock_);
  bells_.Retire(bell);
}

}  // namespace softverbs
