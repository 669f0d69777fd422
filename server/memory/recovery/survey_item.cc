#include "server/memory/recovery/survey_item.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "common/layout/stub.h"

namespace gannet {
namespace {

constexpr size_t kCommitBytes = sizeof(ItemHeader::commit);

// Returns whether the slot leads to memory that may hold an item with this header.
bool Plausible(Slot slot, const ItemHeader& header) {
  const uint32_t key_bytes = header.key_bytes();
  return key_bytes != 0 && key_bytes <= kKeyBytesMax && header.value_bytes <= kValueBytesMax &&
         (!IsStub(slot) || header.value_bytes == sizeof(StubValue)) &&
         SizeClassFor(ItemBytes(key_bytes, header.value_bytes)) == BlockClass(slot, key_bytes) &&
         header.version != 0;
}

// `key_bytes` may be less than that of the item, if that is not known yet.
bool WithinHeap(const SurveyPlace& place, Slot slot, uint32_t key_bytes) {
  const uint64_t bytes = SizeClassBytes(BlockClass(slot, key_bytes));
  return bytes > sizeof(LargeItemHeader) && slot.offset() >= place.heap_offset &&
         bytes <= place.region.size() && slot.offset() <= place.region.size() - bytes;
}

uint64_t ChecksumOf(const std::byte* item, const LargeItemHeader& header, bool large) {
  if (large) {
    std::array<std::byte, sizeof(header)> bytes;
    std::memcpy(bytes.data(), &header, sizeof(header));
    return Xxh3Unseeded(bytes.data() + kCommitBytes, sizeof(header) - kCommitBytes);
  }
  const size_t bytes = sizeof(ItemHeader) - kCommitBytes + header.item.value_bytes;
  if (std::memcmp(item + kCommitBytes, reinterpret_cast<const std::byte*>(&header) + kCommitBytes,
                  sizeof(ItemHeader) - kCommitBytes) == 0) {
    return Xxh3Unseeded(item + kCommitBytes, bytes);
  }
  // The header to judge is not the one in memory, so this puts it into a copy.
  std::array<std::byte, 4096> copy;
  std::memcpy(copy.data(), &header.item, sizeof(ItemHeader));
  std::memcpy(copy.data() + sizeof(ItemHeader), item + sizeof(ItemHeader), header.item.value_bytes);
  return Xxh3Unseeded(copy.data() + kCommitBytes, bytes);
}

KeyHash HashOf(const SurveyPlace& place, const std::byte* item, const ItemHeader& header) {
  const char* key =
      reinterpret_cast<const char*>(item) + KeyOffset(header.key_bytes(), header.value_bytes);
  return KeyHash::Of({key, header.key_bytes()}, place.hash_seed);
}

}  // namespace

SurveyedItem SurveyItem(const SurveyPlace& place, Slot slot, const LargeItemHeader* header) {
  if (!WithinHeap(place, slot, /*key_bytes=*/1)) return {};
  const std::byte* const item = place.region.data() + slot.offset();
  // The shortest block is longer than this header.
  const LargeItemHeader own = header != nullptr ? *header : LoadLargeItemHeader(item);
  const uint64_t commit = own.item.commit;
  if (commit == 0) return {.state = ItemState::kDead};
  const ItemState by_bit = (commit & kCommitLive) != 0 ? ItemState::kLive : ItemState::kSuperseded;
  const ItemState not_whole = by_bit == ItemState::kLive ? ItemState::kTorn : ItemState::kDead;
  if (!Plausible(slot, own.item) || !WithinHeap(place, slot, own.item.key_bytes())) {
    return {.state = not_whole};
  }
  const KeyHash hash = HashOf(place, item, own.item);
  const bool large = IsLargeClass(slot.size_class());
  const uint64_t checksum = ChecksumOf(item, own, large);
  const auto proves = [&](uint64_t incarnation) {
    const ItemPlace at = {incarnation, place.hash_seed, slot.offset()};
    const ItemSeal seal(hash, IsStub(slot) ? StubPlace(at) : at);
    return incarnation != 0 && seal.CommitWordOf(checksum) == (commit | kCommitLive);
  };
  if (!proves(place.incarnation) && !proves(place.taking_over)) return {.state = not_whole};
  const uint64_t last = large ? std::max(own.item.version, own.placing) : own.item.version;
  return {by_bit, hash, ItemBytes(own.item.key_bytes(), own.item.value_bytes), own.item.version,
          last + 1};
}

bool SealedFor(const SurveyPlace& place, Slot slot, uint64_t incarnation) {
  SurveyPlace only = place;
  only.incarnation = incarnation;
  only.taking_over = 0;
  return SurveyItem(only, slot).state == ItemState::kLive;
}

}  // namespace gannet
