#include "server/group/members/control_messages.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/rdma/queue_pair.h"
#include "server/group/members/link_work.h"

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

ReceiveOptions ControlMessages::receives() const {
  return {.first = buffer_.Sge(uint64_t{kPlaces} * kReplicaMessageBytesMax,
                               uint32_t{kReplicaMessageBytesMax}),
          .count = kPlaces,
          .id = {.kind = static_cast<uint8_t>(LinkWork::kReceive), .owner = owner_}};
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
  if (connection.Post(&send) != PostResult::kPosted) return false;
  free_.pop_back();
  return true;
}

std::vector<std::byte> ControlMessages::Take(Connection* connection, uint32_t place, uint32_t bytes,
                                             bool* broken) {
  const std::span<const std::byte> message =
      connection->Message(place, std::min<uint32_t>(bytes, kReplicaMessageBytesMax));
  std::vector<std::byte> copy(message.begin(), message.end());
  connection->Recycle(place);
  *broken |= !connection->PostReceives();
  return copy;
}

}  // namespace gannet
