#ifndef GANNET_COMMON_PROTOCOL_PLAIN_PUT_H_
#define GANNET_COMMON_PROTOCOL_PLAIN_PUT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "common/protocol/message.h"

namespace gannet {

// The most frequent request of servers: a PUT of an eager value, without conditions and expiry.
// Each field is loaded only once, when it is checked or asked for, so a peer cannot change it
// between check and use.
class PlainPut {
 public:
  // A fast DecodeRequest for such PUTs. Returns false if the message is something else or
  // malformed; DecodeRequest tells which. REQUIRES: sizeof(RequestHeader) bytes may be read,
  // however long the message is.
  [[gnu::always_inline]] bool Decode(std::span<const std::byte> message) {
    message_ = message.data();
    const auto lengths = Field<uint64_t>(0);
    key_bytes_ = lengths >> 16 & 0xffff;
    value_bytes_ = lengths >> 32;
    if ((lengths & 0xffff) != static_cast<uint8_t>(Opcode::kPut)) return false;  // flags are 0
    if (key_bytes_ - 1 >= kKeyBytesMax) return false;
    // Messages are short, so this bounds the value too.
    if (message.size() != sizeof(RequestHeader) + key_bytes_ + value_bytes_) return false;
    const auto ttl_ms = Field<uint64_t>(offsetof(RequestHeader, write.ttl_ms));
    const auto last_word = Field<uint64_t>(offsetof(RequestHeader, write.segments));
    sequence_ = Field<uint64_t>(offsetof(RequestHeader, sequence));
    return (ttl_ms | last_word) == 0 && sequence_ != 0;
  }

  // Returns the key of any message, or an empty view if it cannot have one. REQUIRES: as for
  // Decode, and the bytes of the longest key behind the header may be read.
  [[gnu::always_inline]] static std::string_view KeyOf(const std::byte* message) {
    uint16_t key_bytes;
    std::memcpy(&key_bytes, message + offsetof(RequestHeader, key_bytes), sizeof(key_bytes));
    const char* key = reinterpret_cast<const char*>(message) + sizeof(RequestHeader);
    return {key, key_bytes <= kKeyBytesMax ? key_bytes : size_t{0}};
  }

  uint64_t sequence() const { return sequence_; }
  // Call it only once, because each call loads the field.
  uint32_t TakeUserFlags() const {
    return Field<uint32_t>(offsetof(RequestHeader, write.user_flags));
  }
  std::string_view key() const { return {Body(), key_bytes_}; }
  std::string_view value() const { return {Body() + key_bytes_, value_bytes_}; }

 private:
  template <class T>
  T Field(size_t offset) const {
    T value;
    std::memcpy(&value, message_ + offset, sizeof(value));
    return value;
  }
  const char* Body() const {
    return reinterpret_cast<const char*>(message_) + sizeof(RequestHeader);
  }

  const std::byte* message_;
  uint64_t key_bytes_;
  uint64_t value_bytes_;
  uint64_t sequence_;
};
static_assert(offsetof(RequestHeader, flags) == 1 && offsetof(RequestHeader, key_bytes) == 2 &&
              offsetof(RequestHeader, value_bytes) == 4 && kMessageBytesMax <= kValueBytesMax);
// Without conditions and buffers, these two and the time to live are all that must be zero.
static_assert(offsetof(RequestHeader, write.segments) == 56 &&
              offsetof(RequestHeader, write.reserved) == 60);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_PLAIN_PUT_H_
