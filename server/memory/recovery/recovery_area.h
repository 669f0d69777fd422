#ifndef GANNET_SERVER_MEMORY_RECOVERY_RECOVERY_AREA_H_
#define GANNET_SERVER_MEMORY_RECOVERY_RECOVERY_AREA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "absl/status/statusor.h"
#include "common/base/check.h"
#include "common/base/server_time.h"
#include "common/layout/item.h"
#include "common/layout/key_hash.h"
#include "common/layout/slot.h"
#include "common/layout/superblock.h"

namespace gannet {

// What a region in a memory file has between its superblock and its heap. The next process needs it
// to take the items over (docs/memory-file.md).
//
//   0        4096             8192                        kRecoveryEnd
//   | superblock | header, superblock | intents, 64 bytes each | heap

inline constexpr uint64_t kRecoveryMagic = 0x314d454d54454e47;  // "GNETMEM1", little-endian
inline constexpr uint32_t kRecoveryFormat = 2;
// The same, and some items may be stubs (common/layout/stub.h). Who does not know them must not
// take over the region.
inline constexpr uint32_t kRecoveryFormatWithStubs = 3;
inline constexpr uint64_t kRecoveryOffset = 4096;
inline constexpr uint64_t kSuperblockCopyOffset = kRecoveryOffset + 512;
inline constexpr uint64_t kIntentsOffset = 2 * 4096;
inline constexpr uint64_t kIntents = 4096;

struct RecoveryHeader {
  uint64_t magic;
  uint32_t format;
  uint32_t struct_bytes;
  uint64_t region_bytes;
  uint64_t allocator;  // hash of jemalloc's version: only the same one can make the heap again
  uint64_t checksum;   // XXH3-64 of the fields before it, seed 0
  // The fields below change. Each is one word, so it is never torn.
  uint64_t state;        // RegionState
  uint64_t taking_over;  // the incarnation that the items are being sealed for, or 0
  // All versions that were given are below `versions_end`. The next word is its complement.
  uint64_t versions_end;
  uint64_t not_versions_end;
  // Where the server's clock was, in ms since the Unix epoch. The next word is its complement. Zero
  // in files that no process of this version has served from.
  uint64_t clock_ms;
  uint64_t not_clock_ms;
};
static_assert(sizeof(RecoveryHeader) == 88 && std::is_trivially_copyable_v<RecoveryHeader>);
static_assert(offsetof(RecoveryHeader, checksum) == 32 && offsetof(RecoveryHeader, state) == 40);

// The values differ in more than one bit, so that no flipped bit turns one into another.
enum class RegionState : uint64_t {
  kNew = 0x0000000000000000,      // nothing was ever acknowledged
  kServing = 0x1b5e5e5e5e5e5e01,  // a process serves it, or died
  kStopped = 0x2c6d6d6d6d6d6d02,  // the last process stopped properly
};

// What a thread is about to do to an item, while the memory alone would not say which of two states
// is right. Only the thread that holds the lock of a key's range uses the intent of that range.
struct Intent {
  static constexpr uint64_t kReplace = 1;
  static constexpr uint64_t kTouch = 2;

  uint64_t check;  // XXH3-64 of the other words, seed 0; another value: no intent
  uint64_t kind;
  uint64_t old_slot;
  // kReplace: the slot of the new item. kTouch: the item's header, as it was: commit word, version,
  // value bytes and flags, expiry and key bytes, placing.
  uint64_t words[5];
};
static_assert(sizeof(Intent) == 64 && std::is_trivially_copyable_v<Intent>);
inline constexpr uint64_t kRecoveryEnd = kIntentsOffset + kIntents * sizeof(Intent);

// Writes that part of a region. Every store is a release store. So a process that is killed leaves
// each thread's stores up to some moment, and none of a later one.
//
// Thread safety: an intent belongs to the holder of its key's Index::Lock, the rest to one thread.
class RecoveryArea {
 public:
  // REQUIRES: the region is longer than kRecoveryEnd, and outlives this.
  explicit RecoveryArea(std::span<std::byte> region) : region_(region.data()) {
    GANNET_CHECK(region.size() > kRecoveryEnd, "the region is too short");
  }

  // Returns whether a former process left items. InvalidArgument: the region was made with another
  // size, by another version, or is something else. DataLoss: it is damaged.
  static absl::StatusOr<bool> HasItems(std::span<const std::byte> region);

  // Writes the header of a new region.
  void Format(uint64_t region_bytes, uint32_t format);
  // Notes whether there may be stubs from now on. A process that is killed meanwhile leaves either
  // format, or something in between, which HasItems takes, too.
  void SetFormat(uint32_t format);
  void SetState(RegionState state);
  void SetTakingOver(uint64_t incarnation);
  // Notes that all versions that were given are below `version`.
  void SetVersionsEnd(uint64_t version);
  // Notes that versions from `version` on are being given. Call it every second or so.
  void SetNextVersion(uint64_t version) { SetVersionsEnd(version + kVersionsAhead); }
  // Notes where the server's clock is. Call it every second or so.
  void SetClock(ServerTime clock);
  // Must be called before the superblock itself is stored.
  void CopySuperblock(const Superblock& superblock);
  void ClearIntents();

  // Call it before an item dies and another one of the same key becomes live.
  void BeginReplace(KeyHash hash, Slot old_slot, Slot new_slot);
  // Call it before the header of an item changes in place.
  void BeginTouch(KeyHash hash, Slot slot);
  // Call it when that is complete.
  void End(KeyHash hash);

 private:
  // Twice what a run can give in a second.
  static constexpr uint64_t kVersionsAhead = uint64_t{1} << 36;

  std::byte* IntentOf(KeyHash hash) const {
    return region_ + kIntentsOffset + (hash.value() >> 52) * sizeof(Intent);
  }
  void Begin(std::byte* at, Intent intent);

  std::byte* const region_;
};
static_assert(kIntents == 1 << (64 - 52));

// Returns the last time that a former process noted; ServerTime(): none did.
ServerTime NotedClock(const RecoveryHeader& header);

RecoveryHeader LoadRecoveryHeader(std::span<const std::byte> region);
// Returns intent number `i`, or nullopt if none is under way.
std::optional<Intent> LoadIntent(std::span<const std::byte> region, uint64_t i);
// Returns the region's superblock if it is valid. Otherwise returns its copy, because a process was
// killed while it wrote the superblock.
std::optional<Superblock> LoadSuperblock(std::span<const std::byte> region);

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_RECOVERY_RECOVERY_AREA_H_
