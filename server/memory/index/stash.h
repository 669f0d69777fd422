#ifndef GANNET_SERVER_MEMORY_INDEX_STASH_H_
#define GANNET_SERVER_MEMORY_INDEX_STASH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "common/layout/key_hash.h"

namespace gannet {

// The keys in the stash by home: the server's view of the stash buckets in the region. It answers
// which stash tags a home needs, which stash slots belong to a home, and where there is room. The
// index does the publishing.
//
// Thread safety: none. Index guards it with one mutex. One is enough: the stash holds few keys, and
// is asked only if a home's stash tags say so or a window is full.
class Stash {
 public:
  struct Entry {
    KeyHash hash;
    uint64_t bucket;  // number in the index, a stash bucket
    uint32_t slot;
  };

  // The stash buckets have the numbers [first_bucket, first_bucket + stash_homes + 1).
  Stash(uint64_t first_bucket, uint64_t stash_homes);

  // Returns a free slot in one of the key's two stash buckets, the emptier one first, or nullopt if
  // both are full.
  std::optional<Entry> FindRoom(KeyHash hash) const;
  // REQUIRES: `entry` came from FindRoom, and nothing was added since.
  void Add(uint64_t home, const Entry& entry);
  // REQUIRES: it was added.
  void Remove(uint64_t home, uint64_t bucket, uint32_t slot);

  // Returns the entries of one home. Valid until the next change.
  const std::vector<Entry>& EntriesOfHome(uint64_t home) const;
  // Returns the OR of the stash tags of a home's entries.
  uint32_t TagsForHome(uint64_t home) const;

 private:
  uint16_t& Used(uint64_t bucket) { return used_[bucket - first_bucket_]; }

  const uint64_t first_bucket_;
  const uint64_t stash_homes_;
  std::vector<uint16_t> used_;  // bit per slot, per stash bucket
  absl::flat_hash_map<uint64_t, std::vector<Entry>> homes_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_INDEX_STASH_H_
