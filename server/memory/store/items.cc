// Items are looked at and removed here. What an item is of, and how long its block is, its header
// says, and for all but stubs its slot, too.

#include "server/memory/store/items.h"

#include <utility>

#include "server/memory/store/item_writer.h"
#include "server/memory/store/store_find.h"
#include "server/memory/store/stubs.h"

namespace gannet {
namespace {

Index::Options IndexOptions(const StoreOptions& options, const Superblock& superblock,
                            const Survey* survey, const IndexedItems* items) {
  Index::Options index{.region = options.region,
                       .geometry = superblock.index,
                       .incarnation = superblock.incarnation,
                       .items = items,
                       .guesses = !options.memory_file};
  if (survey == nullptr) return index;
  index.adopted = survey->tables().front().slots;
  if (survey->tables().size() == 1) return index;
  index.next = survey->tables().back().geometry;
  index.adopted_next = survey->tables().back().slots;
  return index;
}

}  // namespace

Items::Items(const StoreOptions& options, const Superblock& superblock, std::unique_ptr<Heap> heap,
             const Survey* survey)
    : region_(options.region),
      superblock_(superblock),
      lock_words_(options.lock_words),
      heap_(std::move(heap)),
      recovery_(options.memory_file ? std::make_unique<RecoveryArea>(options.region) : nullptr),
      eviction_(options.evict ? std::make_unique<Eviction>(superblock.region_bytes,
                                                           heap_->capacity_bytes(), options.heats)
                              : nullptr),
      leases_(options.leases),
      stubs_(options.tier ? std::make_unique<Stubs>(*this, options) : nullptr),
      index_(IndexOptions(options, superblock, survey, this)),
      next_version_(options.first_version) {}

Items::~Items() = default;

ItemHeader Items::LoadHeader(Slot slot) const {
  ItemHeader header;
  LoadWords(&header, Block(slot.offset()), sizeof(header));
  return header;
}

KeyHash Items::KeyHashAt(Slot slot) const {
  const ItemHeader header = LoadHeader(slot);
  const char* key = KeyOfItem(Block(slot.offset()), header.key_bytes(), header.value_bytes);
  return KeyHash::Of({key, header.key_bytes()}, superblock_.hash_seed);
}

std::string_view Items::GuessKeyAt(uint64_t offset, KeyCopy* copy) const {
  ItemHeader header;
  if (offset + sizeof(header) > superblock_.region_bytes) return {};
  LoadWords(&header, Block(offset), sizeof(header));
  const uint32_t key_bytes = header.key_bytes();
  if ((header.commit & kCommitLive) == 0 || key_bytes == 0 || key_bytes > kKeyBytesMax) return {};
  const uint64_t key_at = offset + KeyOffset(key_bytes, header.value_bytes);
  const uint64_t first_word = key_at / sizeof(uint64_t) * sizeof(uint64_t);
  if (key_at + key_bytes > superblock_.region_bytes) return {};
  LoadWords(copy->data(), Block(first_word), key_at - first_word + key_bytes);
  return {copy->data() + (key_at - first_word), key_bytes};
}

// First marks the item dead, which is the moment when the key is gone. Then publishes slot and
// checksum, and then frees the block.
void Items::RemoveItem(const Index::Lock& held, const Index::Place& place, Slot slot) {
  std::byte* const block = Block(slot.offset());
  // Whoever removes it because somebody asked for that has ended its lease before.
  if (leases_ != nullptr) leases_->Drop(KeyHashAt(slot));
  NoteRemoved(LoadWord(block + offsetof(ItemHeader, version)));
  CountExpiring(ExpiryOf(block), Expiry());
  StoreDead(block);
  index_.Remove(held, place);
  FreeItem(slot);
}

void Items::NoteRemoved(uint64_t version) {
  uint64_t highest = removed_version_.load(std::memory_order_relaxed);
  while (highest < version &&
         !removed_version_.compare_exchange_weak(highest, version, std::memory_order_relaxed)) {
  }
}

void Items::NoteStub(Slot slot) {
  if (stubs_ != nullptr) stubs_->NoteMade(BlockClassOf(slot));
  if (eviction_ != nullptr) eviction_->heat.Set(slot.offset(), Heat::kLeast);
}

void Items::FreeItem(Slot slot) {
  if (IsStub(slot) && stubs_ != nullptr) [[unlikely]]
    stubs_->NoteGone(BlockClassOf(slot));
  FreeBlock(slot.offset(), BlockClassOf(slot));
}

void Items::FreeBlock(uint64_t offset, uint32_t size_class) {
  // A smaller block may share the byte with its neighbour.
  if (eviction_ != nullptr && SizeClassBytes(size_class) >= Heat::kGranuleBytes) {
    eviction_->heat.Set(offset, Heat::kNone);
  }
  heap_->Free(Block(offset), size_class);
}

}  // namespace gannet
