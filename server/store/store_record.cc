// Store: how its items are listed for a snapshot, and how it is filled again.

#include <utility>

#include "server/store/hash_of_home.h"
#include "server/store/store_find.h"

namespace gannet {

// The slot was inserted a moment ago, and its item never became live.
void Store::TakeBack(KeyHash hash, Slot slot) {
  const auto found = index_.Find(hash, [slot](Slot it) { return it == slot; });
  RemoveItem(found->place, slot);
}

ReplyStatus Store::Restore(const Change& change, uint64_t now_ms) {
  const bool expired = change.expiry_ms != 0 && change.expiry_ms <= now_ms;
  if (change.kind == Change::Kind::kDelete || expired) {
    const KeyHash hash = KeyHash::Of(change.key, superblock_.hash_seed);
    Index::Lock lock(index_, hash);
    const Current current = FindCurrent(hash, change.key, now_ms);
    if (!current.there()) return ReplyStatus::kOk;
    if (!RecordDelete(current.slot, nullptr)) return ReplyStatus::kDiskRefuses;
    RemoveItem(current.place, current.slot);
    return ReplyStatus::kOk;
  }
  // A Put may need more than one version. It then replaces the item once more.
  WriteOutcome outcome;
  do {
    next_version_.store(change.version, std::memory_order_relaxed);
    outcome = Put(change.key, change.value, {change.flags, change.expiry_ms}, {}, now_ms);
  } while (outcome.status == ReplyStatus::kOk && outcome.version != change.version);
  return outcome.status;
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
  for (const Slot slot : slots) visit(ChangeOfItem(Block(slot.offset()), LoadHeader(slot)));
  return FirstHashOf(home + 1, homes);
}

}  // namespace gannet
