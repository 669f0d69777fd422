#include "common/protocol/message.h"

#include <array>
#include <cstring>
#include <initializer_list>

#include "common/protocol/own_fields.h"

namespace gannet {

namespace {

constexpr auto kOwnFields = [] {
  std::array<OwnFields, static_cast<size_t>(Opcode::kMap) + 1> own{};
  const auto set = [&own](size_t end, std::initializer_list<Opcode> opcodes) {
    for (const Opcode opcode : opcodes) own[static_cast<size_t>(opcode)] = OwnFields::UpTo(end);
  };
  set(offsetof(ReplyHeader, clock.reserved), {Opcode::kHeartbeat});
  set(offsetof(ReplyHeader, clock.leases_from), {Opcode::kPing});
  set(offsetof(ReplyHeader, get.reserved0), {Opcode::kGet});
  set(offsetof(ReplyHeader, write.reserved),
      {Opcode::kPut, Opcode::kDelete, Opcode::kAppend, Opcode::kPrepend, Opcode::kTouch});
  set(offsetof(ReplyHeader, increment.reserved), {Opcode::kIncrement});
  set(offsetof(ReplyHeader, lock.reserved), {Opcode::kLock, Opcode::kUnlock, Opcode::kExtendLock});
  set(offsetof(ReplyHeader, flush.reserved), {Opcode::kFlush});
  set(offsetof(ReplyHeader, list.reserved),
      {Opcode::kListLocks, Opcode::kListClients, Opcode::kSlowLog, Opcode::kMap});
  set(offsetof(ReplyHeader, storage.reserved), {Opcode::kStorage});
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
