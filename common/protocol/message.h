#ifndef GANNET_COMMON_PROTOCOL_MESSAGE_H_
#define GANNET_COMMON_PROTOCOL_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "common/layout/item.h"
#include "common/protocol/limits.h"
#include "common/protocol/opcode.h"
#include "common/protocol/reply_header.h"
#include "common/protocol/request_header.h"
#include "common/protocol/stats_reply.h"

namespace gannet {

// The bytes in SENDs. A request is a header, the key, and the value if it is eager. A reply is a
// header and a value. docs/protocol.md has the layouts byte by byte. Unknown opcodes are answered
// kUnimplemented.

enum RequestFlag : uint8_t {
  kOnlyIfAbsent = 1 << 0,
  kOnlyIfVersion = 1 << 1,    // expected_version must match
  kUnderLock = 1 << 2,        // lock_word must be the lock word's value; implies kOnlyIfVersion
  kValueInBuffer = 1 << 3,    // PUT: READ the value from the buffer;
                              // GET: a value too long for a reply may be written there
  kForce = 1 << 4,            // UNLOCK: breaks the lock, whoever holds it
  kOnlyIfPresent = 1 << 5,    // PUT, APPEND, PREPEND, INCREMENT: the key must exist
  kValueInSegments = 1 << 6,  // PUT: READ the value from the segments behind the key, in order
  kSentAgain = 1 << 7,  // a write that was put off (kPutOffInOrder): the client sends no other
                        // write of the key before it has the answer to this one
};

// Outcome of a request, one byte. The client API turns it into an absl::Status once, at its edge.
enum class ReplyStatus : uint8_t {
  kOk = 0,
  kNotFound = 1,
  kExists = 2,           // kOnlyIfAbsent, but the key exists
  kVersionMismatch = 3,  // the reply has the current one
  kLockLost = 4,         // the lock word is not the one sent
  kLockHeld = 5,         // kLock: held by another
  kHeapFull = 6,         // no memory for the item; nothing was changed
  kInvalidArgument = 7,
  kUnimplemented = 8,
  kBufferTooSmall = 9,  // kGet: the value fits neither reply nor buffer; or the item is large, and
                        // the client must READ it where `slot` says
  kTryAgain = 10,       // not applied; send it again
  kInternal = 11,       // not applied
  kIndexFull = 12,      // no slot for the key; nothing was changed
  kNotANumber = 13,     // kIncrement: the value is no decimal number
  kOutOfRange = 14,     // kIncrement: the new number would not fit 64 bits
  kTooLong = 15,        // kAppend, kPrepend: the new value would be too long
  kDiskRefuses = 16,    // the server's disk takes no change now; nothing was changed
  kTooFewCopies = 17,   // fewer members of the group are in sync than it wants; nothing was changed
  kElsewhere = 18,      // the group does not serve the key's partition; nothing was changed. Own
                        // words: the revision of its map; of a write perhaps kPutOffInOrder
  kOutcomeUnknown = 19,  // a write was made, but fewer members of the group have it than it wants,
                         // so it may be lost. Only in version 5 of the protocol and later
  kPermissionDenied = 24,  // the session may only read; nothing was changed
};

// The version in a kTryAgain answer to a write, the second own word of a kElsewhere one: the server
// puts off all later writes of the key in this session, until one comes with kSentAgain.
inline constexpr uint64_t kPutOffInOrder = 1;
// Which own word of a kTryAgain answer to a write says how many ms to wait before it is sent again;
// 0: that is not known. In no reserved word, so older clients take the answer, too.
inline constexpr size_t kPutOffMsWord = 2;

// Returns the longest value that fits into a request or reply with a key of `key_bytes` (0 in a
// reply).
constexpr size_t EagerValueBytesMax(size_t key_bytes) {
  return kMessageBytesMax - sizeof(RequestHeader) - key_bytes;
}

// The value of a kIncrement request: what is added, and what an absent key counts from.
struct CounterOperands {
  int64_t delta;
  int64_t initial;
};
static_assert(sizeof(CounterOperands) == 16 && std::is_trivially_copyable_v<CounterOperands>);

// A piece of the value of a PUT, in the client's memory.
struct ValueSegment {
  uint64_t address;
  uint32_t rkey;
  uint32_t bytes;  // not 0
};
static_assert(sizeof(ValueSegment) == 16 && std::is_trivially_copyable_v<ValueSegment>);
// With the longest key they fit into a message.
inline constexpr uint32_t kValueSegmentsMax = 64;

// A request that was decoded, or is to be encoded. After decoding, the views point into the
// caller's private copy.
struct RequestView {
  RequestHeader header;
  std::string_view key;
  std::string_view value;  // empty when the value is in a buffer; the segments if it is in those
};
struct ReplyView {
  ReplyHeader header;
  std::string_view value;  // empty when it was written into the buffer
};

// Why a request could not be decoded, and so how it is answered: kInvalidArgument or kUnimplemented
// with its sequence number. (A message shorter than a header is not answered; it breaks the
// connection.)
struct RequestError {
  ReplyStatus status;
  const char* reason;  // static text for the log
};

// Checks lengths against the message, key and value limits, flag combinations, and that what the
// opcode does not use is zero. On an error, `view->header` holds a copy of the header. REQUIRES:
// message.size() >= sizeof(RequestHeader).
std::optional<RequestError> DecodeRequest(std::span<const std::byte> message, RequestView* view);
// Returns false if the message is not a valid reply. Then the connection must be broken.
bool DecodeReply(std::span<const std::byte> message, ReplyView* view);

// Writes header, key and value, and returns the bytes used. Pass an empty `value` if it is in a
// buffer. REQUIRES: out has room for sizeof(header) + key.size() + value.size().
size_t EncodeRequest(const RequestHeader& header, std::string_view key, std::string_view value,
                     std::span<std::byte> out);

// A held lock, in the value of a kListLocks reply.
struct LockEntry {
  uint64_t lock_word;   // names the holder's connection
  uint32_t index;       // of the lock word
  uint32_t session_id;  // of the holder; 0: its connection is gone
  uint32_t lease_ms;    // until it is broken; 0: it has no lease
  uint32_t reserved;    // zero
  char peer[40];        // the holder's address, NUL padded; empty: its connection is gone
};
static_assert(sizeof(LockEntry) == 64 && std::is_trivially_copyable_v<LockEntry>);
static_assert(offsetof(LockEntry, session_id) == 12 && offsetof(LockEntry, peer) == 24);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_MESSAGE_H_
