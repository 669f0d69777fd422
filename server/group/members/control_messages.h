#ifndef GANNET_SERVER_GROUP_MEMBERS_CONTROL_MESSAGES_H_
#define GANNET_SERVER_GROUP_MEMBERS_CONTROL_MESSAGES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/protocol/replica.h"
#include "common/rdma/connection.h"
#include "common/rdma/memory.h"

namespace gannet {

// The messages of one control connection, of either end: their buffers, and the SENDs that are
// under way.
//
// Owner thread only.
class ControlMessages {
 public:
  static constexpr uint32_t kPlaces = 32;  // for SENDs, and as many for receives
  // The completions that it may have in a queue at once.
  static constexpr uint32_t kCompletionsMax = 2 * kPlaces;

  // `owner` is in the WrIds of its work requests. ResourceExhausted: no memory.
  static absl::StatusOr<std::unique_ptr<ControlMessages>> Create(ibv_pd* pd, uint32_t owner);

  // Where the connection is to receive.
  ReceiveOptions receives() const;
  // Sends a message, or drops it if as many as kPlaces are under way: then the peer takes none.
  // Returns false if the connection is to be broken. REQUIRES: at most kReplicaMessageBytesMax.
  bool Send(const Connection& connection, std::span<const std::byte> message);
  // A SEND has completed.
  void OnSent(uint32_t place) { free_.push_back(place); }
  // Returns a private copy of a message that was received, and posts its receive again. `broken` is
  // set if the device refuses that.
  static std::vector<std::byte> Take(Connection* connection, uint32_t place, uint32_t bytes,
                                     bool* broken);

 private:
  ControlMessages(uint32_t owner, RegisteredBuffer buffer);

  const uint32_t owner_;
  RegisteredBuffer buffer_;  // first the SENDs' places, then the receives'
  std::vector<uint32_t> free_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_CONTROL_MESSAGES_H_
