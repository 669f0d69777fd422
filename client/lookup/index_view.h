#ifndef GANNET_CLIENT_LOOKUP_INDEX_VIEW_H_
#define GANNET_CLIENT_LOOKUP_INDEX_VIEW_H_

#include <cstdint>

#include "common/layout/index_geometry.h"
#include "common/layout/item.h"
#include "common/layout/size_class.h"
#include "common/protocol/connect.h"

namespace gannet {

// The largest block that holds an item; a slot that asks for more is not one of ours.
inline constexpr uint32_t kItemReadBytesMax =
    SizeClassBytes(SizeClassFor(ItemBytes(kKeyBytesMax, kValueBytesMax)));

// What a lookup must know of one server run's memory; a plain copy of the grant's part. A new grant
// (reconnect, restart) means a new view: locations found through the old one are void when the
// incarnation differs.
struct IndexView {
  uint64_t incarnation = 0;
  uint64_t hash_seed = 0;
  uint64_t region_bytes = 0;
  IndexGeometry index = {};

  static IndexView Of(const Grant& grant) {
    return {grant.incarnation, grant.hash_seed, grant.region_bytes, grant.index};
  }

  // Whether an item may be READ there: memory that the grant covers, of a possible size.
  constexpr bool Contains(uint64_t offset, uint64_t bytes) const {
    return bytes > 0 && bytes <= kItemReadBytesMax && offset <= region_bytes &&
           bytes <= region_bytes - offset;
  }

  friend constexpr bool operator==(const IndexView&, const IndexView&) = default;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_LOOKUP_INDEX_VIEW_H_
