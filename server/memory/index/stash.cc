#include "server/memory/index/stash.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>

#include "common/layout/bucket.h"

namespace gannet {

Stash::Stash(uint64_t first_bucket, uint64_t stash_homes)
    : first_bucket_(first_bucket), stash_homes_(stash_homes), used_(stash_homes + 1) {}

std::optional<Stash::Entry> Stash::FindRoom(KeyHash hash) const {
  const uint64_t home = hash.StashHome(stash_homes_);
  const uint64_t chosen =
      std::popcount(used_[home + 1]) < std::popcount(used_[home]) ? home + 1 : home;
  const uint32_t slot = std::countr_one(used_[chosen]);
  if (slot >= kSlotsPerBucket) return std::nullopt;
  return Entry{hash, first_bucket_ + chosen, slot};
}

void Stash::Add(uint64_t home, const Entry& entry) {
  Used(entry.bucket) |= 1u << entry.slot;
  homes_[home].push_back(entry);
}

void Stash::Remove(uint64_t home, uint64_t bucket, uint32_t slot) {
  auto entries = homes_.find(home);
  CHECK(entries != homes_.end());
  const size_t removed = std::erase_if(entries->second, [&](const Entry& entry) {
    return entry.bucket == bucket && entry.slot == slot;
  });
  CHECK_EQ(removed, 1u);
  if (entries->second.empty()) homes_.erase(entries);
  Used(bucket) &= ~(1u << slot);
}

const std::vector<Stash::Entry>& Stash::EntriesOfHome(uint64_t home) const {
  static const std::vector<Entry> kNone;
  const auto entries = homes_.find(home);
  return entries == homes_.end() ? kNone : entries->second;
}

uint32_t Stash::TagsForHome(uint64_t home) const {
  uint32_t tags = 0;
  for (const Entry& entry : EntriesOfHome(home)) tags |= entry.hash.StashTag();
  return tags;
}

}  // namespace gannet
