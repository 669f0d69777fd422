// Store: what it tells a ChangeSink, and how it is filled again from what the sink was told.

#include <utility>

#include "server/store/hash_of_home.h"
#include "server/store/store_find.h"

namespace gannet {

bool Store::Record(Change change, const ChangeOrigin* origin) {
  if (origin != nullptr) {
    change.session_token = origin->session_token;
    change.sequence = origin->sequence;
    change.number = origin->number;
    change.opcode = origin->opcode;
  }
  return sink_->Record(change);
}

bool Store::RecordPut(const ItemHeader& header, std::string_view key, std::string_view value,
                      const ChangeOrigin* origin) {
  return Record({.kind = Change::Kind::kPut,
                 .version = header.version,
                 .expiry_ms = header.expiry_ms(),
                 .flags = header.flags,
                 .key = key,
                 .value = value},
                origin);
}

bool Store::RecordItem(uint64_t offset, const ItemHeader& header, const ChangeOrigin* origin) {
  const char* const item = reinterpret_cast<const char*>(Block(offset));
  return RecordPut(header, {KeyOfItem(Block(offset), header.key_bytes(), header.value_bytes),
                            header.key_bytes()},
                   {item + ValueOffset(header.key_bytes(), header.value_bytes), header.value_bytes},
                   origin);
}

// The version is a new one, so it is higher than the item's.
bool Store::RecordDelete(Slot slot, const ChangeOrigin* origin) {
  const ItemHeader header = LoadHeader(slot);
  const char* const key = KeyOfItem(Block(slot.offset()), header.key_bytes(), header.value_bytes);
  return Record({.kind = Change::Kind::kDelete,
                 .version = NextVersion(),
                 .key = {key, header.key_bytes()}},
                origin);
}

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
    if (records() && !RecordDelete(current.slot, nullptr)) return ReplyStatus::kDiskRefuses;
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
  for (const Slot slot : slots) {
    const ItemHeader header = LoadHeader(slot);
    const std::byte* const block = Block(slot.offset());
    const size_t key_bytes = header.key_bytes();
    visit({.kind = Change::Kind::kPut,
           .version = header.version,
           .expiry_ms = header.expiry_ms(),
           .flags = header.flags,
           .key = {KeyOfItem(block, key_bytes, header.value_bytes), key_bytes},
           .value = {reinterpret_cast<const char*>(block) +
                         ValueOffset(key_bytes, header.value_bytes),
                     header.value_bytes}});
  }
  return FirstHashOf(home + 1, homes);
}

}  // namespace gannet
