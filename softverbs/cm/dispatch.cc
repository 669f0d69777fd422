// Turns what a socket tells its owner into steps of the protocol.

#include "softverbs/cm/cm_id.h"
#include "softverbs/cm/steps.h"

namespace softverbs::cm {

void PeerReceiver::OnMessage(std::shared_ptr<PeerSocket>, const Message& message) {
  switch (static_cast<MessageKind>(message.kind)) {
    case MessageKind::kRequest:
    case MessageKind::kServiceRequest:
    case MessageKind::kHandOver:
      return;  // only as the first message, which the listener takes
    case MessageKind::kReply:
      return OnReply(id_, message);
    case MessageKind::kReadyToUse:
      return OnReadyToUse(id_);
    case MessageKind::kReject:
      return OnReject(id_, message);
    case MessageKind::kDisconnectRequest:
      return OnDisconnectRequest(id_);
    case MessageKind::kDisconnectReply:
      return OnDisconnectReply(id_);
    case MessageKind::kServiceReply:
      return OnServiceReply(id_, message);
  }
}

void PeerReceiver::OnEnd(const std::shared_ptr<PeerSocket>&) { OnPeerGone(id_); }

}  // namespace softverbs::cm
