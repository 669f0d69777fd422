#include <cstring>
#include <iterator>

#include "common/protocol/client_report.h"
#include "common/protocol/message.h"
#include "common/protocol/touch.h"

namespace gannet {
namespace {

constexpr uint8_t kPutFlags = kOnlyIfAbsent | kOnlyIfPresent | kOnlyIfVersion | kUnderLock |
                              kValueInBuffer | kValueInSegments;
constexpr uint8_t kModifyFlags = kOnlyIfPresent | kOnlyIfVersion | kUnderLock;
constexpr uint8_t kKnownFlags = kPutFlags | kForce;

// The value that travels in a message.
enum class InMessage : uint8_t { kNothing, kValue, kCounterOperands };

// What a request of each opcode may have. A flag that its opcode does not know is refused, because
// to ignore it would betray what the sender asked for.
struct RequestRule {
  uint8_t flags;
  uint16_t key_bytes_min, key_bytes_max;
  bool names_lock;
  bool takes_ttl;
  InMessage in_message = InMessage::kNothing;
};
constexpr RequestRule kRules[] = {
    {0, 0, 0, false, true, InMessage::kValue},        // heartbeat: IndexKnown, report, touches
    {kValueInBuffer, 1, kKeyBytesMax, false, false},  // get
    {kPutFlags, 1, kKeyBytesMax, false, true, InMessage::kValue},               // put
    {kOnlyIfVersion | kUnderLock, 1, kKeyBytesMax, false, false},               // delete
    {0, 1, kKeyBytesMax, true, true},                                           // lock
    {kForce, 1, kKeyBytesMax, true, false},                                     // unlock
    {0, 0, 0, false, false},                                                    // stats
    {0, 0, 0, false, false},                                                    // ping
    {0, 1, kKeyBytesMax, true, true},                                           // extend lock
    {0, 0, 0, false, false},                                                    // list locks
    {kModifyFlags, 1, kKeyBytesMax, false, true, InMessage::kValue},            // append
    {kModifyFlags, 1, kKeyBytesMax, false, true, InMessage::kValue},            // prepend
    {kModifyFlags, 1, kKeyBytesMax, false, true, InMessage::kCounterOperands},  // increment
    {kOnlyIfVersion | kUnderLock, 1, kKeyBytesMax, false, true},                // touch
    {0, 0, 0, false, false},                                                    // flush
};
static_assert(std::size(kRules) == static_cast<size_t>(Opcode::kFlush) + 1);
constexpr RequestRule kObservationRule = {0, 0, 0, false, false};

// Returns nullptr for an unknown opcode.
const RequestRule* RuleOf(uint8_t opcode) {
  if (opcode < std::size(kRules)) return &kRules[opcode];
  const bool observes = opcode == static_cast<uint8_t>(Opcode::kStorage) ||
                        opcode == static_cast<uint8_t>(Opcode::kListClients) ||
                        opcode == static_cast<uint8_t>(Opcode::kSlowLog) ||
                        opcode == static_cast<uint8_t>(Opcode::kHeats);
  return observes ? &kObservationRule : nullptr;
}

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
  if ((h.flags & kOnlyIfAbsent) != 0 && (h.flags & kOnlyIfPresent) != 0) {
    return Invalid("only-if-absent and only-if-present together");
  }
  // A free lock word is zero, so zero names no holder.
  const bool anyones = (h.flags & kForce) != 0;
  if ((under_lock || rule.names_lock) && h.lock_word == 0 && !anyones) {
    return Invalid("a lock word of zero");
  }
  return std::nullopt;
}

std::optional<RequestError> CheckHeader(const RequestHeader& h) {
  const RequestRule* const known = RuleOf(h.opcode);
  if (known == nullptr) return RequestError{ReplyStatus::kUnimplemented, "unknown opcode"};
  const RequestRule& rule = *known;
  if ((h.flags & ~rule.flags) != 0) {
    if ((h.flags & ~kKnownFlags) == 0) return Invalid("flag of another opcode");
    return RequestError{ReplyStatus::kUnimplemented, "unknown flag"};
  }
  const bool numbered = h.opcode != static_cast<uint8_t>(Opcode::kHeartbeat);
  if (numbered && h.server_set != 0) return Invalid("a set of servers outside a heartbeat");
  if ((h.sequence != 0) != numbered) return Invalid("sequence number");
  if (h.key_bytes < rule.key_bytes_min || h.key_bytes > rule.key_bytes_max) {
    return Invalid("key length");
  }
  if (h.value_bytes > kValueBytesMax) return Invalid("value too long");
  if (rule.in_message == InMessage::kCounterOperands && h.value_bytes != sizeof(CounterOperands)) {
    return Invalid("the operands of a counter");
  }
  if (h.ttl_ms > (rule.takes_ttl ? kTtlMsMax : 0)) return Invalid("time to live");
  if (h.flags == 0 && !rule.names_lock) return std::nullopt;
  return CheckConditions(h, rule);
}

// Returns whether the segments hold a value of so many bytes.
bool SegmentsHold(std::string_view segments, uint64_t value_bytes) {
  uint64_t sum = 0;
  for (size_t at = 0; at < segments.size(); at += sizeof(ValueSegment)) {
    ValueSegment segment;
    std::memcpy(&segment, segments.data() + at, sizeof(segment));
    if (segment.bytes == 0) return false;
    sum += segment.bytes;
  }
  return sum == value_bytes;
}

// What a heartbeat carries: nothing, a report, touches, or both.
std::optional<RequestError> CheckHeartbeat(const RequestHeader& h) {
  if (h.value_bytes % sizeof(Touch) != 0) return Invalid("a piece of a touch");
  const uint32_t report = h.user_flags;
  if (report != 0 && (report < sizeof(ClientCounts) || report > kClientReportBytesMax ||
                      report > h.value_bytes || report % sizeof(LatencyCount) != 0)) {
    return Invalid("the length of a client's report");
  }
  return std::nullopt;
}

// Returns how many bytes follow the key.
size_t BytesBehindKey(const RequestHeader& h) {
  if (RuleOf(h.opcode)->in_message == InMessage::kNothing || (h.flags & kValueInBuffer)) return 0;
  return h.flags & kValueInSegments ? h.buffer_rkey * sizeof(ValueSegment) : h.value_bytes;
}

}  // namespace

std::optional<RequestError> DecodeRequest(std::span<const std::byte> message, RequestView* view) {
  std::memcpy(&view->header, message.data(), sizeof(view->header));
  const RequestHeader& h = view->header;
  if (auto error = CheckHeader(h)) return error;
  const size_t body = message.size() - sizeof(h);
  const bool in_segments = (h.flags & kValueInSegments) != 0;
  if (in_segments && ((h.flags & kValueInBuffer) || h.buffer_rkey > kValueSegmentsMax)) {
    return Invalid("segments of a value");
  }
  const size_t value_bytes = BytesBehindKey(h);
  if (h.opcode == static_cast<uint8_t>(Opcode::kHeartbeat)) {
    if (auto error = CheckHeartbeat(h)) return error;
  }
  if (body != h.key_bytes + value_bytes) return Invalid("length does not match the message");
  const char* data = reinterpret_cast<const char*>(message.data()) + sizeof(h);
  view->key = {data, h.key_bytes};
  view->value = {data + h.key_bytes, value_bytes};
  if (in_segments && !SegmentsHold(view->value, h.value_bytes)) {
    return Invalid("segments that do not hold the value");
  }
  return std::nullopt;
}

}  // namespace gannet
