#include "server/group/control_messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rdma/queue_pair.h"
#include "server/group/link_work.h"

namespace gannet {

ControlMessages::ControlMessages(uint32_t owner, RegisteredBuffer buffer)
    : owner_(owner), buffer_(std::move(buffer)) {
  for (uint32_t place = 0; place < kPlaces; ++place) free_.push_back(place);
}

absl::StatusOr<std::unique_ptr<ControlMessages>> ControlMessages::Create(ibv_pd* pd,
                                                                         uint32_t owner) {
  GANNET_ASSIGN_OR_RETURN(
      RegisteredBuffer buffer,
      RegisteredBuffer::Create(pd, uint64_t{2} * kPlaces * kReplicaMessageBytesMax));
  return std::unique_ptr<ControlMessages>(new ControlMessages(owner, std::move(buffer)));
}

bool ControlMessages::PostReceive(const Connection& connection, uint32_t place) {
  ibv_sge sge = buffer_.Sge(uint64_t{kPlaces + place} * kReplicaMessageBytesMax,
                            uint32_t{kReplicaMessageBytesMax});
  ibv_recv_wr receive{};
  receive.wr_id =
      WrId{.kind = static_cast<uint8_t>(LinkWork::kReceive), .owner = owner_, .slot = place}.Pack();
  receive.sg_list = &sge;
  receive.num_sge = 1;
  return gannet::PostReceive(connection.qp(), &receive) == PostResult::kPosted;
}

bool ControlMessages::PostReceives(const Connection& connection) {
  for (uint32_t place = 0; place < kPlaces; ++place) {
    if (!PostReceive(connection, place)) return false;
  }
  return true;
}

bool ControlMessages::Send(const Connection& connection, std::span<const std::byte> message) {
  GANNET_CHECK(message.size() <= kReplicaMessageBytesMax, "too long a message");
  if (free_.empty()) return true;
  const uint32_t place = free_.back();
  const uint64_t offset = uint64_t{place} * kReplicaMessageBytesMax;
  std::memcpy(buffer_.data() + offset, message.data(), message.size());
  ibv_sge sge = buffer_.Sge(offset, static_cast<uint32_t>(message.size()));
  const WrId id = {.kind = static_cast<uint8_t>(LinkWork::kSend), .owner = owner_, .slot = place};
  ibv_send_wr send = SendRequest(id.Pack(), &sge, IBV_SEND_SIGNALED | connection.send_flags());
  if (PostSend(connection.qp(), &send) != PostResult::kPosted) return false;
  free_.pop_back();
  return true;
}

std::vector<std::byte> ControlMessages::Take(const Connection& connection, uint32_t place,
                                             uint32_t bytes, bool* broken) {
  const std::byte* const begin =
      buffer_.data() + uint64_t{kPlaces + place} * kReplicaMessageBytesMax;
  std::vector<std::byte> message(begin, begin + std::min<size_t>(bytes, kReplicaMessageBytesMax));
  *broken |= !PostReceive(connection, place);
  return message;
}

}  // namespace gannet
