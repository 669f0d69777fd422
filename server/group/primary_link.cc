#include "server/group/primary_link.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/rdma/queue_pair.h"

namespace gannet {
namespace {

constexpr uint32_t kDrains = 1;

}  // namespace

absl::StatusOr<std::unique_ptr<PrimaryLink>> PrimaryLink::Create(const Environment* environment,
                                                                 uint32_t number, uint64_t token) {
  std::unique_ptr<PrimaryLink> link(new PrimaryLink(environment, number, token));
  GANNET_ASSIGN_OR_RETURN(link->messages_, ControlMessages::Create(environment->pd, number));
  GANNET_RETURN_IF_ERROR(
      environment->messages_cq->Reserve(ControlMessages::kCompletionsMax + kDrains));
  if (absl::Status status = environment->stream_cq->Reserve(kWritesMax + kDrains); !status.ok()) {
    environment->messages_cq->Release(ControlMessages::kCompletionsMax + kDrains);
    link->messages_.reset();
    return status;
  }
  return link;
}

PrimaryLink::~PrimaryLink() {
  if (messages_ == nullptr) return;
  given_->messages_cq->Release(ControlMessages::kCompletionsMax + kDrains);
  given_->stream_cq->Release(kWritesMax + kDrains);
}

absl::Status PrimaryLink::Accept(LinkConnection which, IncomingRequest request, uint64_t name,
                                 std::shared_ptr<const SessionKey> key,
                                 std::span<const std::byte> grant) {
  const auto i = static_cast<size_t>(which);
  keys_[i] = std::move(key);
  const bool control = which == LinkConnection::kControl;
  ibv_cq* const cq = control ? given_->messages_cq->get() : given_->stream_cq->get();
  const ConnectionOptions options = {
      .queue_pair = {.pd = given_->pd,
                     .send_cq = cq,
                     .recv_cq = cq,
                     .send_wrs = control ? ControlMessages::kPlaces : kWritesMax,
                     .recv_wrs = control ? ControlMessages::kPlaces : 1},
      .caps = given_->device->caps};
  GANNET_ASSIGN_OR_RETURN(connections_[i],
                          given_->listener->BeginAccept(std::move(request), options, name));
  names_[i] = name;
  if (control && !messages_->PostReceives(*connections_[i])) {
    return absl::UnavailableError("the device refuses receives");
  }
  return given_->listener->FinishAccept(connections_[i].get(), grant, PeerRights::kRead);
}

// On the same queue pair WRITEs complete in their order, so one completion tells of both.
bool PrimaryLink::Write(const RingWriter::Shipment& shipment) {
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
  return PostSend(stream.qp(), writes.data()) == PostResult::kPosted;
}

void PrimaryLink::BeginClose() {
  if (std::exchange(closing_, true)) return;
  for (uint32_t i = 0; i < 2; ++i) {
    const WrId id = {.kind = static_cast<uint8_t>(LinkWork::kDrain), .owner = number_, .slot = i};
    is_drained_[i] = connections_[i] == nullptr || !connections_[i]->BeginClose(id.Pack());
  }
}

void PrimaryLink::OnDrained(uint32_t which) {
  if (which < is_drained_.size()) is_drained_[which] = true;
}

}  // namespace gannet
