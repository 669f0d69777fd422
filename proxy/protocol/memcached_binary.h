#ifndef GANNET_PROXY_PROTOCOL_MEMCACHED_BINARY_H_
#define GANNET_PROXY_PROTOCOL_MEMCACHED_BINARY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/protocol/parsed_command.h"

// memcached's binary protocol, as its document protocol_binary.txt has it. All numbers are
// big-endian.
//
//   byte 0 magic, 1 opcode, 2-3 length of the key, 4 length of the extras, 5 data type,
//   6-7 vbucket, or status of a reply, 8-11 length of all that follows, 12-15 opaque, 16-23 cas,
//   then the extras, the key and the value

namespace gannet::proxy {

inline constexpr size_t kBinaryHeaderBytes = 24;
inline constexpr uint8_t kBinaryRequest = 0x80;
inline constexpr uint8_t kBinaryReply = 0x81;

enum class BinaryStatus : uint16_t {
  kOk = 0x00,
  kNotFound = 0x01,
  kExists = 0x02,
  kTooLarge = 0x03,
  kInvalid = 0x04,
  kNotStored = 0x05,
  kNotANumber = 0x06,
  kNotAuthenticated = 0x20,
  kUnknownCommand = 0x81,
  kOutOfMemory = 0x82,
  kTemporaryFailure = 0x86,
};

// Reads the first N bytes as a number.
template <size_t N>
uint64_t BigEndian(std::string_view bytes) {
  uint64_t number = 0;
  for (size_t i = 0; i < N; ++i) number = number << 8 | static_cast<uint8_t>(bytes[i]);
  return number;
}
template <size_t N>
void AppendBigEndian(std::string* out, uint64_t number) {
  for (size_t i = N; i > 0; --i) *out += static_cast<char>(number >> (8 * (i - 1)));
}

// A reply to a request. `request` has the first 24 bytes of the request.
struct BinaryAnswer {
  BinaryStatus status = BinaryStatus::kOk;
  std::string_view extras;
  std::string_view key;
  std::string_view value;
  uint64_t cas = 0;
};
void AppendBinaryAnswer(std::string* out, std::string_view request, const BinaryAnswer& answer);

// Takes the first request of `input`. Pure: the same input gives the same answer. The command's
// words are the header, the extras and the key; its data is the value. An error is a whole reply.
// Input that begins with another magic is kBroken without an answer.
Parsed ParseMemcachedBinary(std::string_view input, ParsedCommand* command);

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_PROTOCOL_MEMCACHED_BINARY_H_
