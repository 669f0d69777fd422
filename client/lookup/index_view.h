#ifndef GANNET_CLIENT_LOOKUP_INDEX_VIEW_H_
#define GANNET_CLIENT_LOOKUP_INDEX_VIEW_H_

#include <cstdint>

#include "common/layout/index_geometry.h"
#include "common/protocol/connect.h"

namespace gannet {

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

  // Whether [offset, offset + bytes) is memory that the grant allows to READ.
  constexpr bool Contains(uint64_t offset, uint64_t bytes) const {
    return bytes > 0 && offset <= region_bytes && bytes <= region_bytes - offset;
  }

  friend constexpr bool operator==(const IndexView&, const IndexView&) = default;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_LOOKUP_INDEX_VIEW_H_
