#ifndef GANNET_SERVER_STORE_STORE_H_
#define GANNET_SERVER_STORE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/layout/superblock.h"
#include "common/protocol/message.h"

namespace gannet {

// What a write asks for beyond key and value.
struct WriteConditions {
  bool only_if_absent = false;
  // The version the writer read; 0 = absent.
  std::optional<uint64_t> only_if_version;
  // The exact lock word the writer holds; compared under the key's mutex.
  std::optional<uint64_t> under_lock;
};

struct ItemAttributes {
  uint32_t flags = 0;
  uint64_t expiry_ms = 0;  // since the Unix epoch; 0 = never
};

struct WriteOutcome {
  ReplyStatus status = ReplyStatus::kOk;
  uint64_t version = 0;    // of the item now (kVersionMismatch, kExists: of the one that is there)
  uint64_t slot = 0;       // Slot word of the item now; 0 = none
  uint64_t lock_word = 0;  // kLockLost: what the lock word is
};

struct ReadOutcome {
  ReplyStatus status = ReplyStatus::kOk;  // kOk, kNotFound, kBufferTooSmall
  uint64_t version = 0;
  uint64_t slot = 0;
  uint32_t value_bytes = 0;
  ItemAttributes attributes;
};

// The key-value store in one region of memory that clients READ: superblock, index and heap. All
// changes of a key go through here; the order of every store to the region follows
// docs/consistency.md.
//
// Thread safety: all methods may be called from any thread; writers of one range of buckets exclude
// each other, readers (clients' READs) hold nothing.
class Store {
 public:
  struct Options {
    std::span<std::byte> region;           // page aligned, zero filled; outlives the Store
    std::span<const uint64_t> lock_words;  // changed by the NIC only; the Store loads them
    uint64_t index_slots = 0;              // 0 = by memory
    uint64_t incarnation = 0;              // random, not 0
    uint64_t hash_seed = 0;
  };
  // InvalidArgument: the region is too small for the index, with what would do.
  static absl::StatusOr<std::unique_ptr<Store>> Create(const Options& options);
  virtual ~Store() = default;

  // A block of the heap that a value is being brought into (by the NIC or by memcpy) before any
  // client can see it. Must be given to CommitPut or Abandon.
  struct Reservation {
    uint64_t offset = 0;         // of the item from the region's base
    std::span<std::byte> value;  // where the value goes
    uint32_t size_class = 0;
  };

  // `now_ms` is the wall clock: an item past its expiry is treated as absent, and removed.
  virtual ReadOutcome Get(std::string_view key, std::span<std::byte> value_out,
                          uint64_t now_ms) = 0;
  virtual WriteOutcome Put(std::string_view key, std::string_view value, ItemAttributes attributes,
                           const WriteConditions& conditions, uint64_t now_ms) = 0;
  virtual WriteOutcome Delete(std::string_view key, const WriteConditions& conditions,
                              uint64_t now_ms) = 0;

  // nullopt: the heap is full.
  virtual std::optional<Reservation> Reserve(std::string_view key, uint32_t value_bytes) = 0;
  // Publishes the reserved item; whatever the outcome, the reservation is used up.
  virtual WriteOutcome CommitPut(const Reservation& reservation, std::string_view key,
                                 ItemAttributes attributes, const WriteConditions& conditions,
                                 uint64_t now_ms) = 0;
  virtual void Abandon(const Reservation& reservation) = 0;

  virtual const Superblock& superblock() const = 0;
  // Fills the counters of `stats` that the store keeps: slots, heap, items, displacements, stash.
  virtual void FillStats(StatsReply* stats) const = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_STORE_STORE_H_
