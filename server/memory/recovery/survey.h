#ifndef GANNET_SERVER_MEMORY_RECOVERY_SURVEY_H_
#define GANNET_SERVER_MEMORY_RECOVERY_SURVEY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "common/base/parts.h"
#include "common/layout/superblock.h"
#include "server/memory/heap/heap_map.h"
#include "server/memory/index/occupancy.h"
#include "server/memory/recovery/recovery_area.h"
#include "server/memory/recovery/survey_item.h"

namespace gannet {

// What a survey found, by slots of the index.
struct SurveyCounts {
  uint64_t items = 0;       // whole, and kept
  uint64_t item_bytes = 0;  // of their blocks
  uint64_t large_items = 0;
  uint64_t stubs = 0;  // items whose values are on a disk
  // What a process leaves if it is killed while it works.
  uint64_t unfinished = 0;   // slots of writes or deletions that were under way
  uint64_t leftovers = 0;    // second slots of items that were being moved in the index
  uint64_t rolled_back = 0;  // items that are as they were before an unfinished write
  // What only damage explains.
  uint64_t torn = 0;
  uint64_t misplaced = 0;    // the key does not belong there, or no block can be there
  uint64_t overlapping = 0;  // the block overlaps another one

  uint64_t dropped() const { return torn + misplaced + overlapping; }
  void Add(const SurveyCounts& other);
};

// Looks through the region of a former process: which slots lead to whole items, and which blocks
// they take. Changes nothing. Several threads look at a part of the index each, because each item
// costs a wait for memory.
class Survey {
 public:
  // `threads`: 0 = by the cores and the size of the index. REQUIRES: RecoveryArea::HasItems.
  // DataLoss: the superblock is damaged, or has impossible values. FailedPrecondition: it is of
  // another layout.
  static absl::StatusOr<Survey> Of(std::span<const std::byte> region, uint64_t heap_offset,
                                   uint32_t threads = 0);
  // Returns how many threads go over an index of so many buckets.
  static uint32_t ThreadsFor(uint64_t buckets) { return PartsFor(buckets, kBucketsPerThread); }

  struct Table {
    IndexGeometry geometry;
    std::vector<BucketSlots> slots;  // that stay, by bucket
  };
  // A slot that leads to an item that was being replaced. The new one is live.
  struct Redirected {
    uint64_t offset;  // of the slot
    Slot to;
  };
  // An item that gets its header back.
  struct Restored {
    Slot slot;
    LargeItemHeader header;
  };

  const Superblock& superblock() const { return superblock_; }
  const SurveyPlace& place() const { return place_; }
  bool stopped_in_order() const { return stopped_in_order_; }
  // One table, or two if the index was growing.
  const std::vector<Table>& tables() const { return tables_; }
  const HeapMap& heap() const { return heap_; }
  const std::vector<Redirected>& redirected() const { return found_.redirected; }
  const std::vector<Restored>& restored() const { return found_.restored; }
  const SurveyCounts& counts() const { return found_.counts; }
  // Higher than all versions that were given, as far as is known.
  uint64_t versions_end() const { return found_.versions_end; }

 private:
  // The least work that is worth the start of a thread.
  static constexpr uint64_t kBucketsPerThread = 16384;

  // What a thread found.
  struct Found {
    SurveyCounts counts;
    std::vector<Redirected> redirected;
    std::vector<Restored> restored;
    uint64_t versions_end = 0;
  };

  Survey(std::span<const std::byte> region, const Superblock& superblock);
  void LoadIntents();
  absl::Status AddTable(const IndexGeometry& geometry);
  // Looks at the buckets [first, end).
  Found LookAt(Table& table, uint64_t first, uint64_t end);
  void LookAt(Table& table, uint64_t bucket, Found* found);
  void Add(const Found& found);
  // Returns whether the slot stays. Sets `*from_previous` if the key's home is the bucket before.
  bool Stays(const Table& table, uint64_t bucket, uint64_t slot_offset, bool* from_previous,
             Found* found);
  // Undoes or completes what was under way. Returns the item that counts, and sets `*slot` if that
  // is another one.
  SurveyedItem ItemOf(Slot* slot, std::vector<Restored>* restored) const;
  bool Belongs(const Table& table, uint64_t bucket, Slot slot, KeyHash hash,
               bool* from_previous) const;
  // Returns whether this table is the one of the two that is valid for the key.
  bool Counts(const Table& table, KeyHash hash) const;
  // Returns whether the slot may be one that a migrated home left behind.
  bool MayBeLeftover(const Table& table, uint64_t bucket) const;
  bool Migrated(const IndexGeometry& geometry, uint64_t home) const;
  // Fetches into the cache what LookAt needs for the buckets behind this one.
  void Prefetch(const Table& table, uint64_t bucket) const;

  Superblock superblock_;
  SurveyPlace place_;
  bool stopped_in_order_ = false;
  HeapMap heap_;
  std::vector<Table> tables_;
  absl::flat_hash_map<uint64_t, Intent> intents_;  // by the old slot
  Found found_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_RECOVERY_SURVEY_H_
