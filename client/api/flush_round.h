#ifndef GANNET_CLIENT_API_FLUSH_ROUND_H_
#define GANNET_CLIENT_API_FLUSH_ROUND_H_

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "client/engine/op_rerouting.h"
#include "common/protocol/partition_map.h"

namespace gannet {

// One try to flush all groups of a cluster, whose partitions may move meanwhile
// (docs/partitions.md, FLUSH):
//
//   round.begin = the client's map
//   flush all; once all have answered, ask each for its map: round.OnMap(piece)
//   round.end = the client's map
//
// A server knows a newer map before it refuses anything by it. So if it tells the client's map
// behind its last step, it did all steps before it ended what a later map closes, and all its
// deletions go along with what moves.
struct FlushRound {
  OpRerouting::KnownMap begin;
  OpRerouting::KnownMap end;
  uint64_t told = 0;  // the newest revision that a server told

  // The first bytes of a server's map; empty: it has none.
  void OnMap(std::string_view piece) { told = std::max(told, RevisionOfMap(piece).value_or(0)); }
  // Whether one map held from begin to end, by which each partition is with one of the groups that
  // were flushed.
  bool Holds() const {
    return begin.revision == end.revision && begin.all_served && end.all_served &&
           told <= end.revision;
  }
  // The map that has to be known before the next try. What is closed is open by a later one.
  uint64_t wanted() const { return std::max(told, end.revision + (end.all_served ? 0 : 1)); }
};

}  // namespace gannet

#endif  // GANNET_CLIENT_API_FLUSH_ROUND_H_
