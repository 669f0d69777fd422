#ifndef GANNET_COMMON_LOOKUP_INDEX_VIEW_H_
#define GANNET_COMMON_LOOKUP_INDEX_VIEW_H_

#include <cstdint>

#include "common/layout/index_geometry.h"
#include "common/layout/item.h"
#include "common/layout/size_class.h"
#include "common/protocol/connect.h"

namespace gannet {

// The largest block that holds an item. A slot that names a larger one was not written by our
// server.
inline constexpr uint32_t kItemReadBytesMax =
    SizeClassBytes(SizeClassFor(ItemBytes(kKeyBytesMax, kValueBytesMax)));

// What a lookup must know about the memory of one server run. It is a plain copy of that part of
// the grant. A new grant (after a reconnect or restart) brings a new view. If its incarnation
// differs, locations found through the old view are void. The two geometries may change at any
// time, also while a lookup is under way: then that finds checksums of another index, and looks
// again.
struct IndexView {
  uint64_t incarnation = 0;
  uint64_t hash_seed = 0;
  uint64_t region_bytes = 0;
  IndexGeometry index = {};  // where lookups begin
  // Where the keys of migrated homes are; all zero if the index is not known to grow.
  IndexGeometry next = {};

  static IndexView Of(const Grant& grant) {
    return {grant.incarnation, grant.hash_seed, grant.region_bytes, grant.index, {}};
  }

  // Returns whether an item may be READ there: the grant covers the memory, and an item can have
  // that size.
  constexpr bool Contains(uint64_t offset, uint64_t bytes) const {
    return bytes > 0 && bytes <= kItemReadBytesMax && offset <= region_bytes &&
           bytes <= region_bytes - offset;
  }

  friend constexpr bool operator==(const IndexView&, const IndexView&) = default;
};

}  // namespace gannet

#endif  // GANNET_COMMON_LOOKUP_INDEX_VIEW_H_
