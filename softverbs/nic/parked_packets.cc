#include "softverbs/nic/parked_packets.h"

#include <algorithm>
#include <utility>

#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/port_state.h"
#include "softverbs/fault/nodes.h"
#include "softverbs/nic/nic.h"
#include "softverbs/nic/packet_handler.h"

namespace softverbs {

bool ParkedPackets::Park(Link& link, const PacketHeader& header, const uint8_t* payload) {
  disturbed_ = true;
  Qp* qp = qps_->Find(header.to_qpn);
  if (qp == nullptr) return false;
  const bool request = header.type <= PacketType::kFetchAdd;
  const bool port_down = IsPortDown(PortOf(*qp));
  if (request && port_down) return false;  // is refused at once
  Mailbox& mailbox = mailboxes_[KeyOf(*qp, header, port_down)];
  if (request && (header.flags & kPacketFirst) != 0) Stall(mailbox, *qp);
  const bool waits = simulated_ || port_down || !mailbox.packets.empty() ||
                     mailbox.stalled_until > MonotonicNs() || MustWait(*qp);
  if (!waits) return false;
  const Qp* const from = simulated_ ? qps_->Find(header.from_qpn) : nullptr;
  mailbox.packets.push_back({.link = &link,
                             .header = header,
                             .payload = {payload, payload + header.payload_bytes},
                             .from_node = from == nullptr ? 0 : NodeOf(*from)});
  bytes_ += Bytes(mailbox.packets.back());
  return true;
}

// Answers that wait for a port have a mailbox of their own, so that requests need not wait behind
// them.
uint32_t ParkedPackets::KeyOf(const Qp& qp, const PacketHeader& header, bool port_down) const {
  constexpr uint32_t kOfAnswers = 1u << 31;
  const uint32_t ordinal = OrdinalOf(qp);
  if (header.type <= PacketType::kFetchAdd) return ordinal;
  return port_down || mailboxes_.contains(ordinal | kOfAnswers) ? ordinal | kOfAnswers : ordinal;
}

void ParkedPackets::Stall(Mailbox& mailbox, Qp& qp) {
  const fault::Plan* plan = fault::Active();
  if (plan == nullptr) return;
  const uint64_t arrival = NextArrival(qp);
  const auto ns = fault::StrikesFor(*plan, fault::FaultKind::kStallPeer, OrdinalOf(qp), arrival);
  if (!ns) return;
  mailbox.stalled_until = std::max(mailbox.stalled_until, MonotonicNs() + *ns);
  Loop::Get().RunAt(mailbox.stalled_until, [] { Nic::Get()->engine().HandleParked(); });
}

bool ParkedPackets::MayGo(const Mailbox& mailbox) const {
  if (mailbox.packets.empty() || mailbox.stalled_until > MonotonicNs()) return false;
  const Packet& first = mailbox.packets.front();
  Qp* qp = qps_->Find(first.header.to_qpn);
  if (qp == nullptr) return true;
  if (IsPortDown(PortOf(*qp)) && first.header.type > PacketType::kFetchAdd) return false;
  if (fault::nodes.any_cut && fault::nodes.cut[first.from_node][NodeOf(*qp)]) return false;
  return !MustWait(*qp);
}

ParkedPackets::Packet ParkedPackets::Pop(Mailbox& mailbox, size_t at) {
  const auto taken = mailbox.packets.begin() + static_cast<ptrdiff_t>(at);
  Packet packet = std::move(*taken);
  mailbox.packets.erase(taken);
  bytes_ -= Bytes(packet);
  return packet;
}

// A queue pair's mailbox stays behind it otherwise, and all are looked at for each step.
void ParkedPackets::Forget(Mailboxes::iterator mailbox) {
  const Mailbox& it = mailbox->second;
  if (it.packets.empty() && it.stalled_until <= MonotonicNs()) mailboxes_.erase(mailbox);
}

size_t ParkedPackets::Choices() const {
  return static_cast<size_t>(
      std::count_if(mailboxes_.begin(), mailboxes_.end(),
                    [this](const auto& entry) { return MayGo(entry.second); }));
}

std::optional<ParkedPackets::Packet> ParkedPackets::Take(size_t choice) {
  for (auto it = mailboxes_.begin(); it != mailboxes_.end(); ++it) {
    if (!MayGo(it->second) || choice-- != 0) continue;
    Packet packet = Pop(it->second, 0);
    Forget(it);
    return packet;
  }
  return std::nullopt;
}

void ParkedPackets::EndStalls() {
  for (auto& [ordinal, mailbox] : mailboxes_) mailbox.stalled_until = 0;
}

std::optional<ParkedPackets::Packet> ParkedPackets::TakeOf(const Link& link) {
  for (auto& [ordinal, mailbox] : mailboxes_) {
    for (size_t at = 0; at < mailbox.packets.size(); ++at) {
      if (mailbox.packets[at].link == &link) return Pop(mailbox, at);
    }
  }
  return std::nullopt;
}

}  // namespace softverbs
