// The engine's part for links to other hosts: when to write to their sockets and to read from them,
// and which of their packets may be executed.
#include <utility>

#include "softverbs/base/log.h"
#include "softverbs/nic/nic.h"
#include "softverbs/nic/packet_engine.h"

namespace softverbs {
namespace {

// A thread that posts sends when so much waits. Some thirty READs share a system call then.
constexpr uint64_t kLeftToPollMax = 2048;
// Some 10 us. An answer that comes within this time finds the thread polling.
constexpr uint32_t kPollsToYield = 16;

}  // namespace

bool PacketEngine::LeaveToPoll(Link& link) {
  // Relaxed: only a hint that keeps others from the exchange below.
  if (!link.remote() || !polled_steadily_.load(std::memory_order_relaxed)) return false;
  if (link.UnsentBytes() >= kLeftToPollMax) return false;
  // Sequentially consistent, as in PublishLocked: either it sees the debt, or we see that the
  // application polls no more.
  posts_owe_rings_.store(true, std::memory_order_seq_cst);
  return polled_steadily_.load(std::memory_order_seq_cst);
}

void PacketEngine::RingForPostsLocked() {
  // Sequentially consistent, as in LeaveToPoll.
  if (!posts_owe_rings_.load(std::memory_order_seq_cst)) return;
  // Before the links are looked at: a later debt sets it again.
  posts_owe_rings_.store(false, std::memory_order_seq_cst);
  for (const std::shared_ptr<Link>& link : links_) {
    if (link->remote() && link->OwesRing()) link->RingDoorbell();
  }
}

// Sends the answers of one turn together. Each by itself would be a system call and a TCP segment,
// which cost several times as much as a READ of a few bytes.
bool PacketEngine::DriveRemoteLink(Link& link) {
  const bool received = ReceiveRemote(link);
  const RingFor before = std::exchange(ring_for, RingFor::kNone);
  sent_more_than_acks = false;
  const bool worked = ExecutePackets(link);
  ring_for = before;
  if (link.OwesRing() && (before == RingFor::kAll || sent_more_than_acks)) link.RingDoorbell();
  return worked || received;
}

// Reads what came from another host. Returns false if nothing came.
bool PacketEngine::ReceiveRemote(Link& link) {
  switch (link.pump()->Receive()) {
    case RemotePump::Received::kNothing:
      return false;
    case RemotePump::Received::kSome:
      return true;
    case RemotePump::Received::kEnded:
      if (link.consumer().Empty()) Nic::Get()->remote_links().Drop(link);
      return false;
    case RemotePump::Received::kCorrupt:
      DropCorrupt(link);
      return false;
  }
  return false;
}

// Returns whether this is a packet to execute. Ticks are none: it takes them. Ends a link whose
// packets come too late.
bool PacketEngine::AdmitRemote(Link& link, const PacketHeader& header) {
  if (link.state() == Link::State::kDown) return false;  // it was aborted
  RemotePump& pump = *link.pump();
  if (header.type == PacketType::kTick) {
    if (!pump.TakeTick(header)) DropCorrupt(link);
    return false;
  }
  if (!pump.TooOld()) return true;
  Report("packets of slot %u of another host came too late: connection dropped", link.peer_slot());
  Nic::Get()->remote_links().Abort(link);
  return false;
}

bool PacketEngine::IsIdleLocked(bool worked) {
  idle_polls_ = worked ? 0 : idle_polls_ + 1;
  return idle_polls_ > kPollsToYield;
}

// While an application thread polls, it reads from the sockets of remote links. Otherwise the loop
// thread watches them.
void PacketEngine::WatchRemoteLocked(bool on) {
  if (!has_remote_) return;
  for (const std::shared_ptr<Link>& link : links_) {
    if (link->remote() && link->state() == Link::State::kUp) link->pump()->WatchInput(on);
  }
}

}  // namespace softverbs
