#include "common/protocol/message.h"

#include <cstring>

namespace gannet {
namespace {

constexpr uint8_t kKnownFlags = kOnlyIfAbsent | kOnlyIfVersion | kUnderLock | kValueInBuffer;

// Flags that mean something to the opcode; any other would be ignored, against the sender's hope.
uint8_t FlagsOf(Opcode opcode) {
  switch (opcode) {
    case Opcode::kPut:
      return kKnownFlags;
    case Opcode::kDelete:
      return kOnlyIfVersion | kUnderLock;
    case Opcode::kGet:
      return kValueInBuffer;
    default:
      return 0;
  }
}

bool NeedsKey(Opcode opcode) {
  return opcode == Opcode::kGet || opcode == Opcode::kPut || opcode == Opcode::kDelete ||
         opcode == Opcode::kLock || opcode == Opcode::kUnlock;
}

std::optional<RequestError> Invalid(const char* reason) {
  return RequestError{ReplyStatus::kInvalidArgument, reason};
}

std::optional<RequestError> CheckConditions(const RequestHeader& h, Opcode opcode) {
  const bool under_lock = (h.flags & kUnderLock) != 0;
  if (under_lock && (h.flags & kOnlyIfVersion) == 0) {
    return Invalid("a write under a lock without the version it read");
  }
  if ((h.flags & kOnlyIfAbsent) != 0 && (h.flags & kOnlyIfVersion) != 0) {
    return Invalid("only-if-absent and only-if-version together");
  }
  // Zero is what a free lock word holds: nobody's.
  const bool names_lock = under_lock || opcode == Opcode::kLock || opcode == Opcode::kUnlock;
  if (names_lock && h.lock_word == 0) return Invalid("a lock word of zero");
  return std::nullopt;
}

std::optional<RequestError> CheckHeader(const RequestHeader& h) {
  if (h.opcode > static_cast<uint8_t>(Opcode::kPing)) {
    return RequestError{ReplyStatus::kUnimplemented, "unknown opcode"};
  }
  const Opcode opcode = static_cast<Opcode>(h.opcode);
  if ((h.flags & ~kKnownFlags) != 0) {
    return RequestError{ReplyStatus::kUnimplemented, "unknown flag"};
  }
  if ((h.flags & ~FlagsOf(opcode)) != 0) return Invalid("flag of another opcode");
  if (h.reserved != 0) return Invalid("reserved bytes are not zero");
  if ((h.sequence == 0) != (opcode == Opcode::kHeartbeat)) return Invalid("sequence number");
  if (NeedsKey(opcode) ? h.key_bytes == 0 || h.key_bytes > kKeyBytesMax : h.key_bytes != 0) {
    return Invalid("key length");
  }
  if (h.value_bytes > kValueBytesMax) return Invalid("value too long");
  if (h.expiry_ms > kExpiryMsMax) return Invalid("expiry too late");
  return CheckConditions(h, opcode);
}

}  // namespace

std::optional<RequestError> DecodeRequest(std::span<const std::byte> message, RequestView* view) {
  std::memcpy(&view->header, message.data(), sizeof(view->header));
  const RequestHeader& h = view->header;
  if (auto error = CheckHeader(h)) return error;
  const size_t body = message.size() - sizeof(h);
  const bool eager_value =
      h.opcode == static_cast<uint8_t>(Opcode::kPut) && !(h.flags & kValueInBuffer);
  const size_t value_bytes = eager_value ? h.value_bytes : 0;
  if (body != h.key_bytes + value_bytes) return Invalid("length does not match the message");
  const char* data = reinterpret_cast<const char*>(message.data()) + sizeof(h);
  view->key = {data, h.key_bytes};
  view->value = {data + h.key_bytes, value_bytes};
  return std::nullopt;
}

bool DecodeReply(std::span<const std::byte> message, ReplyView* view) {
  if (message.size() < sizeof(ReplyHeader)) return false;
  std::memcpy(&view->header, message.data(), sizeof(view->header));
  const ReplyHeader& h = view->header;
  const size_t body = message.size() - sizeof(h);
  // A GET that found too small a buffer says how long the value is and carries none.
  const bool carries_value =
      !h.value_in_buffer && h.status != static_cast<uint8_t>(ReplyStatus::kBufferTooSmall);
  if (h.value_in_buffer > 1 || h.reserved0 != 0 || h.reserved1 != 0 || h.reserved2 != 0) {
    return false;
  }
  if (h.value_bytes > kValueBytesMax || body != (carries_value ? h.value_bytes : 0)) return false;
  view->value = {reinterpret_cast<const char*>(message.data()) + sizeof(h), body};
  return true;
}

size_t EncodeRequest(const RequestHeader& header, std::string_view key, std::string_view value,
                     std::span<std::byte> out) {
  std::memcpy(out.data(), &header, sizeof(header));
  if (!key.empty()) std::memcpy(out.data() + sizeof(header), key.data(), key.size());
  if (!value.empty()) {
    std::memcpy(out.data() + sizeof(header) + key.size(), value.data(), value.size());
  }
  return sizeof(header) + key.size() + value.size();
}

size_t EncodeReply(const ReplyHeader& header, std::string_view value, std::span<std::byte> out) {
  std::memcpy(out.data(), &header, sizeof(header));
  if (!value.empty()) std::memcpy(out.data() + sizeof(header), value.data(), value.size());
  return sizeof(header) + value.size();
}

}  // namespace gannet
