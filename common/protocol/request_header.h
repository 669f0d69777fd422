#ifndef GANNET_COMMON_PROTOCOL_REQUEST_HEADER_H_
#define GANNET_COMMON_PROTOCOL_REQUEST_HEADER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gannet {

// The 64 bytes that a request begins with. The first 16 are the same for all. The opcode says which
// struct the other 48 are. docs/protocol.md has a table for each.
//
// Reserved bytes are zero, and so are the fields of a kind that its opcode does not use.
// DecodeRequest checks it. A field that belongs to a flag means nothing without that flag.
struct RequestHeader {
  struct Heartbeat {
    // Generations of the index (index_news.h): the client READs none that is older than the first,
    // and knows of none that is newer than the second. 0 = none.
    uint32_t index_acknowledged;
    uint32_t index_newest;
    uint64_t server_set;    // hash of the client's list of servers; 0 = not known
    uint32_t report_bytes;  // of the value: a report (client_report.h); behind it are touches
    uint32_t reserved[7];
  };
  // With kValueInBuffer, a value that is too long for a reply is written to the buffer.
  struct Get {
    uint64_t buffer_address;
    uint32_t buffer_rkey;
    uint32_t buffer_bytes;
    uint64_t reserved[4];
  };
  // PUT, DELETE, APPEND, PREPEND, INCREMENT, TOUCH.
  struct Write {
    uint64_t ttl_ms;            // until the item expires; 0 = never
    uint32_t user_flags;        // of the item; the server does not look at them
    uint32_t buffer_rkey;       // kValueInBuffer: the value is there
    uint64_t buffer_address;    // the same
    uint64_t expected_version;  // kOnlyIfVersion; 0 = absent
    uint64_t lock_word;         // kUnderLock: the word held
    uint32_t segments;          // kValueInSegments: how many follow the key; 0 without the flag
    uint32_t reserved;
  };
  // LOCK, UNLOCK, EXTEND LOCK.
  struct Lock {
    uint64_t lock_word;  // LOCK: to set; UNLOCK, EXTEND LOCK: held; with kForce any word, also 0
    uint64_t lease_ms;   // LOCK, EXTEND LOCK: until the lock is broken; 0 = never
    uint64_t reserved[4];
  };
  // LIST LOCKS, LIST CLIENTS, SLOW LOG, MAP.
  struct List {
    uint64_t
        position;  // of the entry (MAP: the byte) to begin with, from the last reply; 0 = the first
    uint64_t reserved[5];
  };
  struct Flush {
    uint64_t position;  // where to begin, from the last reply; 0 = the first home
    uint64_t reserved[5];
  };
  struct Storage {
    uint64_t ask;  // StorageAsk
    uint64_t reserved[5];
  };

  uint8_t opcode;  // Opcode
  uint8_t flags;   // RequestFlag bits
  uint16_t key_bytes;
  uint32_t value_bytes;  // of the value, wherever it is
  uint64_t sequence;     // of the session, from 1; less than `credits` after the oldest unanswered
  union {
    std::array<uint64_t, 6>
        words;  // of a kind that is not known yet, or has no struct. RAILS: the first is a RailsAsk
    Heartbeat heartbeat;
    Get get;
    Write write;
    Lock lock;
    List list;
    Flush flush;
    Storage storage;
  };
};
static_assert(sizeof(RequestHeader) == 64 && std::is_trivially_copyable_v<RequestHeader>);
static_assert(offsetof(RequestHeader, flags) == 1 && offsetof(RequestHeader, key_bytes) == 2 &&
              offsetof(RequestHeader, value_bytes) == 4 && offsetof(RequestHeader, sequence) == 8 &&
              offsetof(RequestHeader, words) == 16);

static_assert(sizeof(RequestHeader::Heartbeat) == 48 && sizeof(RequestHeader::Get) == 48 &&
              sizeof(RequestHeader::Write) == 48 && sizeof(RequestHeader::Lock) == 48 &&
              sizeof(RequestHeader::List) == 48 && sizeof(RequestHeader::Flush) == 48 &&
              sizeof(RequestHeader::Storage) == 48);
static_assert(offsetof(RequestHeader, heartbeat.index_newest) == 20 &&
              offsetof(RequestHeader, heartbeat.server_set) == 24 &&
              offsetof(RequestHeader, heartbeat.report_bytes) == 32 &&
              offsetof(RequestHeader, heartbeat.reserved) == 36);
static_assert(offsetof(RequestHeader, get.buffer_rkey) == 24 &&
              offsetof(RequestHeader, get.buffer_bytes) == 28 &&
              offsetof(RequestHeader, get.reserved) == 32);
static_assert(offsetof(RequestHeader, write.user_flags) == 24 &&
              offsetof(RequestHeader, write.buffer_rkey) == 28 &&
              offsetof(RequestHeader, write.buffer_address) == 32 &&
              offsetof(RequestHeader, write.expected_version) == 40 &&
              offsetof(RequestHeader, write.lock_word) == 48 &&
              offsetof(RequestHeader, write.segments) == 56 &&
              offsetof(RequestHeader, write.reserved) == 60);
static_assert(offsetof(RequestHeader, lock.lease_ms) == 24 &&
              offsetof(RequestHeader, lock.reserved) == 32 &&
              offsetof(RequestHeader, list.reserved) == 24 &&
              offsetof(RequestHeader, flush.reserved) == 24 &&
              offsetof(RequestHeader, storage.reserved) == 24);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_REQUEST_HEADER_H_
