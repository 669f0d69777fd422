#include <array>
#include <cstring>
#include <initializer_list>

#include "common/protocol/client_report.h"
#include "common/protocol/message.h"
#include "common/protocol/own_fields.h"
#include "common/protocol/rails_reply.h"
#include "common/protocol/touch.h"

namespace gannet {
namespace {

constexpr uint8_t kChangeFlags = kOnlyIfVersion | kUnderLock | kSentAgain;
constexpr uint8_t kModifyFlags = kChangeFlags | kOnlyIfPresent;
constexpr uint8_t kPutFlags = kModifyFlags | kOnlyIfAbsent | kValueInBuffer | kValueInSegments;
// A free lock word is zero, so zero names no holder.
constexpr const char* kNoLock = "a lock word of zero";

// The value that travels in a message.
enum class InMessage : uint8_t { kNothing, kValue, kCounterOperands };

// What a request of each opcode may have. A flag that its opcode does not know is refused, because
// to ignore it would betray what the sender asked for.
struct RequestRule {
  bool known = false;
  uint8_t flags = 0;
  bool has_key = false;
  InMessage in_message = InMessage::kNothing;
  OwnFields own;
};

constexpr auto kRules = [] {
  std::array<RequestRule, kOpcodesEnd> rules{};
  const auto set = [&rules](std::initializer_list<Opcode> opcodes, RequestRule rule) {
    rule.known = true;
    for (const Opcode opcode : opcodes) rules[static_cast<size_t>(opcode)] = rule;
  };
  const auto set_all = [&set](RequestKind kind, const RequestRule& rule) {
    for (const Opcode opcode : kAllOpcodes) {
      if (KindOf(opcode) == kind) set({opcode}, rule);
    }
  };
  const auto up_to = [](size_t end) { return OwnFields::UpTo(end); };
  const OwnFields ttl = up_to(offsetof(RequestHeader, write.user_flags));
  const OwnFields ttl_and_flags = up_to(offsetof(RequestHeader, write.buffer_rkey));
  const OwnFields conditions(offsetof(RequestHeader, write.expected_version),
                             offsetof(RequestHeader, write.segments));
  set({Opcode::kHeartbeat},
      {.in_message = InMessage::kValue, .own = up_to(offsetof(RequestHeader, heartbeat.reserved))});
  set({Opcode::kGet}, {.flags = kValueInBuffer,
                       .has_key = true,
                       .own = up_to(offsetof(RequestHeader, get.reserved))});
  set({Opcode::kPut}, {.flags = kPutFlags,
                       .has_key = true,
                       .in_message = InMessage::kValue,
                       .own = up_to(offsetof(RequestHeader, write.reserved))});
  set({Opcode::kAppend, Opcode::kPrepend}, {.flags = kModifyFlags,
                                            .has_key = true,
                                            .in_message = InMessage::kValue,
                                            .own = ttl_and_flags | conditions});
  set({Opcode::kIncrement}, {.flags = kModifyFlags,
                             .has_key = true,
                             .in_message = InMessage::kCounterOperands,
                             .own = ttl_and_flags | conditions});
  set({Opcode::kDelete}, {.flags = kChangeFlags, .has_key = true, .own = conditions});
  set({Opcode::kTouch}, {.flags = kChangeFlags, .has_key = true, .own = ttl | conditions});
  set({Opcode::kLock, Opcode::kExtendLock},
      {.has_key = true, .own = up_to(offsetof(RequestHeader, lock.reserved))});
  set({Opcode::kUnlock},
      {.flags = kForce, .has_key = true, .own = up_to(offsetof(RequestHeader, lock.lease_ms))});
  set_all(RequestKind::kList, {.own = up_to(offsetof(RequestHeader, list.reserved))});
  set_all(RequestKind::kFlush, {.own = up_to(offsetof(RequestHeader, flush.reserved))});
  set_all(RequestKind::kStorage, {.own = up_to(offsetof(RequestHeader, storage.reserved))});
  set_all(RequestKind::kBare, {});
  set({Opcode::kRails}, {.own = up_to(sizeof(uint64_t) + offsetof(RequestHeader, words))});
  return rules;
}();

constexpr bool HasRules() {
  for (const Opcode opcode : kAllOpcodes) {
    if (!kRules[static_cast<size_t>(opcode)].known) return false;
  }
  return true;
}
static_assert(HasRules(), "an opcode of GANNET_REQUESTS has no rule: each would be refused");

// Returns nullptr for an unknown opcode.
const RequestRule* RuleOf(uint8_t opcode) {
  return opcode < kRules.size() && kRules[opcode].known ? &kRules[opcode] : nullptr;
}

std::optional<RequestError> Invalid(const char* reason) {
  return RequestError{ReplyStatus::kInvalidArgument, reason};
}

// Checks what the flags of a write ask for.
std::optional<RequestError> CheckConditions(const RequestHeader& h) {
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
  if (under_lock && h.write.lock_word == 0) return Invalid(kNoLock);
  return std::nullopt;
}

std::optional<RequestError> CheckWrite(const RequestHeader& h) {
  if (h.write.ttl_ms > kTtlMsMax) return Invalid("time to live");
  const bool in_segments = (h.flags & kValueInSegments) != 0;
  const uint32_t segments = h.write.segments;
  const bool right_number = in_segments ? segments - 1 < kValueSegmentsMax : segments == 0;
  if (!right_number || (in_segments && (h.flags & kValueInBuffer))) {
    return Invalid("segments of a value");
  }
  if (h.flags == 0) return std::nullopt;
  return CheckConditions(h);
}

std::optional<RequestError> CheckLock(const RequestHeader& h) {
  if (h.lock.lease_ms > kTtlMsMax) return Invalid("time of a lease");
  if (h.lock.lock_word == 0 && (h.flags & kForce) == 0) return Invalid(kNoLock);
  return std::nullopt;
}

// What a heartbeat carries: nothing, a report, touches, or both.
std::optional<RequestError> CheckHeartbeat(const RequestHeader& h) {
  if (h.value_bytes % sizeof(Touch) != 0) return Invalid("a piece of a touch");
  const uint32_t report = h.heartbeat.report_bytes;
  if (report != 0 && (report < sizeof(ClientCounts) || report > kClientReportBytesMax ||
                      report > h.value_bytes || report % sizeof(LatencyCount) != 0)) {
    return Invalid("the length of a client's report");
  }
  return std::nullopt;
}

// Of those that have no struct of their own, one has a word.
std::optional<RequestError> CheckBare(const RequestHeader& h) {
  const bool known = h.words[0] <= static_cast<uint64_t>(RailsAsk::kLost);
  return known ? std::nullopt : Invalid("what rails are asked for");
}

// Checks what is the same for all kinds.
std::optional<RequestError> CheckCommon(const RequestHeader& h, const RequestRule& rule) {
  if ((h.flags & ~rule.flags) != 0) return Invalid("flag of another opcode");
  const bool numbered = h.opcode != static_cast<uint8_t>(Opcode::kHeartbeat);
  if ((h.sequence != 0) != numbered) return Invalid("sequence number");
  if (rule.has_key ? h.key_bytes - 1u >= kKeyBytesMax : h.key_bytes != 0) {
    return Invalid("key length");
  }
  if (h.value_bytes > (rule.in_message == InMessage::kNothing ? 0 : kValueBytesMax)) {
    return Invalid("value too long");
  }
  if (rule.in_message == InMessage::kCounterOperands && h.value_bytes != sizeof(CounterOperands)) {
    return Invalid("the operands of a counter");
  }
  if (!rule.own.OthersAreZero(h.words)) return Invalid("reserved bytes that are not zero");
  return std::nullopt;
}

// Checks what is the kind's own.
std::optional<RequestError> CheckOwn(const RequestHeader& h) {
  switch (KindOf(static_cast<Opcode>(h.opcode))) {
    case RequestKind::kHeartbeat:
      return CheckHeartbeat(h);
    case RequestKind::kWrite:
      return CheckWrite(h);
    case RequestKind::kLock:
      return CheckLock(h);
    case RequestKind::kBare:
      return CheckBare(h);
    default:
      return std::nullopt;
  }
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

// Returns how many bytes follow the key.
size_t BytesBehindKey(const RequestHeader& h, const RequestRule& rule) {
  if (rule.in_message == InMessage::kNothing || (h.flags & kValueInBuffer)) return 0;
  return h.flags & kValueInSegments ? h.write.segments * sizeof(ValueSegment) : h.value_bytes;
}

}  // namespace

std::optional<RequestError> DecodeRequest(std::span<const std::byte> message, RequestView* view) {
  std::memcpy(&view->header, message.data(), sizeof(view->header));
  const RequestHeader& h = view->header;
  const RequestRule* const rule = RuleOf(h.opcode);
  if (rule == nullptr) return RequestError{ReplyStatus::kUnimplemented, "unknown opcode"};
  if (auto error = CheckCommon(h, *rule)) return error;
  if (auto error = CheckOwn(h)) return error;
  const size_t value_bytes = BytesBehindKey(h, *rule);
  const size_t body = message.size() - sizeof(h);
  if (body != h.key_bytes + value_bytes) return Invalid("length does not match the message");
  const char* data = reinterpret_cast<const char*>(message.data()) + sizeof(h);
  view->key = {data, h.key_bytes};
  view->value = {data + h.key_bytes, value_bytes};
  if ((h.flags & kValueInSegments) && !SegmentsHold(view->value, h.value_bytes)) {
    return Invalid("segments that do not hold the value");
  }
  return std::nullopt;
}

}  // namespace gannet
