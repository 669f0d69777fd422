#ifndef GANNET_SERVER_GROUP_MEMBERS_PRIMARY_LINK_H_
#define GANNET_SERVER_GROUP_MEMBERS_PRIMARY_LINK_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/checked_state.h"
#include "common/protocol/group_member.h"
#include "common/protocol/replica.h"
#include "common/rdma/completion.h"
#include "common/rdma/connection.h"
#include "common/rdma/device.h"
#include "common/rdma/listener.h"
#include "common/rdma/memory.h"
#include "server/group/members/control_messages.h"
#include "server/group/members/link_work.h"
#include "server/log/stream/ring_writer.h"
#include "server/sessions/session/session_key.h"

namespace gannet {

// What a primary's end of a link is. It never goes back.
enum class PrimaryLinkState : uint8_t {
  kUsable,
  kFailed,  // something was not sent, or came out of place: it is to be closed
  kCloses,  // its queue pairs are being flushed, or were
};

constexpr bool MayFollow(PrimaryLinkState from, PrimaryLinkState to) {
  using enum PrimaryLinkState;
  return to == kCloses ? from != kCloses : from == kUsable && to == kFailed;
}

// A primary's end of its link to one backup: the two connections that it accepted, and where the
// backup's ring is.
//
// 1. All that completes is in one of two queues: WRITEs in the stream's, so that workers can look
//    for them, and messages in the other.
// 2. Once it is closed nothing of it is in flight, and it may be destroyed.
//
// One thread at a time.
class PrimaryLink {
 public:
  struct Environment {  // outlives the links
    const Device* device;
    ibv_pd* pd;
    Listener* listener;
    CompletionQueue* messages_cq;
    CompletionQueue* stream_cq;
    std::span<std::byte> ring;
    uint32_t ring_lkey;
  };
  static constexpr uint32_t kWritesMax = 2 * uint32_t{RingWriter::kShipmentsMax};

  // `number` names it in WrIds, and is not used again. ResourceExhausted: no memory.
  static absl::StatusOr<std::unique_ptr<PrimaryLink>> Create(const Environment* environment,
                                                             uint32_t number, uint64_t token);
  // To destroy it REQUIRES: closed(), or the process ends.

  uint32_t number() const { return number_; }
  uint64_t token() const { return token_; }

  // Accepts one of its connections. `name` is that of the connection's events, and `key` proved who
  // asks; null: none was needed. `grant` goes to the backup. ResourceExhausted: no room in the
  // completion queue.
  absl::Status Accept(LinkConnection which, IncomingRequest request, uint64_t name,
                      std::shared_ptr<const SessionKey> key, std::span<const std::byte> grant);
  bool Has(LinkConnection which) const { return At(which) != nullptr; }
  bool HasName(uint64_t name) const { return name == names_[0] || name == names_[1]; }
  // Returns true if a key of its connections is no longer valid.
  bool revoked() const {
    return std::ranges::any_of(keys_, [](const auto& key) {
      return key != nullptr && key->revoked.load(std::memory_order_relaxed);
    });
  }
  // The connections' names; 0: none.
  const std::array<uint64_t, 2>& names() const { return names_; }

  // The backup has said where its ring is.
  void SetRing(uint64_t address, uint32_t rkey) {
    ring_address_ = address;
    ring_rkey_ = rkey;
  }
  // WRITEs a shipment to the same places of the backup's ring, with one completion. Returns false
  // if the link has failed. REQUIRES: the shipment is not empty.
  bool Write(const RingWriter::Shipment& shipment);
  // Fails the link if it cannot be sent.
  template <class T>
  void Send(const T& message) {
    const auto bytes = std::as_bytes(std::span(&message, 1));
    if (!messages_->Send(*At(LinkConnection::kControl), bytes)) Fail();
  }
  void OnSent(uint32_t place) { messages_->OnSent(place); }
  // Takes a message. Fails the link if its place cannot be used again.
  std::vector<std::byte> Take(uint32_t place, uint32_t bytes) {
    bool broken = false;
    std::vector<std::byte> message =
        ControlMessages::Take(At(LinkConnection::kControl), place, bytes, &broken);
    if (broken) Fail();
    return message;
  }

  // It is to be closed.
  void Fail() {
    if (usable()) state_.To(PrimaryLinkState::kFailed);
  }
  bool usable() const { return state_.now() == PrimaryLinkState::kUsable; }
  bool failed() const { return state_.now() == PrimaryLinkState::kFailed; }
  // Moves both queue pairs to the error state. They are flushed when OnDrained was called for each.
  void BeginClose();
  bool closing() const { return state_.now() == PrimaryLinkState::kCloses; }
  void OnDrained(uint32_t which);
  bool closed() const {
    return closing() && std::ranges::all_of(connections_, [](const auto& connection) {
             return connection == nullptr || connection->drained();
           });
  }

 private:
  PrimaryLink(const Environment* environment, uint32_t number, uint64_t token)
      : given_(environment), number_(number), token_(token) {}
  Connection* At(LinkConnection which) const {
    return connections_[static_cast<size_t>(which)].get();
  }

  const Environment* const given_;
  const uint32_t number_;
  const uint64_t token_;
  std::unique_ptr<ControlMessages> messages_;
  std::array<std::unique_ptr<Connection>, 2> connections_;
  std::array<uint64_t, 2> names_{};
  std::array<std::shared_ptr<const SessionKey>, 2> keys_;
  CheckedState<PrimaryLinkState> state_{PrimaryLinkState::kUsable};
  uint64_t ring_address_ = 0;
  uint32_t ring_rkey_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_PRIMARY_LINK_H_
