// Store: walks over its items, home by home. Positions are hashes, so they stay right if the number
// of homes changes between two steps.

#include <vector>

#include "server/store/hash_of_home.h"
#include "server/store/store_find.h"

namespace gannet {

Change Store::ItemAt(Slot slot) const {
  const std::byte* const block = Block(slot.offset());
  const ItemHeader header = LoadHeader(slot);
  const size_t key_bytes = header.key_bytes();
  return {
      .kind = Change::Kind::kPut,
      .version = header.version,
      .expiry_ms = header.expiry_ms(),
      .flags = header.flags,
      .key = {KeyOfItem(block, key_bytes, header.value_bytes), key_bytes},
      .value = {reinterpret_cast<const char*>(block) + ValueOffset(key_bytes, header.value_bytes),
                header.value_bytes}};
}

Change Store::DeletionOf(Slot slot) {
  return {.kind = Change::Kind::kDelete, .version = NextVersion(), .key = ItemAt(slot).key};
}

std::optional<uint64_t> Store::VisitHome(uint64_t position,
                                         const std::function<void(const Change&)>& visit) {
  const std::shared_ptr<IndexTable> table = index_.Hold();
  const uint64_t homes = table->geometry().homes;
  const uint64_t home = MapToRange(position, homes);
  const Index::Lock lock(index_, *table, home);
  // While there are two tables, the home's keys may be in either.
  if (index_.growing() || !index_.IsCurrent(*table)) return std::nullopt;
  std::vector<Slot> slots;
  table->AppendSlots(home, &slots);
  for (const Slot slot : slots) visit(ItemAt(slot));
  return FirstHashOf(home + 1, homes);
}

// While the index grows, keys of this home may still be in the old table. To lock a key moves its
// old home into the new table, and a new home's keys are in at most two old ones.
bool Store::ListKeysOf(IndexTable& table, uint64_t home, std::vector<std::string>* keys) {
  const uint64_t homes = table.geometry().homes;
  { const Index::Lock migrates(index_, KeyHash(FirstHashOf(home, homes))); }
  { const Index::Lock migrates(index_, KeyHash(FirstHashOf(home + 1, homes) - 1)); }
  const Index::Lock lock(index_, table, home);
  if (!index_.IsCurrent(table)) return false;
  std::vector<Slot> slots;
  table.AppendSlots(home, &slots);
  for (const Slot slot : slots) keys->emplace_back(ItemAt(slot).key);
  return true;
}

uint64_t Store::ListKeys(uint64_t position, std::vector<std::string>* keys) {
  for (;;) {
    const std::shared_ptr<IndexTable> table = index_.Hold();
    const uint64_t homes = table->geometry().homes;
    const uint64_t home = MapToRange(position, homes);
    if (!ListKeysOf(*table, home, keys)) continue;  // the index has begun to grow
    return FirstHashOf(home + 1, homes);
  }
}

}  // namespace gannet
