#ifndef GANNET_COMMON_PROTOCOL_INDEX_NEWS_H_
#define GANNET_COMMON_PROTOCOL_INDEX_NEWS_H_

#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <type_traits>

#include "common/layout/index_geometry.h"

namespace gannet {

// How clients learn of an index that grows, and the server of what they still READ: by heartbeats.

// What a heartbeat tells of its client. A generation of 0 is none.
struct IndexKnown {
  // The client READs no index older than this one, and no such READ is under way.
  uint32_t acknowledged = 0;
  uint32_t newest = 0;  // the newest index that it knows of
};
static_assert(sizeof(IndexKnown) == 8);

// The value of the reply to a heartbeat whose client does not know, or does not acknowledge, what
// is the case: the two geometries of the superblock.
struct IndexNews {
  IndexGeometry index;
  IndexGeometry next;  // all zero unless the index is growing

  uint64_t newest_generation() const {
    return next.homes != 0 ? next.generation : index.generation;
  }
  // Returns whether a client that knows this much should be told.
  bool IsNewsTo(IndexKnown known) const {
    return known.newest != newest_generation() || known.acknowledged != index.generation;
  }
  std::string_view bytes() const {
    return {reinterpret_cast<const char*>(this), sizeof(IndexNews)};
  }
  // Returns nullopt if the bytes are none, or an index is not within the region.
  static std::optional<IndexNews> Decode(std::string_view bytes, uint64_t region_bytes) {
    IndexNews news;
    if (bytes.size() != sizeof(news)) return std::nullopt;
    std::memcpy(&news, bytes.data(), sizeof(news));
    if (!news.index.ValidWithin(region_bytes)) return std::nullopt;
    const bool growing = !(news.next == IndexGeometry{});
    const bool follows = news.next.generation == news.index.generation + 1;
    if (growing && !(follows && news.next.ValidWithin(region_bytes))) return std::nullopt;
    return news;
  }
};
static_assert(sizeof(IndexNews) == 64 && std::is_trivially_copyable_v<IndexNews>);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_INDEX_NEWS_H_
