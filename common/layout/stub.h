#ifndef GANNET_COMMON_LAYOUT_STUB_H_
#define GANNET_COMMON_LAYOUT_STUB_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

#include "common/layout/item.h"
#include "common/layout/item_proof.h"
#include "common/layout/slot.h"

namespace gannet {

// A stub is a sealed item whose value is not the key's, but says where that lies on a disk
// (docs/decisions/2026-11-29-tier.md). Its slot has class kSizeClassMarker. Version, flags and
// expiry are the key's.
struct StubValue {
  static constexpr uint8_t kOnDisk = 1;

  uint8_t kind;
  uint8_t reserved[3];
  uint32_t value_bytes;  // of the key's value
  uint32_t tier;         // the lower half of the tier's number
  uint32_t lap;
  uint64_t position;
  uint64_t version;  // of the record, which a touch does not change
};
static_assert(sizeof(StubValue) == 32 && std::is_trivially_copyable_v<StubValue>);
static_assert(offsetof(StubValue, tier) == 8 && offsetof(StubValue, position) == 16);

constexpr uint64_t StubBytes(size_t key_bytes) {
  return SealedItemBytes(key_bytes, sizeof(StubValue));
}

constexpr bool IsStub(Slot slot) { return slot.size_class() == kSizeClassMarker; }

// Returns the class of the block that a slot leads to, whose item has a key of so many bytes. That
// is the slot's class, but a stub's slot does not say how long its block is. Whoever asks for a
// block's length or class asks this.
constexpr uint32_t BlockClass(Slot slot, size_t key_bytes) {
  return IsStub(slot) ? SizeClassFor(StubBytes(key_bytes)) : slot.size_class();
}

// The place by which a stub at `place` is sealed and proved, with what seals and proves items. It
// is another one, so that a client that remembers the place of an item never takes a stub for it,
// and nobody takes an item for a stub.
constexpr ItemPlace StubPlace(ItemPlace place) {
  constexpr uint64_t kSalt = 0x5d0f3c8be1a24796;
  place.incarnation ^= kSalt;
  return place;
}

// Returns what the value of a proved stub says, or nullopt if it is of a kind that is not known.
inline std::optional<StubValue> DecodeStub(std::string_view value) {
  StubValue stub;
  if (value.size() != sizeof(stub)) return std::nullopt;
  std::memcpy(&stub, value.data(), sizeof(stub));
  if (stub.kind != StubValue::kOnDisk) return std::nullopt;
  if ((stub.reserved[0] | stub.reserved[1] | stub.reserved[2]) != 0) return std::nullopt;
  return stub;
}

}  // namespace gannet

#endif  // GANNET_COMMON_LAYOUT_STUB_H_
