#include "server/group/members/primary_link.h"

#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rdma/queue_pair.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<PrimaryLink>> PrimaryLink::Create(const Environment* environment,
                                                                 uint32_t number, uint64_t token) {
  std::unique_ptr<PrimaryLink> link(new PrimaryLink(environment, number, token));
  GANNET_ASSIGN_OR_RETURN(link->messages_, ControlMessages::Create(environment->pd, number));
  return link;
}

absl::Status PrimaryLink::Accept(LinkConnection which, IncomingRequest request, uint64_t name,
                                 std::shared_ptr<const SessionKey> key,
                                 std::span<const std::byte> grant) {
  const auto i = static_cast<size_t>(which);
  keys_[i] = std::move(key);
  const bool control = which == LinkConnection::kControl;
  const ConnectionOptions options = {
      .queue_pair = {.pd = given_->pd, .send_wrs = control ? ControlMessages::kPlaces : kWritesMax},
      .caps = given_->device->caps,
      .completions = control ? given_->messages_cq : given_->stream_cq,
      .receives = control ? messages_->receives() : ReceiveOptions{}};
  GANNET_ASSIGN_OR_RETURN(connections_[i],
                          given_->listener->BeginAccept(std::move(request), options, name));
  names_[i] = name;
  return given_->listener->FinishAccept(connections_[i].get(), grant, PeerRights::kRead);
}

// On the same queue pair WRITEs complete in their order, so one completion tells of both.
bool PrimaryLink::Write(const RingWriter::Shipment& shipment) {
  GANNET_CHECK(shipment[0].bytes > 0, "nothing is shipped");
  const Connection& stream = *At(LinkConnection::kStream);
  std::array<ibv_sge, 2> sges{};
  std::array<ibv_send_wr, 2> writes{};
  const size_t n = shipment[1].bytes > 0 ? 2 : 1;
  const WrId id = {.kind = static_cast<uint8_t>(LinkWork::kWrite), .owner = number_};
  for (size_t i = 0; i < n; ++i) {
    const RingWriter::Chunk& chunk = shipment[i];
    sges[i] = {reinterpret_cast<uint64_t>(given_->ring.data()) + chunk.offset,
               static_cast<uint32_t>(chunk.bytes), given_->ring_lkey};
    const bool last = i + 1 == n;
    const unsigned flags = (last ? unsigned{IBV_SEND_SIGNALED} : 0u) | stream.send_flags();
    writes[i] = MakeRequest(IBV_WR_RDMA_WRITE, id.Pack(), &sges[i], flags);
    writes[i].wr.rdma = {ring_address_ + chunk.offset, ring_rkey_};
    if (!last) writes[i].next = &writes[i + 1];
  }
  const bool posted = stream.Post(writes.data()) == PostResult::kPosted;
  if (!posted) Fail();
  return posted;
}

void PrimaryLink::BeginClose() {
  if (closing()) return;
  state_.To(PrimaryLinkState::kCloses);
  for (uint32_t i = 0; i < 2; ++i) {
    const WrId id = {.kind = static_cast<uint8_t>(LinkWork::kDrain), .owner = number_, .slot = i};
    if (connections_[i] == nullptr) continue;
    connections_[i]->BeginDrain(id.Pack());
    // What is in the queue yet is of a number that nobody has then.
    connections_[i]->LookDrained(/*nothing_more=*/true);
  }
}

void PrimaryLink::OnDrained(uint32_t which) {
  if (which < connections_.size() && connections_[which]) connections_[which]->OnDrained();
}

}  // namespace gannet
