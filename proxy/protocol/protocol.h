#ifndef GANNET_PROXY_PROTOCOL_PROTOCOL_H_
#define GANNET_PROXY_PROTOCOL_PROTOCOL_H_

#include <cstdint>
#include <string_view>

namespace gannet::proxy {

enum class Protocol : uint8_t {
  kAuto,  // not known yet
  kMemcached,
  kMemcachedBinary,
  kRedis,
};

// Returns the protocol whose first bytes these are. Redis' commands are arrays, or typed with
// capital letters, or one of those that people and probes type in small letters and memcached does
// not have. memcached's commands have small letters, and its binary requests begin with 0x80.
// Returns kAuto if more bytes are needed. REQUIRES: there is a byte.
constexpr Protocol Recognise(std::string_view first) {
  if (first[0] == '*' || (first[0] >= 'A' && first[0] <= 'Z')) return Protocol::kRedis;
  if (static_cast<unsigned char>(first[0]) == 0x80) return Protocol::kMemcachedBinary;
  constexpr std::string_view kOfRedis[] = {"ping",    "echo",   "info", "hello",  "auth", "select",
                                           "client",  "config", "del",  "dbsize", "mget", "mset",
                                           "command", "exists", "keys", "scan",   "ttl",  "multi"};
  const size_t end = first.find_first_of(" \t\r\n");
  const std::string_view word = first.substr(0, end);
  for (const std::string_view name : kOfRedis) {
    if (word == name && end != std::string_view::npos) return Protocol::kRedis;
    if (end == std::string_view::npos && name.starts_with(word)) return Protocol::kAuto;
  }
  return Protocol::kMemcached;
}

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_PROTOCOL_PROTOCOL_H_
