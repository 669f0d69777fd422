#include <cstring>
#include <iterator>

#include "common/protocol/message.h"

namespace gannet {
namespace {

constexpr uint8_t kKnownFlags = kOnlyIfAbsent | kOnlyIfVersion | kUnderLock | kValueInBuffer;

// What may be in a request, by opcode. A flag that means nothing to it would be ignored, against
// the sender's hope.
struct RequestRule {
  uint8_t flags;
  uint16_t key_bytes_min, key_bytes_max;
  bool names_lock;
};
constexpr RequestRule kRules[] = {
    {0, 0, 0, false},                                       // heartbeat
    {kValueInBuffer, 1, kKeyBytesMax, false},               // get
    {kKnownFlags, 1, kKeyBytesMax, false},                  // put
    {kOnlyIfVersion | kUnderLock, 1, kKeyBytesMax, false},  // delete
    {0, 1, kKeyBytesMax, true},                             // lock
    {0, 1, kKeyBytesMax, true},                             // unlock
    {0, 0, 0, false},                                       // stats
    {0, 0, 0, false},                                       // ping
};
static_assert(std::size(kRules) == static_cast<size_t>(Opcode::kPing) + 1);

std::optional<RequestError> Invalid(const char* reason) {
  return RequestError{ReplyStatus::kInvalidArgument, reason};
}

std::optional<RequestError> CheckConditions(const RequestHeader& h, const RequestRule& rule) {
  const bool under_lock = (h.flags & kUnderLock) != 0;
  if (under_lock && (h.flags & kOnlyIfVersion) == 0) {
    return Invalid("a write under a lock without the version it read");
  }
  if ((h.flags & kOnlyIfAbsent) != 0 && (h.flags & kOnlyIfVersion) != 0) {
    return Invalid("only-if-absent and only-if-version together");
  }
  // Zero is what a free lock word holds: nobody's.
  if ((under_lock || rule.names_lock) && h.lock_word == 0) return Invalid("a lock word of zero");
  return std::nullopt;
}

std::optional<RequestError> CheckHeader(const RequestHeader& h) {
  if (h.opcode > static_cast<uint8_t>(Opcode::kPing)) {
    return RequestError{ReplyStatus::kUnimplemented, "unknown opcode"};
  }
  const RequestRule& rule = kRules[h.opcode];
  if ((h.flags & ~rule.flags) != 0) {
    if ((h.flags & ~kKnownFlags) == 0) return Invalid("flag of another opcode");
    return RequestError{ReplyStatus::kUnimplemented, "unknown flag"};
  }
  if (h.reserved != 0) return Invalid("reserved bytes are not zero");
  const bool numbered = h.opcode != static_cast<uint8_t>(Opcode::kHeartbeat);
  if ((h.sequence != 0) != numbered) return Invalid("sequence number");
  if (h.key_bytes < rule.key_bytes_min || h.key_bytes > rule.key_bytes_max) {
    return Invalid("key length");
  }
  if (h.value_bytes > kValueBytesMax) return Invalid("value too long");
  if (h.expiry_ms > kExpiryMsMax) return Invalid("expiry too late");
  if (h.flags == 0 && !rule.names_lock) return std::nullopt;
  return CheckConditions(h, rule);
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

}  // namespace gannet
