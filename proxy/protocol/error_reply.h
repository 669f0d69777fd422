#ifndef GANNET_PROXY_PROTOCOL_ERROR_REPLY_H_
#define GANNET_PROXY_PROTOCOL_ERROR_REPLY_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proxy/protocol/protocol.h"

namespace gannet::proxy {

// Returns whether the reply says that its command failed. A miss, or a condition that does not
// hold, is an answer and not a failure. Does not look for errors inside an array.
inline bool IsErrorReply(Protocol protocol, std::string_view reply) {
  if (protocol == Protocol::kRedis) return reply.starts_with('-');
  if (protocol == Protocol::kMemcached) {
    return reply.starts_with("ERROR") || reply.starts_with("CLIENT_ERROR") ||
           reply.starts_with("SERVER_ERROR");
  }
  constexpr size_t kStatusAt = 6;  // of the header of a binary reply, big-endian
  if (reply.size() < kStatusAt + 2) return false;
  const int status =
      static_cast<uint8_t>(reply[kStatusAt]) << 8 | static_cast<uint8_t>(reply[kStatusAt + 1]);
  constexpr int kNotFound = 1, kExists = 2, kNotStored = 5;
  return status != 0 && status != kNotFound && status != kExists && status != kNotStored;
}

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_PROTOCOL_ERROR_REPLY_H_
