#ifndef GANNET_TESTS_COMMON_PROTOCOL_ENCODE_REPLY_H_
#define GANNET_TESTS_COMMON_PROTOCOL_ENCODE_REPLY_H_

#include <cstddef>
#include <cstring>
#include <span>
#include <string_view>

#include "common/protocol/message.h"

namespace gannet {

// Writes header and value as a server does, and returns the bytes used. Pass an empty `value` if it
// is in a buffer. REQUIRES: out has room for sizeof(header) + value.size().
inline size_t EncodeReply(const ReplyHeader& header, std::string_view value,
                          std::span<std::byte> out) {
  std::memcpy(out.data(), &header, sizeof(header));
  if (!value.empty()) std::memcpy(out.data() + sizeof(header), value.data(), value.size());
  return sizeof(header) + value.size();
}

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_PROTOCOL_ENCODE_REPLY_H_
