#ifndef GANNET_PROXY_PROTOCOL_PROTOCOL_H_
#define GANNET_PROXY_PROTOCOL_PROTOCOL_H_

#include <cstdint>

namespace gannet::proxy {

enum class Protocol : uint8_t {
  kAuto,  // not known yet
  kMemcached,
  kMemcachedBinary,
  kRedis,
};

// Returns the protocol whose first byte this is. Redis' commands are arrays, or typed with capital
// letters. memcached's commands have small letters, and its binary requests begin with
// 0x80.
constexpr Protocol Recognise(char first) {
  if (first == '*' || (first >= 'A' && first <= 'Z')) return Protocol::kRedis;
  return static_cast<unsigned char>(first) == 0x80 ? Protocol::kMemcachedBinary
                                                   : Protocol::kMemcached;
}

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_PROTOCOL_PROTOCOL_H_
