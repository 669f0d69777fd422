// Makes stubs by the stores of any replacement, so that readers see the item, or look again and
// find the stub. Gives values to who writes them to the disk. Deletes stubs: one, those that lead
// to a segment, and those that lead nowhere.

#include "server/memory/store/stubs.h"

#include <glog/logging.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string_view>

#include "absl/base/dynamic_annotations.h"
#include "absl/functional/function_ref.h"
#include "common/base/check.h"
#include "common/base/words.h"
#include "server/memory/store/evictor.h"
#include "server/memory/store/hash_of_home.h"
#include "server/memory/store/items.h"
#include "server/memory/store/large_writer.h"
#include "server/memory/store/store_find.h"
#include "server/memory/tier/tier_buffer.h"

namespace gannet {
namespace {

// This share of the heap may be stubs.
constexpr uint64_t kShareOfHeap = 4;
// For so many bytes of the heap, one place is known of an item whose value is on the disk. It takes
// some 130 bytes.
constexpr uint64_t kHeapBytesPerPlace = 8 << 10;
// A value is promoted that has more uses than two.
constexpr uint8_t kUsedTwice = Heat::kUsedOnce + Heat::kUnitsPerDoubling;

StubValue StubOf(const TierPlace& place, uint64_t tier) {
  return {.kind = StubValue::kOnDisk,
          .reserved = {},
          .value_bytes = place.value_bytes,
          .tier = static_cast<uint32_t>(tier),
          .lap = place.lap,
          .position = place.position,
          .version = place.version};
}

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
                                     absl::FunctionRef<bool(Slot, const StubValue&)> goes) {
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
      return IsStub(it.slot) && goes(it.slot, LoadStub(items, it.slot));
    });
    if (one == listed.end()) return removed;
    items.RemoveItem(lock, one->place, one->slot);
  }
}

// Shows all stubs, some of them perhaps twice, and removes those for which goes() returns true.
// Returns how many.
uint64_t RemoveIf(Items& items, absl::FunctionRef<bool(Slot, const StubValue&)> goes) {
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

// Stores the value of an item that comes back from the disk. Returns the block's offset.
uint64_t StoreComingValue(Items& items, std::byte* block, std::string_view key,
                          std::string_view value) {
  StoreDeadFirst(block);
  StoreValueAt(block + LargeValueOffset(key.size()), value);
  return static_cast<uint64_t>(block - items.Block(0));
}

// Counts a use of a stub, which has its key's heat where those of keys are that were evicted.
// Returns the heat.
uint8_t CountUse(Eviction& eviction, KeyHash hash) {
  const uint8_t before = eviction.keys.Take(hash);
  const auto random = static_cast<uint32_t>(eviction.Random());
  const uint8_t heat =
      before == Heat::kNone ? Heat::kUsedOnce : eviction.heat.After(before, 1, random);
  eviction.keys.Remember(hash, heat);
  return heat;
}

}  // namespace

std::optional<Index::Found> FindVersion(Items& items, const Index::Lock& held, KeyHash hash,
                                        uint64_t version) {
  return items.index().Find(held, hash, [&](Slot slot) {
    return !IsStub(slot) && items.LoadHeader(slot).version == version;
  });
}

TierPlace PlaceOfStub(const Items& items, Slot stub) { return PlaceOf(LoadStub(items, stub)); }

Stubs::Stubs(Items& items, const StoreOptions& options)
    : items_(items),
      tier_(*options.tier),
      budget_(items.heap().capacity_bytes() / kShareOfHeap),
      ahead_(items.heap().capacity_bytes() / kHeapBytesPerPlace + AheadOfEviction::kChosenMax),
      reserve_(items.heap()) {
  GANNET_CHECK(options.evict, "a tier gets what is evicted");
  GANNET_CHECK(tier_.number != 0 && tier_.segments != 0, "a tier has a number and segments");
}

bool Stubs::Make(KeyHash hash, const TierPlace& place) {
  const Index::Lock lock(items_.index(), hash);
  const std::optional<Index::Found> found = FindVersion(items_, lock, hash, place.version);
  if (!found) return false;
  // What clients have copies of is used much.
  if (items_.leases() != nullptr && items_.leases()->MayHave(hash)) return false;
  // A lock that is taken after this load finds the stub.
  if (items_.lock_words().WordOf(hash) != 0) return false;
  return MakeOf(lock, hash, *found, place);
}

bool Stubs::Replace(const Index::Lock& held, KeyHash hash, const Index::Found& found) {
  if (IsStub(found.slot)) return false;
  const uint64_t version = items_.LoadHeader(found.slot).version;
  const std::optional<TierPlace> place = ahead_.PlaceOf(version);
  if (!place || !MakeOf(held, hash, found, *place)) return false;
  ahead_.Drop(version);
  return true;
}

// If there is no block for it, a stub is written over its item, as any write in a full heap. Then
// it has a unit of the heap for itself, until it is moved. In a memory file nothing is written
// over.
bool Stubs::MakeOf(const Index::Lock& held, KeyHash hash, const Index::Found& found,
                   const TierPlace& place) {
  ItemHeader header = items_.LoadHeader(found.slot);
  GANNET_CHECK(header.value_bytes == place.value_bytes, "a record of another value");
  const uint64_t old_offset = found.slot.offset();
  std::byte* const item = items_.Block(old_offset);
  const std::string key(KeyOfItem(item, header.key_bytes(), header.value_bytes),
                        header.key_bytes());
  const uint32_t block_class = SizeClassFor(StubBytes(key.size()));
  if (bytes() + SizeClassBytes(block_class) > budget_) return false;
  std::byte* const other = reserve_.Take(block_class);
  if (other == nullptr && items_.recovery() != nullptr) {
    reserve_.NoteShortage();
    return false;
  }
  std::byte* const block = other == nullptr ? item : other;
  const uint64_t offset = static_cast<uint64_t>(block - items_.Block(0));
  const StubValue stub = StubOf(place, tier_.number);
  header.value_bytes = sizeof(stub);
  const ItemSeal seal(hash, StubPlace(items_.PlaceAt(offset)));
  const Slot slot = Slot::Of(hash.Tag(), kSizeClassMarker, offset);
  items_.eviction()->keys.Remember(hash, items_.eviction()->heat.Get(old_offset));
  StoreDeadFirst(block);
  const uint64_t live = StoreContent(block, block_class, header, key,
                                     {reinterpret_cast<const char*>(&stub), sizeof(stub)}, seal);
  if (other != nullptr) {
    items_.ReplaceItem(held, hash, found.place, found.slot, slot, live);
    items_.FreeItem(found.slot);
  } else {
    StoreLive(block, live);
    Index::Replace(held, found.place, slot);
    items_.heap().Shrink(block, found.slot.size_class(), StubBytes(key.size()));
  }
  items_.NoteStub(slot);
  reserve_.Fill();
  made_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

std::optional<Index::Found> Stubs::Find(const Index::Lock& held, const Name& stub) const {
  return items_.index().Find(held, stub.hash, [&](Slot slot) {
    return IsStub(slot) && PlaceOfStub(items_, slot) == stub.place;
  });
}

bool Stubs::Delete(KeyHash hash, const TierPlace& place) {
  const Index::Lock lock(items_.index(), hash);
  const std::optional<Index::Found> found = Find(lock, {hash, place});
  if (found) items_.RemoveItem(lock, found->place, found->slot);
  return found.has_value();
}

std::vector<uint32_t> Stubs::Laps() {
  std::vector<uint32_t> laps(tier_.segments);
  RemoveIf(items_, [&](Slot /*slot*/, const StubValue& stub) {
    uint32_t& lap = laps[(stub.position - kTierBlockBytes) / tier_.segment_bytes];
    lap = std::max(lap, stub.lap);
    return false;
  });
  return laps;
}

void DropLostStubs(Items& items, const std::optional<TierOfStore>& tier) {
  const uint64_t dropped = RemoveIf(items, [&](Slot /*slot*/, const StubValue& stub) {
    return !tier || !LeadsInto(*tier, stub);
  });
  if (dropped == 0) return;
  LOG(WARNING) << dropped << " keys are gone: their values are on a disk that "
               << (tier ? "--tier does not name"
                        : "this server does not have, as it has no --tier");
}

ReadOutcome Stubs::Read(Items& items, const Index::Lock& held, const Index::Found& stub) {
  const StubValue value = LoadStub(items, stub.slot);
  if (items.stubs() == nullptr || !LeadsInto(items.stubs()->tier_, value)) {
    items.RemoveItem(held, stub.place, stub.slot);
    return {.status = ReplyStatus::kNotFound};
  }
  const ItemHeader header = items.LoadHeader(stub.slot);
  return {.status = ReplyStatus::kBufferTooSmall,
          .version = header.version,
          .value_bytes = value.value_bytes,
          .attributes = {header.flags, header.expiry()},
          .on_disk = PlaceOf(value)};
}

Stubs::Counts Stubs::counts() const {
  return {.made = made_.load(std::memory_order_relaxed),
          .evicted = evicted_.load(std::memory_order_relaxed),
          .forgotten = forgotten_.load(std::memory_order_relaxed),
          .brought_back = brought_back_.load(std::memory_order_relaxed),
          .promoted = promoted_.load(std::memory_order_relaxed)};
}

void Stubs::NoteMade(uint32_t block_class) {
  count_.fetch_add(1, std::memory_order_relaxed);
  bytes_.fetch_add(SizeClassBytes(block_class), std::memory_order_relaxed);
}

void Stubs::NoteGone(uint32_t block_class) {
  count_.fetch_sub(1, std::memory_order_relaxed);
  bytes_.fetch_sub(SizeClassBytes(block_class), std::memory_order_relaxed);
}

// Writing ahead.

bool Stubs::MayBeChosen(Slot slot) const {
  // All values that a tier takes are those of large items.
  if (!IsLargeClass(slot.size_class())) return false;
  const ItemHeader header = items_.LoadHeader(slot);
  if (header.value_bytes < kTierValueBytesMin || header.value_bytes > kTierValueBytesMax)
    return false;
  const AheadOfEviction::State state = ahead_.StateOf(header.version);
  return state == AheadOfEviction::State::kNotHere || state == AheadOfEviction::State::kKept;
}

bool Stubs::Choose(Slot slot) {
  reserve_.Want(SizeClassFor(StubBytes(items_.LoadHeader(slot).key_bytes())));
  return ahead_.Add({.hash = items_.KeyHashAt(slot),
                     .version = items_.LoadHeader(slot).version,
                     .bytes = items_.heap().RoomAt(items_.Block(slot.offset()))});
}

void Stubs::AskWriter() const {
  if (tier_.wanted != nullptr) tier_.wanted->Ask();
}

std::optional<TierRecord> Stubs::NextToWrite() {
  for (int looks = 0; looks < 2; ++looks) {
    while (const std::optional<AheadOfEviction::Item> item = ahead_.Take()) {
      if (const std::optional<TierRecord> record = Copy(*item)) return record;
      ahead_.Drop(item->version);
    }
    if (!evictor_->ChooseAhead()) break;
  }
  return std::nullopt;
}

// The value is long, so it is copied without the lock, while others may write there. It is that of
// the item if the commit word is the same afterwards: each is live only once.
std::optional<TierRecord> Stubs::Copy(const AheadOfEviction::Item& item) {
  Slot slot;
  ItemHeader header;
  {
    const Index::Lock lock(items_.index(), item.hash);
    const std::optional<Index::Found> found = FindVersion(items_, lock, item.hash, item.version);
    if (!found) return std::nullopt;
    slot = found->slot;
    header = items_.LoadHeader(slot);
    const std::byte* const block = items_.Block(slot.offset());
    key_.assign(KeyOfItem(block, header.key_bytes(), header.value_bytes), header.key_bytes());
  }
  if (value_ == nullptr) value_ = std::make_unique_for_overwrite<std::byte[]>(kTierValueBytesMax);
  // The block may become that of a long PUT, into which the device writes. TSan would call that a
  // race.
  ABSL_ANNOTATE_IGNORE_READS_BEGIN();
  LoadWords(value_.get(), items_.Block(slot.offset() + LargeValueOffset(key_.size())),
            header.value_bytes);
  ABSL_ANNOTATE_IGNORE_READS_END();
  // Acquire: if any of it was stored after the commit word died, that is found dead below.
  std::atomic_thread_fence(std::memory_order_acquire);
  const Index::Lock lock(items_.index(), item.hash);
  const std::optional<Index::Found> found = FindVersion(items_, lock, item.hash, item.version);
  if (!found || found->slot != slot || items_.LoadHeader(slot).commit != header.commit) {
    return std::nullopt;
  }
  return TierRecord{.key = key_,
                    .value = {reinterpret_cast<const char*>(value_.get()), header.value_bytes},
                    .hash = item.hash.value(),
                    .version = header.version,
                    .flags = header.flags,
                    .expiry = header.expiry()};
}

void Stubs::Written(uint64_t hash, const TierPlace& place) {
  ahead_.Written(place);
  const Heap& heap = items_.heap();
  if (heap.use().occupied_bytes() <= items_.eviction()->FullBytes(heap.kept_bytes())) return;
  if (Make(KeyHash(hash), place)) ahead_.Drop(place.version);
}

void Stubs::NotWritten(const TierPlace& place) { ahead_.NotWritten(place.version); }

// What is evicted meanwhile becomes no stub that leads there: its place is asked for under the
// key's lock.
void Stubs::Forget(const TierCircle::Segment& segment, TierCircle* circle) {
  ahead_.DropWrittenIn(segment.begin, segment.end, segment.lap);
  if (segment.lap == 0) return;
  for (const Name& stub : ListLeaving(segment)) {
    if (items_.lock_words().WordOf(stub.hash) != 0 && BringBack(stub, circle)) {
      brought_back_.fetch_add(1, std::memory_order_relaxed);
    } else if (Delete(stub.hash, stub.place)) {
      forgotten_.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

std::vector<Stubs::Name> Stubs::ListLeaving(const TierCircle::Segment& segment) {
  std::vector<Name> leaving;
  if (segment.list) {
    leaving.reserve(segment.list->size());
    for (const TierListEntry& entry : *segment.list) {
      const KeyHash hash(entry.hash);
      const Index::Lock lock(items_.index(), hash);
      const auto found = items_.index().Find(lock, hash, [&](Slot slot) {
        return IsStub(slot) && PlaceOfStub(items_, slot).position == entry.position;
      });
      if (found) leaving.push_back({hash, PlaceOfStub(items_, found->slot)});
    }
    return leaving;
  }
  RemoveIf(items_, [&](Slot slot, const StubValue& stub) {
    if (stub.position >= segment.begin && stub.position < segment.end) {
      leaving.push_back({items_.KeyHashAt(slot), PlaceOf(stub)});
    }
    return false;
  });
  return leaving;
}

bool Stubs::BringBack(const Name& stub, TierCircle* circle) {
  std::string key;
  {
    const Index::Lock lock(items_.index(), stub.hash);
    const std::optional<Index::Found> found = Find(lock, stub);
    if (!found) return false;
    const ItemHeader header = items_.LoadHeader(found->slot);
    key.assign(KeyAt(items_.Block(found->slot.offset()), header.value_bytes), header.key_bytes());
  }
  const TierBuffer buffer(kTierReadBytesMax);
  if (!circle->Pin(stub.place)) return false;
  const absl::StatusOr<std::string_view> value = circle->Read(stub.place, key, buffer.bytes());
  circle->Unpin(stub.place);
  if (!value.ok()) return false;
  const uint64_t bytes = ItemBytes(key.size(), value->size());
  std::byte* block = items_.heap().Allocate(bytes);
  if (block == nullptr) block = evictor_->EvictFor(bytes, Unwritten::kGoes);
  return block != nullptr &&
         ReplaceByItem(stub.hash, stub.place, key, StoreComingValue(items_, block, key, *value));
}

void Stubs::Promote(KeyHash hash, const TierPlace& place, std::string_view key,
                    std::string_view value) {
  uint8_t heat;
  {
    const Index::Lock lock(items_.index(), hash);
    if (!Find(lock, {hash, place})) return;
    heat = CountUse(*items_.eviction(), hash);
  }
  if (heat <= kUsedTwice) return;
  std::byte* const block = evictor_->RoomForPromoted(ItemBytes(key.size(), value.size()), heat);
  if (block != nullptr &&
      ReplaceByItem(hash, place, key, StoreComingValue(items_, block, key, value))) {
    promoted_.fetch_add(1, std::memory_order_relaxed);
  }
}

// By the stores of any replacement. The item has the version that it had, perhaps in the same
// block, and a placing of its own: so its commit word was never there.
bool Stubs::ReplaceByItem(KeyHash hash, const TierPlace& place, std::string_view key,
                          uint64_t offset) {
  const uint32_t size_class = SizeClassFor(ItemBytes(key.size(), place.value_bytes));
  const Index::Lock lock(items_.index(), hash);
  const std::optional<Index::Found> found = Find(lock, {hash, place});
  if (!found) {
    items_.FreeBlock(offset, size_class);
    return false;
  }
  ItemHeader header = items_.LoadHeader(found->slot);
  header.value_bytes = place.value_bytes;
  const ItemSeal seal(hash, items_.PlaceAt(offset));
  const uint64_t live =
      StoreLargeHead(items_.Block(offset), {header, items_.NextVersion()}, key, seal);
  const Slot slot = Slot::Of(hash.Tag(), size_class, offset);
  items_.ReplaceItem(lock, hash, found->place, found->slot, slot, live);
  items_.eviction()->Installed(hash, offset, size_class, items_.eviction()->keys.Take(hash));
  ahead_.Keep({hash, header.version, items_.heap().RoomAt(items_.Block(offset))}, place);
  items_.FreeItem(found->slot);
  return true;
}

}  // namespace gannet
