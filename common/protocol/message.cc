#include "common/protocol/message.h"

#include <cstring>

namespace gannet {

bool DecodeReply(std::span<const std::byte> message, ReplyView* view) {
  if (message.size() < sizeof(ReplyHeader)) return false;
  std::memcpy(&view->header, message.data(), sizeof(view->header));
  const ReplyHeader& h = view->header;
  const size_t body = message.size() - sizeof(h);
  // If a GET's buffer is too small, the reply says how long the value is but carries none.
  const bool carries_value =
      !h.value_in_buffer && h.status != static_cast<uint8_t>(ReplyStatus::kBufferTooSmall);
  if (h.value_in_buffer > 1 || h.reserved0 != 0 || h.reserved1 != 0) {
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

}  // namespace gannet
