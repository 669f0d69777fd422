#ifndef GANNET_SERVER_MEMORY_STORE_WRITE_OUTCOME_H_
#define GANNET_SERVER_MEMORY_STORE_WRITE_OUTCOME_H_

#include <cstdint>
#include <optional>

#include "common/base/server_time.h"
#include "common/protocol/message.h"
#include "server/log/changes/change.h"
#include "server/memory/tier/tier_format.h"

namespace gannet {

// What writes and the store are asked, and what they answer.

// The conditions of a write.
struct WriteConditions {
  bool only_if_absent = false;
  bool only_if_present = false;
  // The version that the writer read; 0 if the key must be absent.
  std::optional<uint64_t> only_if_version;
  // The exact lock word that the writer holds. Compared under the key's mutex.
  std::optional<uint64_t> under_lock;
  // No condition, but needed in the same places: who asks. nullptr: nobody, or changes are not
  // recorded.
  const ChangeOrigin* origin = nullptr;

  bool any() const { return only_if_absent || only_if_present || only_if_version || under_lock; }
};

struct ItemAttributes {
  uint32_t flags = 0;
  Expiry expiry;
};

struct WriteOutcome {
  ReplyStatus status = ReplyStatus::kOk;
  // kUnimplemented: nothing was done, as the write needs a value that is on the disk. Look where
  // it is (Store::Get), bring it, and ask again.
  bool needs_value = false;
  // kTryAgain: the item is leased to clients, and may be written after so long. 0: another reason.
  uint32_t wait_ms = 0;
  uint64_t version = 0;  // of the item as it is now, also if the write was refused
  uint64_t slot = 0;     // Slot word of the item now; 0 = none
  union {
    uint64_t lock_word = 0;  // kLockLost: its present value
    int64_t number;          // of an Increment that was done: the new number
  };
};

struct ReadOutcome {
  ReplyStatus status = ReplyStatus::kOk;  // kOk, kNotFound, kBufferTooSmall
  uint64_t version = 0;
  uint64_t slot = 0;
  uint32_t value_bytes = 0;
  ItemAttributes attributes;
  // The value is on the disk, and this is the place of its record. The status is kBufferTooSmall,
  // and `slot` is 0. The other fields are the stub's, and `value_bytes` is the value's length. If
  // the record cannot be read, delete the stub by this place (Stubs::Delete), and look again.
  std::optional<TierPlace> on_disk;
};

// What a step of Store::Sweep did.
struct Swept {
  size_t removed = 0;
  bool more = false;  // homes with expired items
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_STORE_WRITE_OUTCOME_H_
