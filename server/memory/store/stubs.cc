// Makes stubs by the stores of any replacement, so that readers see the item, or look again and
// find the stub.

#include "server/memory/store/stubs.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "common/base/check.h"
#include "common/base/words.h"
#include "server/memory/store/hash_of_home.h"
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

// REQUIRES: the key's lock.
StubValue LoadStub(const Items& items, Slot slot) {
  StubValue stub;
  LoadWords(&stub, items.Block(slot.offset()) + sizeof(ItemHeader), sizeof(stub));
  return stub;
}

bool LeadsInto(const TierOfStore& tier, const StubValue& stub) {
  return stub.kind == StubValue::kOnDisk && stub.tier == static_cast<uint32_t>(tier.number) &&
         stub.position >= kTierBlockBytes &&
         stub.position < kTierBlockBytes + tier.segments * tier.segment_bytes;
}

// Removes stubs of a home, and returns how many, or nullopt if the table is not the newest any
// more. While the index grows, to lock a key moves its former home into the newest table.
std::optional<uint64_t> RemoveOfHome(Items& items, IndexTable& table, uint64_t home,
                                     absl::FunctionRef<bool(const StubValue&)> goes) {
  const uint64_t homes = table.geometry().homes;
  { const Index::Lock migrates(items.index(), KeyHash(gannet::FirstHashOf(home, homes))); }
  { const Index::Lock migrates(items.index(), KeyHash(gannet::FirstHashOf(home + 1, homes) - 1)); }
  const Index::Lock lock(items.index(), table, home);
  for (uint64_t removed = 0;; ++removed) {
    if (!items.index().IsCurrent(table)) return std::nullopt;
    // A removal may move another key of the home, so this makes the list again.
    Items::FoundOfHome found;
    const auto listed = std::span(found).first(table.List(home, found));
    const auto one = std::ranges::find_if(listed, [&](const Index::Found& it) {
      return IsStub(it.slot) && goes(LoadStub(items, it.slot));
    });
    if (one == listed.end()) return removed;
    items.RemoveItem(lock, one->place, one->slot);
  }
}

// Shows all stubs, some of them perhaps twice, and removes those for which goes() returns true.
// Returns how many.
uint64_t RemoveIf(Items& items, absl::FunctionRef<bool(const StubValue&)> goes) {
  uint64_t removed = 0;
  std::shared_ptr<IndexTable> table = items.index().Hold();
  for (uint64_t home = 0; home < table->geometry().homes;) {
    const std::optional<uint64_t> of_home = RemoveOfHome(items, *table, home, goes);
    removed += of_home.value_or(0);
    home = of_home ? home + 1 : 0;
    if (!of_home) table = items.index().Hold();
  }
  return removed;
}

}  // namespace

Stubs::Stubs(Items& items, const StoreOptions& options)
    : items_(items), lock_words_(options.lock_words), tier_(*options.tier) {
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
  const char* const key_at =
      KeyOfItem(items_.Block(found->slot.offset()), header.key_bytes(), header.value_bytes);
  const std::string_view key(key_at, header.key_bytes());
  std::byte* const block = items_.heap().Allocate(StubBytes(key.size()));
  if (block == nullptr) return false;
  const uint64_t offset = static_cast<uint64_t>(block - items_.Block(0));
  const StubValue stub{.kind = StubValue::kOnDisk,
                       .reserved = {},
                       .value_bytes = place.value_bytes,
                       .tier = static_cast<uint32_t>(tier_.number),
                       .lap = place.lap,
                       .position = place.position,
                       .version = place.version};
  header.value_bytes = sizeof(stub);
  StoreDead(block);
  const ItemSeal seal(hash, StubPlace(items_.PlaceAt(offset)));
  const Slot slot = Slot::Of(hash.Tag(), kSizeClassMarker, offset);
  const uint64_t live = StoreContent(block, BlockClass(slot, key.size()), header, key,
                                     {reinterpret_cast<const char*>(&stub), sizeof(stub)}, seal);
  items_.ReplaceItem(lock, hash, found->place, found->slot, slot, live);
  items_.NoteStub(slot);
  items_.FreeItem(found->slot);
  return true;
}

bool Stubs::Delete(KeyHash hash, const TierPlace& place) {
  const Index::Lock lock(items_.index(), hash);
  const std::optional<Index::Found> found = Find(lock, hash, place);
  if (!found) return false;
  items_.RemoveItem(lock, found->place, found->slot);
  return true;
}

ReadOutcome Stubs::Outcome(const Items& items, Slot slot) {
  const ItemHeader header = items.LoadHeader(slot);
  const TierPlace place = PlaceOf(LoadStub(items, slot));
  return {.status = ReplyStatus::kBufferTooSmall,
          .version = header.version,
          .value_bytes = place.value_bytes,
          .attributes = {header.flags, header.expiry()},
          .on_disk = place};
}

std::vector<uint32_t> Stubs::Laps() {
  std::vector<uint32_t> laps(tier_.segments);
  RemoveIf(items_, [&](const StubValue& stub) {
    uint32_t& lap = laps[(stub.position - kTierBlockBytes) / tier_.segment_bytes];
    lap = std::max(lap, stub.lap);
    return false;
  });
  return laps;
}

void Stubs::DropLost(Items& items, const std::optional<TierOfStore>& tier) {
  const uint64_t dropped =
      RemoveIf(items, [&](const StubValue& stub) { return !tier || !LeadsInto(*tier, stub); });
  if (dropped == 0) return;
  LOG(WARNING) << dropped << " keys are gone: their values are on a disk that "
               << (tier ? "--tier does not name"
                        : "this server does not have, as it has no --tier");
}

void Stubs::NoteMade(uint32_t block_class) {
  count_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(SizeClassBytes(block_class), std::memory_order_relaxed);
}

void Stubs::NoteGone(uint32_t block_class) {
  count_.fetch_sub(1, std::memory_order_relaxed);
  bytes_.fetch_sub(SizeClassBytes(block_class), std::memory_order_relaxed);
}

std::optional<Index::Found> Stubs::Find(const Index::Lock& held, KeyHash hash,
                                        const TierPlace& place) const {
  return items_.index().Find(held, hash, [&](Slot slot) {
    return IsStub(slot) && PlaceOf(LoadStub(items_, slot)) == place;
  });
}

}  // namespace gannet
