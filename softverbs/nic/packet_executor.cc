#include "softverbs/nic/packet_executor.h"

#include <utility>

#include "softverbs/base/log.h"
#include "softverbs/nic/grh.h"
#include "softverbs/nic/nic.h"
#include "softverbs/nic/packet_handler.h"

namespace softverbs {
namespace {

constexpr int kPacketsPerTurn = LateAcks::kMax;  // of one link before the next link's turn
constexpr size_t kMaxRefusals = 256;             // only a hostile peer causes more refusals at once

}  // namespace

bool PacketExecutor::Drive(Link& link, bool ask) {
  return link.remote() ? DriveRemote(link, ask) : ExecutePackets(link, ask);
}

// Sends the answers of one turn together. Each by itself would be a system call and a TCP segment,
// which cost several times as much as a READ of a few bytes.
bool PacketExecutor::DriveRemote(Link& link, bool ask) {
  const bool received = ReceiveRemote(link);
  const RingFor before = std::exchange(ring_for, RingFor::kNone);
  sent_more_than_acks = false;
  const bool worked = ExecutePackets(link, ask);
  ring_for = before;
  if (link.OwesRing() && (before == RingFor::kAll || sent_more_than_acks)) link.RingDoorbell();
  return worked || received;
}

void PacketExecutor::Finish(Link& link, bool ask) {
  bool worked;
  do {
    worked = Drive(link, ask);
    while (const auto packet = parked_.TakeOf(link)) {
      ExecuteParked(*packet);
      worked = true;
    }
  } while (worked);
}

// Reads what came from another host. Returns false if nothing came.
bool PacketExecutor::ReceiveRemote(Link& link) {
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
bool PacketExecutor::AdmitRemote(Link& link, const PacketHeader& header) {
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

bool PacketExecutor::ExecutePackets(Link& link, bool ask) {
  RingConsumer& ring = link.consumer();
  PacketHeader header;
  const uint8_t* payload;
  int handled = 0;
  for (; handled < kPacketsPerTurn && !parked_.Full(); ++handled) {
    const RingConsumer::Result result = ring.Next(&header, &payload);
    if (result == RingConsumer::Result::kEmpty) break;
    if (result == RingConsumer::Result::kCorrupt) {
      DropCorrupt(link);
      break;
    }
    link.late_acks().SetMoreFollow(ring.HasMore(header));
    Dispatch(link, header, payload);
    ring.Release(header);
  }
  link.late_acks().End([this](uint32_t qpn) {
    if (Qp* qp = qps_->Find(qpn)) HandleLateAck(*qp);
  });
  if (handled > 0 && ring.TakeStarving()) link.RingDoorbell();
  bool resumed = !link.refusals().empty() && SendRefusals(link);
  resumed |= link.HasWaiting() && ResumeWaiting(link, ask);
  return handled > 0 || resumed;
}

void PacketExecutor::Dispatch(Link& link, const PacketHeader& header, const uint8_t* payload) {
  if (parked_.Wants(header) && parked_.Park(link, header, payload)) [[unlikely]]
    return;
  Execute(link, header, payload);
}

void PacketExecutor::Execute(Link& link, const PacketHeader& header, const uint8_t* payload) {
  if (link.remote() && !AdmitRemote(link, header)) return;
  if (header.type == PacketType::kDatagram && header.to_qpn == kMulticastQpn) {
    DispatchMulticast(link, header, payload);
  } else if (Qp* qp = qps_->Find(header.to_qpn)) {
    HandlePacket(*qp, link, header, payload);
  } else if (header.type <= PacketType::kFetchAdd) {
    Refuse(link, header);
  }
}

void PacketExecutor::ExecuteParked(const ParkedPackets::Packet& packet) {
  Link& link = *packet.link;
  Execute(link, packet.header, packet.payload.data());
  if (!link.refusals().empty()) SendRefusals(link);
}

void PacketExecutor::DispatchMulticast(Link& link, const PacketHeader& header,
                                       const uint8_t* payload) {
  if (header.payload_bytes < kGrhBytes) return;
  for (uint32_t qpn : Nic::Get()->multicast().Members(ParseGrh(payload).destination)) {
    if (Qp* qp = qps_->Find(qpn)) HandlePacket(*qp, link, header, payload);
  }
}

void PacketExecutor::Refuse(Link& link, const PacketHeader& request) {
  PacketHeader nak{};
  nak.record_bytes = RecordBytes(0);
  nak.to_qpn = request.from_qpn;
  nak.from_qpn = request.to_qpn;
  nak.psn = request.psn;
  nak.epoch = request.epoch;
  nak.type = PacketType::kNak;
  nak.nak = NakCode::kNoQueuePair;
  if (link.refusals().size() < kMaxRefusals) link.refusals().push_back(nak);
  SendRefusals(link);
}

bool PacketExecutor::SendRefusals(Link& link) {
  std::vector<PacketHeader>& refusals = link.refusals();
  bool noted = true;  // this is retried at every turn, so the link need not note a queue pair
  size_t sent = 0;
  while (sent < refusals.size() && link.Send(refusals[sent], &noted) == Link::SendResult::kSent) {
    ++sent;
  }
  refusals.erase(refusals.begin(), refusals.begin() + sent);
  return sent > 0;
}

bool PacketExecutor::ResumeWaiting(Link& link, bool ask) {
  const std::vector<uint32_t> waiting = link.TakeWaiting(ask);
  for (uint32_t qpn : waiting) {
    if (Qp* qp = qps_->Find(qpn)) HandleLinkSpace(*qp);
  }
  return !waiting.empty();
}

void PacketExecutor::DropCorrupt(Link& link) {
  Report("process slot %u wrote a corrupt packet into its ring: connection dropped",
         link.peer_slot());
  if (link.remote()) return Nic::Get()->remote_links().Abort(link);
  Nic::Get()->links().Drop(link.peer_slot());
}

}  // namespace softverbs
