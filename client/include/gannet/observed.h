#ifndef GANNET_OBSERVED_H_
#define GANNET_OBSERVED_H_

#include <chrono>
#include <cstdint>
#include <string>

namespace gannet {

// What a server tells of its clients and its work.

// A connection of a client. What is counted is the session's since it began, and stands in the
// entry of its first connection; it is 0 in those of the others.
struct ConnectedClient {
  std::string peer;  // its address
  uint32_t session_id = 0;
  uint32_t connection_id = 0;
  uint32_t connection_index = 0;  // in its session
  uint32_t worker = 0;            // of the server
  std::string last_request;       // "get", "put" ...; "heartbeat" if there was none
  bool read_only = false;
  uint32_t unanswered = 0;  // requests
  uint32_t key_id = 0;      // of the key that it proved; 0: none
  std::chrono::milliseconds silent{0};
  std::chrono::milliseconds connected{0};
  uint64_t requests = 0;
  // As the client reported them.
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t reads = 0;
  // Latency of GETs in its last report that had some; 0: none.
  std::chrono::nanoseconds get_p50{0};
  std::chrono::nanoseconds get_p99{0};
};

// A request that took a server long.
struct SlowRequest {
  std::chrono::milliseconds answered{0};  // when, since the Unix epoch, by the server's clock
  std::chrono::microseconds took{0};
  std::string request;  // "get", "put" ...
  uint32_t session_id = 0;
  std::string peer;
  uint32_t key_bytes = 0;  // of the whole key
  uint32_t value_bytes = 0;
  std::string key;  // at most its first 64 bytes
};

}  // namespace gannet

#endif  // GANNET_OBSERVED_H_
