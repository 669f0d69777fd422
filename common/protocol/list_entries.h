#ifndef GANNET_COMMON_PROTOCOL_LIST_ENTRIES_H_
#define GANNET_COMMON_PROTOCOL_LIST_ENTRIES_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gannet {

// A connection, in the value of a kListClients reply. It is at most a third of the time of silence
// old. What is counted is the session's: since it began, in the entry of its first connection, and
// zero in those of the others.
struct ClientEntry {
  char peer[40];  // its address, NUL padded
  uint32_t session_id;
  uint32_t connection_id;
  uint16_t qp_index;  // number of the connection in its session
  uint16_t worker;
  uint8_t last_opcode;  // of the session's last request; a heartbeat's if there was none
  uint8_t read_only;    // 1: its key may only read
  uint16_t unanswered;  // requests
  uint32_t key_id;      // of the pre-shared key; 0: none
  uint32_t silent_ms;   // since the server heard of it
  uint64_t connected_ms;
  uint64_t requests;  // numbers that the client used for requests
  uint64_t hits;      // these three as the client reported them (client_report.h)
  uint64_t misses;
  uint64_t reads;
  uint32_t get_p50_ns;  // latency of GETs in the client's last report that had some; 0: none
  uint32_t get_p99_ns;
};
static_assert(sizeof(ClientEntry) == 112 && std::is_trivially_copyable_v<ClientEntry>);
static_assert(offsetof(ClientEntry, session_id) == 40 && offsetof(ClientEntry, last_opcode) == 52 &&
              offsetof(ClientEntry, connected_ms) == 64 &&
              offsetof(ClientEntry, get_p50_ns) == 104);

// A request that took long in the server, in the value of a kSlowLog reply.
struct SlowEntry {
  uint64_t time_ms;  // when it was answered, by the server's clock
  uint32_t us;       // how long the server took
  uint8_t opcode;
  uint8_t reserved;      // zero
  uint16_t key_bytes;    // of the whole key
  uint32_t value_bytes;  // as the request says
  uint32_t session_id;
  char peer[40];  // NUL padded
  char key[64];   // as much as there is room for, NUL padded
};
static_assert(sizeof(SlowEntry) == 128 && std::is_trivially_copyable_v<SlowEntry>);
static_assert(offsetof(SlowEntry, opcode) == 12 && offsetof(SlowEntry, session_id) == 20 &&
              offsetof(SlowEntry, peer) == 24 && offsetof(SlowEntry, key) == 64);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_LIST_ENTRIES_H_
