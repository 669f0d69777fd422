#include "common/protocol/message.h"

#include <array>
#include <cstring>

#include "common/protocol/own_fields.h"

namespace gannet {

namespace {

// Which fields of a reply belong to its opcode.
constexpr OwnFields OwnFieldsOf(Opcode opcode) {
  const auto up_to = [](size_t end) { return OwnFields::UpTo(end); };
  if (opcode == Opcode::kPing) return up_to(offsetof(ReplyHeader, clock.leases_from));
  if (opcode == Opcode::kIncrement) return up_to(offsetof(ReplyHeader, increment.reserved));
  switch (KindOf(opcode)) {
    case RequestKind::kHeartbeat:
      return up_to(offsetof(ReplyHeader, clock.reserved));
    case RequestKind::kGet:
      return up_to(offsetof(ReplyHeader, get.reserved0));
    case RequestKind::kWrite:
      return up_to(offsetof(ReplyHeader, write.reserved));
    case RequestKind::kLock:
      return up_to(offsetof(ReplyHeader, lock.reserved));
    case RequestKind::kList:
      return up_to(offsetof(ReplyHeader, list.reserved));
    case RequestKind::kFlush:
      return up_to(offsetof(ReplyHeader, flush.reserved));
    case RequestKind::kStorage:
      return up_to(offsetof(ReplyHeader, storage.reserved));
    case RequestKind::kBare:
    case RequestKind::kUnknown:
      break;
  }
  return {};
}

constexpr auto kOwnFields = [] {
  std::array<OwnFields, kOpcodesEnd> own{};
  for (const Opcode opcode : kAllOpcodes) own[static_cast<size_t>(opcode)] = OwnFieldsOf(opcode);
  return own;
}();

bool ReservedIsZero(const ReplyHeader& h) {
  const bool heartbeat = h.opcode == static_cast<uint8_t>(Opcode::kHeartbeat);
  if (h.primary_lease_ms != 0 && !heartbeat) return false;
  const OwnFields own = h.opcode < kOwnFields.size() ? kOwnFields[h.opcode] : OwnFields();
  return own.OthersAreZero(h.words);
}

}  // namespace

bool DecodeReply(std::span<const std::byte> message, ReplyView* view) {
  if (message.size() < sizeof(ReplyHeader)) return false;
  std::memcpy(&view->header, message.data(), sizeof(view->header));
  const ReplyHeader& h = view->header;
  if (!ReservedIsZero(h)) return false;
  const size_t body = message.size() - sizeof(h);
  // If a GET's buffer is too small, the reply says how long the value is but carries none.
  bool carries_value = h.status != static_cast<uint8_t>(ReplyStatus::kBufferTooSmall);
  if (h.opcode == static_cast<uint8_t>(Opcode::kGet)) {
    if (h.get.value_in_buffer > 1) return false;
    carries_value &= h.get.value_in_buffer == 0;
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

}  // namespace gannet
