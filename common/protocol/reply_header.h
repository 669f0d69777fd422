#ifndef GANNET_COMMON_PROTOCOL_REPLY_HEADER_H_
#define GANNET_COMMON_PROTOCOL_REPLY_HEADER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gannet {

// The 64 bytes that a reply begins with. The first 16 are the same for all. The opcode, which is
// the request's, says which struct the other 48 are. docs/protocol.md has a table for each.
//
// Reserved bytes are zero, which DecodeReply checks.
struct ReplyHeader {
  struct Get {
    uint64_t version;         // of the item
    uint64_t slot;            // Slot word where the item is; 0 = not found
    uint64_t expiry_ms;       // of the item, by the server's clock; 0 = never
    uint32_t user_flags;      // of the item
    uint8_t value_in_buffer;  // 1: the value was written into the request's buffer
    uint8_t reserved0[3];
    uint64_t reserved1[2];
  };
  // PUT, DELETE, APPEND, PREPEND, TOUCH.
  struct Write {
    uint64_t version;    // of the item as it is now, also if the write was refused; 0 = absent
    uint64_t slot;       // Slot word where the item is now; 0 = unknown or gone
    uint64_t lock_word;  // kLockLost: what the word is. kTryAgain: kPutOffMsWord
    uint64_t reserved[3];
  };
  struct Increment {
    uint64_t version;  // these two as of a Write
    uint64_t slot;
    int64_t number;  // kOk: the new one. kTryAgain: kPutOffMsWord
    uint64_t reserved[3];
  };
  // LOCK, UNLOCK, EXTEND LOCK.
  struct Lock {
    uint64_t lock_word;  // what the word is; with kForce: what it was
    uint64_t reserved[5];
  };
  struct Flush {
    uint64_t next;     // the position to go on from; 0 = the end
    uint64_t removed;  // items, by this step
    uint64_t reserved[4];
  };
  // LIST LOCKS, LIST CLIENTS, SLOW LOG, MAP.
  struct List {
    uint64_t next;  // the position to go on from; 0 = the end
    uint64_t reserved[5];
  };
  struct Storage {
    uint64_t snapshot;  // the number of the one that was asked for; 0 = there is no disk
    uint64_t reserved[5];
  };
  // Heartbeats, PING.
  struct Clock {
    uint64_t time_ms;  // the server's clock
    // Of a heartbeat: the lease holds for clients whose map of the cluster has this revision, or a
    // later one (docs/partitions.md). Otherwise zero.
    uint64_t leases_from;
    uint64_t reserved[4];
  };
  // Answers to requests that change something use no more than these first words of their own, and
  // have no value. So they can be remembered (server/sessions/session/session.h).
  static constexpr size_t kAnswerWords = 3;
  using AnswerWords = std::array<uint64_t, kAnswerWords>;

  uint8_t opcode;  // of the request
  uint8_t status;  // ReplyStatus
  // Of a heartbeat: what is left of the primary's lease; 0: nothing, or no group. Otherwise zero.
  uint16_t primary_lease_ms;
  uint32_t value_bytes;  // of the value, wherever it is; kBufferTooSmall: nowhere
  uint64_t sequence;     // of the request; 0 for a heartbeat
  union {
    std::array<uint64_t, 6>
        words;  // of any kind. STATS, HEATS, ITEM LEASES, unknown opcodes: all zero
    Get get;
    Write write;
    Increment increment;
    Lock lock;
    Flush flush;
    List list;
    Storage storage;
    Clock clock;
  };
};
static_assert(sizeof(ReplyHeader) == 64 && std::is_trivially_copyable_v<ReplyHeader>);
static_assert(offsetof(ReplyHeader, status) == 1 && offsetof(ReplyHeader, primary_lease_ms) == 2 &&
              offsetof(ReplyHeader, value_bytes) == 4 && offsetof(ReplyHeader, sequence) == 8 &&
              offsetof(ReplyHeader, words) == 16);

static_assert(sizeof(ReplyHeader::Get) == 48 && sizeof(ReplyHeader::Write) == 48 &&
              sizeof(ReplyHeader::Increment) == 48 && sizeof(ReplyHeader::Lock) == 48 &&
              sizeof(ReplyHeader::Flush) == 48 && sizeof(ReplyHeader::List) == 48 &&
              sizeof(ReplyHeader::Storage) == 48 && sizeof(ReplyHeader::Clock) == 48);
static_assert(offsetof(ReplyHeader, get.slot) == 24 && offsetof(ReplyHeader, get.expiry_ms) == 32 &&
              offsetof(ReplyHeader, get.user_flags) == 40 &&
              offsetof(ReplyHeader, get.value_in_buffer) == 44 &&
              offsetof(ReplyHeader, get.reserved1) == 48);
static_assert(offsetof(ReplyHeader, write.slot) == 24 &&
              offsetof(ReplyHeader, write.lock_word) == 32 &&
              offsetof(ReplyHeader, write.reserved) == 40 &&
              offsetof(ReplyHeader, increment.slot) == 24 &&
              offsetof(ReplyHeader, increment.number) == 32 &&
              offsetof(ReplyHeader, increment.reserved) == 40);
static_assert(offsetof(ReplyHeader, lock.reserved) == 24 &&
              offsetof(ReplyHeader, flush.removed) == 24 &&
              offsetof(ReplyHeader, flush.reserved) == 32 &&
              offsetof(ReplyHeader, list.reserved) == 24 &&
              offsetof(ReplyHeader, storage.reserved) == 24 &&
              offsetof(ReplyHeader, clock.leases_from) == 24 &&
              offsetof(ReplyHeader, clock.reserved) == 32);

static_assert(sizeof(ReplyHeader::AnswerWords) == 24 &&
              offsetof(ReplyHeader::Write, reserved) == sizeof(ReplyHeader::AnswerWords) &&
              offsetof(ReplyHeader::Increment, reserved) == sizeof(ReplyHeader::AnswerWords) &&
              offsetof(ReplyHeader::Lock, reserved) <= sizeof(ReplyHeader::AnswerWords) &&
              offsetof(ReplyHeader::Flush, reserved) <= sizeof(ReplyHeader::AnswerWords));

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_REPLY_HEADER_H_
