#include "softverbs/cm/wire.h"

#include <sys/socket.h>

namespace softverbs::cm {
namespace {

bool ValidAddress(const WireAddress& address) {
  return (address.family == AF_INET || address.family == AF_INET6) && address.port != 0;
}

}  // namespace

Message MakeMessage(MessageKind kind) {
  Message message = {};
  message.magic = kWireMagic;
  message.version = kWireVersion;
  message.kind = static_cast<uint16_t>(kind);
  return message;
}

bool Valid(const Message& message, size_t size) {
  if (size != sizeof(Message)) return false;
  if (message.magic != kWireMagic || message.version != kWireVersion) return false;
  if (message.kind < static_cast<uint16_t>(MessageKind::kRequest) ||
      message.kind > static_cast<uint16_t>(MessageKind::kHandOver)) {
    return false;
  }
  if ((message.qp_num & ~kQueuePairMask) != 0 || (message.psn & ~kPsnMask) != 0) return false;
  if (message.retry_count > kRetryCountMax || message.rnr_retry_count > kRetryCountMax) {
    return false;
  }
  const auto kind = static_cast<MessageKind>(message.kind);
  if (kind != MessageKind::kRequest && kind != MessageKind::kServiceRequest) return true;
  return ValidAddress(message.source) && ValidAddress(message.destination) &&
         message.source.family == message.destination.family;
}

}  // namespace softverbs::cm
