// The header and the intents of a memory file, stored word by word and in order, so that a process
// that is killed leaves a prefix of its stores. An intent counts only once its check is stored,
// which comes last.

#include "server/memory/recovery/recovery_area.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/words.h"
#include "server/memory/heap/heap.h"

namespace gannet {
namespace {

constexpr size_t kCheckBytes = sizeof(Intent::check);

uint64_t CheckOf(const Intent& intent) {
  return Xxh3(reinterpret_cast<const std::byte*>(&intent) + kCheckBytes,
              sizeof(intent) - kCheckBytes, 0);
}

uint64_t ChecksumOf(const RecoveryHeader& header) {
  return Xxh3(&header, offsetof(RecoveryHeader, checksum), 0);
}

// Stores whole words, in order.
void StoreInOrder(std::byte* at, const void* from, size_t bytes) {
  for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
    StoreWordRelease(at + i, LoadWord(static_cast<const std::byte*>(from) + i));
  }
}

bool AllZero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
}

constexpr bool IsKnownFormat(uint32_t format) {
  return format == kRecoveryFormat || format == kRecoveryFormatWithStubs;
}

// Returns whether the checksum is right, or would be if SetFormat had stored its second word.
bool IsWhole(RecoveryHeader header) {
  if (header.magic != kRecoveryMagic) return false;
  if (header.checksum == ChecksumOf(header)) return true;
  if (!IsKnownFormat(header.format)) return false;
  header.format = kRecoveryFormat + kRecoveryFormatWithStubs - header.format;
  return header.checksum == ChecksumOf(header);
}

Superblock SuperblockAt(std::span<const std::byte> region, uint64_t offset) {
  Superblock superblock;
  LoadWords(&superblock, region.data() + offset, sizeof(superblock));
  return superblock;
}

absl::Status CheckHeader(const RecoveryHeader& header, uint64_t region_bytes) {
  if (!IsKnownFormat(header.format)) {
    return absl::InvalidArgumentError(
        absl::StrCat("it has format ", header.format, ", and this program knows formats ",
                     kRecoveryFormat, " and ", kRecoveryFormatWithStubs,
                     ": start the version that wrote it, or remove the file"));
  }
  if (header.region_bytes != region_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("it was made with ", header.region_bytes,
                                                   " bytes and has ", region_bytes, " now"));
  }
  if (header.allocator != SmallBlocks::AllocatorVersion()) {
    return absl::InvalidArgumentError(
        "it was written with another version of jemalloc: start kvserver with that one, or remove "
        "the file");
  }
  return absl::OkStatus();
}

}  // namespace

RecoveryHeader LoadRecoveryHeader(std::span<const std::byte> region) {
  RecoveryHeader header;
  LoadWords(&header, region.data() + kRecoveryOffset, sizeof(header));
  return header;
}

std::optional<Intent> LoadIntent(std::span<const std::byte> region, uint64_t i) {
  Intent intent;
  LoadWords(&intent, region.data() + kIntentsOffset + i * sizeof(intent), sizeof(intent));
  if (intent.check != CheckOf(intent)) return std::nullopt;
  return intent;
}

std::optional<Superblock> LoadSuperblock(std::span<const std::byte> region) {
  for (const uint64_t offset : {uint64_t{0}, kSuperblockCopyOffset}) {
    const Superblock superblock = SuperblockAt(region, offset);
    if (SuperblockValid(superblock)) return superblock;
  }
  return std::nullopt;
}

// A process may be killed while it makes a new region. Then the header is not complete, and there
// is no superblock, which is written last.
absl::StatusOr<bool> RecoveryArea::HasItems(std::span<const std::byte> region) {
  const RecoveryHeader header = LoadRecoveryHeader(region);
  if (IsWhole(header)) {
    const absl::Status status = CheckHeader(header, region.size());
    if (!status.ok()) return status;
    if (header.state != static_cast<uint64_t>(RegionState::kNew)) return true;
    return LoadSuperblock(region).has_value();
  }
  if (AllZero(region.first(sizeof(Superblock))) &&
      AllZero(region.subspan(kSuperblockCopyOffset, sizeof(Superblock))) &&
      (header.magic == 0 || header.magic == kRecoveryMagic)) {
    return false;
  }
  if (header.magic == kRecoveryMagic || LoadSuperblock(region)) {
    return absl::DataLossError("its header is damaged; to start empty, remove the file");
  }
  return absl::InvalidArgumentError("it is no memory file; name another one");
}

void RecoveryArea::Format(uint64_t region_bytes, uint32_t format) {
  RecoveryHeader header{.magic = kRecoveryMagic,
                        .format = format,
                        .struct_bytes = sizeof(RecoveryHeader),
                        .region_bytes = region_bytes,
                        .allocator = SmallBlocks::AllocatorVersion(),
                        .checksum = 0,
                        .state = static_cast<uint64_t>(RegionState::kNew),
                        .taking_over = 0,
                        .versions_end = 0,
                        .not_versions_end = ~uint64_t{0},
                        .clock_ms = 0,
                        .not_clock_ms = ~uint64_t{0}};
  header.checksum = ChecksumOf(header);
  StoreInOrder(region_ + kRecoveryOffset, &header, sizeof(header));
}

void RecoveryArea::SetFormat(uint32_t format) {
  std::byte* const at = region_ + kRecoveryOffset;
  RecoveryHeader header;
  LoadWords(&header, at, sizeof(header));
  header.format = format;
  header.checksum = ChecksumOf(header);
  constexpr size_t kFormatAt = offsetof(RecoveryHeader, format);
  static_assert(kFormatAt % sizeof(uint64_t) == 0);
  StoreInOrder(at + kFormatAt, &header.format, sizeof(uint64_t));
  StoreWordRelease(at + offsetof(RecoveryHeader, checksum), header.checksum);
}

void RecoveryArea::SetState(RegionState state) {
  StoreWordRelease(region_ + kRecoveryOffset + offsetof(RecoveryHeader, state),
                   static_cast<uint64_t>(state));
}

void RecoveryArea::SetTakingOver(uint64_t incarnation) {
  StoreWordRelease(region_ + kRecoveryOffset + offsetof(RecoveryHeader, taking_over), incarnation);
}

void RecoveryArea::SetVersionsEnd(uint64_t version) {
  std::byte* const header = region_ + kRecoveryOffset;
  StoreWordRelease(header + offsetof(RecoveryHeader, versions_end), version);
  StoreWordRelease(header + offsetof(RecoveryHeader, not_versions_end), ~version);
}

void RecoveryArea::SetClock(ServerTime clock) {
  std::byte* const header = region_ + kRecoveryOffset;
  StoreWordRelease(header + offsetof(RecoveryHeader, clock_ms), clock.ms());
  StoreWordRelease(header + offsetof(RecoveryHeader, not_clock_ms), ~clock.ms());
}

// A process that was killed between the two stores leaves an older time in the second.
ServerTime NotedClock(const RecoveryHeader& header) {
  return ServerTime::FromMs(std::min(header.clock_ms, ~header.not_clock_ms));
}

void RecoveryArea::CopySuperblock(const Superblock& superblock) {
  StoreInOrder(region_ + kSuperblockCopyOffset, &superblock, sizeof(superblock));
}

void RecoveryArea::ClearIntents() {
  for (uint64_t i = 0; i < kIntents; ++i) {
    std::byte* const intent = region_ + kIntentsOffset + i * sizeof(Intent);
    if (LoadWord(intent) != 0) StoreWordRelease(intent, 0);
  }
}

void RecoveryArea::BeginReplace(KeyHash hash, Slot old_slot, Slot new_slot) {
  Begin(IntentOf(hash), {.check = 0,
                         .kind = Intent::kReplace,
                         .old_slot = old_slot.word(),
                         .words = {new_slot.word()}});
}

void RecoveryArea::BeginTouch(KeyHash hash, Slot slot) {
  Intent intent{.check = 0, .kind = Intent::kTouch, .old_slot = slot.word(), .words = {}};
  // The last word is a large item's placing. A sealed item has other bytes there, which do no harm.
  LoadWords(intent.words, region_ + slot.offset(), sizeof(intent.words));
  Begin(IntentOf(hash), intent);
}

// The check comes last. Before it is stored, there is no intent.
void RecoveryArea::Begin(std::byte* at, Intent intent) {
  intent.check = CheckOf(intent);
  StoreInOrder(at + kCheckBytes, reinterpret_cast<std::byte*>(&intent) + kCheckBytes,
               sizeof(intent) - kCheckBytes);
  StoreWordRelease(at, intent.check);
}

void RecoveryArea::End(KeyHash hash) { StoreWordRelease(IntentOf(hash), 0); }

}  // namespace gannet
