#ifndef GANNET_SERVER_GROUP_MEMBERS_JOIN_FILTER_H_
#define GANNET_SERVER_GROUP_MEMBERS_JOIN_FILTER_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_set.h"
#include "common/layout/key_hash.h"
#include "server/log/changes/change.h"

namespace gannet {

// The keys that the stream brought something for since a joiner's stream began, and that the store
// may have no item of all the same: they were deleted, or put with an expiry and so may have been
// swept. What the walk finds of these is older than what the stream brought, or will come by the
// stream as well. A key that was put without an expiry need not be here: the store has it, or its
// deletion is here.
//
// Keeps hashes, so a key whose hash is that of another one would be left out: one pair in 2^64.
//
// Bounded: a joiner that needs more than `max` hashes has to begin again. One owner thread.
class JoinFilter {
 public:
  // `notes_all`: the store may lose a key by itself, as it evicts. So no key that the stream
  // brought something for may be left out.
  explicit JoinFilter(size_t max, bool notes_all = false) : max_(max), notes_all_(notes_all) {}

  void OnApplied(const Change& change, KeyHash hash) {
    const bool stays = change.kind == Change::Kind::kPut && change.expiry.never();
    if (stays && !notes_all_) return;
    if (hashes_.size() >= max_) {
      full_ |= !Has(hash);
    } else {
      hashes_.insert(hash.value());
    }
  }
  bool Has(KeyHash hash) const { return hashes_.contains(hash.value()); }
  // Returns whether a hash found no room. Then Has tells nothing any more.
  bool full() const { return full_; }
  size_t size() const { return hashes_.size(); }

 private:
  const size_t max_;
  const bool notes_all_;
  absl::flat_hash_set<uint64_t> hashes_;
  bool full_ = false;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_JOIN_FILTER_H_
