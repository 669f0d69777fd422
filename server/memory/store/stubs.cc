// Makes stubs by the stores of any replacement, so that readers see the item, or look again and
// find the stub.

#include "server/memory/store/stubs.h"

#include <string_view>

#include "common/base/check.h"
#include "common/base/words.h"
#include "server/memory/store/items.h"
#include "server/memory/store/large_writer.h"
#include "server/memory/store/store_find.h"

namespace gannet {
namespace {

TierPlace PlaceOf(const StubValue& stub) {
  return {.position = stub.position,
          .lap = stub.lap,
          .value_bytes = stub.value_bytes,
          .version = stub.version};
}

}  // namespace

Stubs::Stubs(Items& items, const StoreOptions& options)
    : items_(items),
      lock_words_(options.lock_words),
      tier_(static_cast<uint32_t>(options.tier->number)) {
  GANNET_CHECK(options.evict, "a tier gets what is evicted");
}

bool Stubs::Make(KeyHash hash, const TierPlace& place, ServerTime now) {
  const Index::Lock lock(items_.index(), hash);
  const auto found = items_.index().Find(lock, hash, [&](Slot slot) {
    return !IsStub(slot) && items_.LoadHeader(slot).version == place.version;
  });
  if (!found || items_.EndLease(lock, hash, now) != 0) return false;
  // A lock that is taken after this load finds the stub.
  if (__atomic_load_n(&lock_words_[hash.LockIndex(lock_words_.size())], __ATOMIC_ACQUIRE) != 0) {
    return false;
  }
  ItemHeader header = items_.LoadHeader(found->slot);
  GANNET_CHECK(header.value_bytes == place.value_bytes, "a record of another value");
  const char* const key_at = KeyOfItem(items_.Block(found->slot.offset()), header.key_bytes(),
                                       header.value_bytes);
  const std::string_view key(key_at, header.key_bytes());
  std::byte* const block = items_.heap().Allocate(StubBytes(key.size()));
  if (block == nullptr) return false;
  const uint64_t offset = static_cast<uint64_t>(block - items_.Block(0));
  const StubValue stub{.kind = StubValue::kOnDisk,
                       .reserved = {},
                       .value_bytes = place.value_bytes,
                       .tier = tier_,
                       .lap = place.lap,
                       .position = place.position,
                       .version = place.version};
  header.value_bytes = sizeof(stub);
  StoreDead(block);
  const ItemSeal seal(hash, StubPlace(items_.PlaceAt(offset)));
  const Slot slot = Slot::Of(hash.Tag(), kSizeClassMarker, offset);
  const uint64_t live =
      StoreContent(block, BlockClass(slot, key.size()), header, key,
                   {reinterpret_cast<const char*>(&stub), sizeof(stub)}, seal);
  items_.ReplaceItem(lock, hash, found->place, found->slot, slot, live);
  items_.FreeItem(found->slot);
  count_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(SizeClassBytes(BlockClass(slot, key.size())), std::memory_order_relaxed);
  return true;
}

bool Stubs::Delete(KeyHash hash, const TierPlace& place) {
  const Index::Lock lock(items_.index(), hash);
  const std::optional<Index::Found> found = Find(lock, hash, place);
  if (!found) return false;
  items_.RemoveItem(lock, found->place, found->slot);
  return true;
}

ReadOutcome Stubs::Outcome(Slot slot) const {
  const ItemHeader header = items_.LoadHeader(slot);
  const TierPlace place = PlaceOf(Load(slot));
  return {.status = ReplyStatus::kBufferTooSmall,
          .version = header.version,
          .value_bytes = place.value_bytes,
          .attributes = {header.flags, header.expiry()},
          .on_disk = place};
}

void Stubs::NoteGone(uint32_t block_class) {
  count_.fetch_sub(1, std::memory_order_relaxed);
  bytes_.fetch_sub(SizeClassBytes(block_class), std::memory_order_relaxed);
}

StubValue Stubs::Load(Slot slot) const {
  StubValue stub;
  LoadWords(&stub, items_.Block(slot.offset()) + sizeof(ItemHeader), sizeof(stub));
  return stub;
}

std::optional<Index::Found> Stubs::Find(const Index::Lock& held, KeyHash hash,
                                        const TierPlace& place) const {
  return items_.index().Find(held, hash, [&](Slot slot) {
    return IsStub(slot) && PlaceOf(Load(slot)) == place;
  });
}

}  // namespace gannet
