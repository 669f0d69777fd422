#include "server/memory/store/item_leaser.h"

#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "common/base/check.h"
#include "server/memory/store/store_find.h"

namespace gannet {
namespace {

// What is leased is not evicted, so at most this share of the heap is.
constexpr uint64_t kLeasedShare = 16;

}  // namespace

uint64_t ItemLeaser::CommitWordAt(uint64_t offset) const { return LoadWord(store_.Block(offset)); }

uint64_t ItemLeaser::VersionAt(uint64_t offset) const {
  return LoadWord(store_.Block(offset) + offsetof(ItemHeader, version));
}

bool ItemLeaser::Choose() {
  GANNET_CHECK(announced_.empty(), "lease what was announced before");
  const std::vector<uint64_t> chosen = leases_.popular().Choose();
  if (leases_.counts().leased + chosen.size() > leases_.words()) {
    absl::flat_hash_set<uint64_t> words;
    for (const uint64_t offset : chosen) words.insert(CommitWordAt(offset));
    for (const uint64_t word : leases_.LeasedWords()) {
      if (!words.contains(word)) leases_.End(word);
    }
  }
  for (const uint64_t offset : chosen) {
    if (leases_.IsLeased(CommitWordAt(offset))) continue;
    if (!leases_.popular().AreOf(offset, VersionAt(offset))) continue;
    const std::optional<KeyHash> hash = GuessHashAt(offset);
    if (hash && leases_.Announce(*hash)) announced_.push_back({*hash, offset});
  }
  return announced();
}

// LeaseOf looks again, under the key's lock.
std::optional<KeyHash> ItemLeaser::GuessHashAt(uint64_t offset) const {
  Items::KeyCopy copy;
  const std::string_view key = store_.GuessKeyAt(offset, &copy);
  if (key.empty()) return std::nullopt;
  return store_.HashOf(key);
}

void ItemLeaser::LeaseAnnounced(ServerTime now, Serves serves) {
  for (const Announced& one : announced_) {
    // It may have been written since it was chosen.
    if (leases_.popular().AreOf(one.offset, VersionAt(one.offset))) {
      LeaseOf(one.hash, one.offset, now, serves);
    }
    leases_.Retract(one.hash);
  }
  announced_.clear();
}

bool ItemLeaser::Lease(uint64_t offset, ServerTime now, Serves serves) {
  const std::optional<KeyHash> hash = GuessHashAt(offset);
  return hash && LeaseOf(*hash, offset, now, serves);
}

// A change that waits is of the item that clients would take for what it is now. A key whose lock
// is held will be written soon, and its holder should not wait then. What this server has of
// others' partitions is brought and deleted without a look at marks, under the same lock, once it
// does not serve them any more.
bool ItemLeaser::LeaseOf(KeyHash hash, uint64_t offset, ServerTime now, Serves serves) {
  Items::KeyCopy copy;
  const std::string_view key = store_.GuessKeyAt(offset, &copy);
  if (key.empty() || store_.HashOf(key).value() != hash.value()) return false;
  const Store::Locked locked(store_, hash, key, now);
  if (!locked.item.there() || locked.item.slot.offset() != offset) return false;
  if (IsStub(locked.item.slot)) return false;
  if (ValueBytes(store_.Block(offset)) > kLeasedValueBytesMax) return false;
  if (store_.later_ != nullptr && store_.later_->MayWait(hash)) return false;
  if (store_.lock_words().WordOf(hash) != 0 || !serves(key)) return false;
  const uint64_t bytes = SizeClassBytes(locked.item.slot.size_class());
  if (leases_.counts().leased_bytes + bytes > store_.heap_->capacity_bytes() / kLeasedShare) {
    return false;
  }
  return leases_.Begin(hash, CommitWordAt(offset), bytes, store_.Now(now));
}

void ItemLeaser::Forget(ServerTime now) {
  for (const KeyHash hash : leases_.Over(store_.Now(now))) {
    const Index::Lock lock(store_.index_, hash);
    store_.EndLease(lock, hash, store_.Now(now));
  }
}

}  // namespace gannet
