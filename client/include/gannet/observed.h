#ifndef GANNET_OBSERVED_H_
#define GANNET_OBSERVED_H_

#include <gannet/types.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gannet {

// What a server reports of its clients and its work.

// One connection of a client. The counts are those of its session, since that began. Only the entry
// of the session's first connection has them; in the others they are 0.
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
  // The client's own report.
  uint64_t hits = 0;
  uint64_t misses = 0;
  uint64_t reads = 0;
  // The latency of GETs, from the last report that had any; 0: none had.
  std::chrono::nanoseconds get_p50{0};
  std::chrono::nanoseconds get_p99{0};
};

// A request that took a server long.
struct SlowRequest {
  // The time of the answer, since the Unix epoch, by the server's clock.
  std::chrono::milliseconds answered{0};
  std::chrono::microseconds took{0};
  std::string request;  // "get", "put" ...
  uint32_t session_id = 0;
  std::string peer;
  uint32_t key_bytes = 0;  // of the whole key
  uint32_t value_bytes = 0;
  std::string key;  // at most its first 64 bytes
};

// The answer of one server to Stats, or why there is none.
struct ServerReport {
  std::string endpoint;
  std::string name;  // as ServerInfo::name
  absl::StatusOr<ServerStats> stats;
};

// The answer of one server to PingEach.
struct ServerPing {
  std::string endpoint;
  std::string name;
  absl::Status status;
};

}  // namespace gannet

#endif  // GANNET_OBSERVED_H_
