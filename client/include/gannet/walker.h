#ifndef GANNET_WALKER_H_
#define GANNET_WALKER_H_

#include <gannet/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gannet {

// An item that a walk found. Key and value are valid until the call that is given it returns.
struct WalkedItem {
  std::string_view key;
  // Empty if the value is long (over some 4,000 bytes): a walk does not READ those.
  std::string_view value;
  ItemInfo info;
  uint32_t block_bytes = 0;  // bytes that it takes of the server's memory
};

struct WalkOptions {
  // The most READs a second. 0: as many as it can. Without it, the walk goes by load: as fast as it
  // can while its READs come back at once, and slower when they wait behind those of others.
  std::optional<uint32_t> reads_per_second;
  // Of a group of a cluster: walks through what this group's primary has in its memory, whichever
  // group owns it, instead of through the whole cluster.
  bool this_server_alone = false;
};

// Options of one part of a walk.
struct WalkPartOptions {
  uint64_t position = 0;  // where to begin; 0: at the beginning
  // The part ends behind this many items or READs, or a few more.
  uint64_t items_min = 10;
  uint64_t reads_max = 10'000;
};

// One of the keys that are used most.
struct HotKey {
  std::string key;
  double uses = 0;        // recent uses, as the server estimates them
  bool at_least = false;  // there were at least so many uses: the server counts no further
  ItemInfo info;
  uint32_t block_bytes = 0;  // bytes that it takes of the server's memory
  // Whether clients may answer from copies of it now; nullopt: the server leases no items.
  std::optional<bool> leased;
};

// What a walk has done so far.
struct WalkProgress {
  uint64_t reads = 0;
  uint64_t read_bytes = 0;
  uint64_t items = 0;    // that were shown
  uint64_t retries = 0;  // READs that were done again, because something changed meanwhile
  double done = 0;       // the share of the index that the walk has covered; 1 at the end
};

// Walks through all items of one server, or of a cluster, by one-sided READs. The servers' CPUs
// take no part, except in heartbeats. The walk has a connection of its own.
//
// As for a Client, one group of a cluster stands for the whole cluster: the walk goes from group to
// group, and shows a key only at the group that owns it, although others may have copies of what
// moves, or moved.
//
//   auto walker = gannet::Walker::Connect("10.0.0.1:7471");
//   absl::Status status = (*walker)->Walk([](const gannet::WalkedItem& item) {
//     use(item.key);
//     return true;  // go on
//   });
//
// What it promises, beside writes of others and while the index grows:
//   1. A key that is in the store from the beginning to the end of the walk is shown at least once.
//   2. Each item that is shown was in the store at some moment of the walk, whole, with this value.
//   3. A key that comes or goes during the walk may be shown or not.
//   4. A key may be shown more than once, also with different values. That happens where the index
//      changes meanwhile, if the key's partition moves while its group is walked through, or where
//      two parts meet, as a position has fewer bits than a key's hash. Who counts must count keys.
// The order means nothing. Items whose time is over are left out.
//
// Beside partitions that move, Walk walks again only through the partitions that moved while their
// group was walked through. WalkPart begins anew once the map of the cluster has changed, so that
// promise 1 holds for all parts together.
//
// Promise 1 fails with a probability of less than 10^-6 each time that a block goes from one key to
// another of the same home between two READs, because a slot has only 20 bits of a key's hash.
//
// One thread.
class Walker {
 public:
  // As Client::Connect, for one server or one group of a cluster.
  static absl::StatusOr<std::unique_ptr<Walker>> Connect(std::string endpoint, Options options = {},
                                                         WalkOptions walk = {});
  ~Walker();
  Walker(const Walker&) = delete;
  Walker& operator=(const Walker&) = delete;

  // Shows every item, until `show` returns false. Unavailable: the connection broke, or nobody has
  // served a partition for Options::deadline; begin anew.
  // DeadlineExceeded: the walk made no progress for Options::deadline, because what it READ changed
  // all the time.
  absl::Status Walk(const std::function<bool(const WalkedItem&)>& show);
  // Continues a walk from a position, and shows some items. Returns the position to go on from, or
  // 0 at the end. Each part begins where the one before it ended, and Walk's promises hold for all
  // parts together. A position stays right while the index grows. Different Walkers of one server,
  // or one cluster, may walk the parts, at any time. Positions have at most kPositionBits bits, and
  // fewer while there are few items.
  static constexpr int kPositionBits = 45;
  absl::StatusOr<uint64_t> WalkPart(const WalkPartOptions& part,
                                    const std::function<void(const WalkedItem&)>& show);
  // Returns the keys that are used most, at most `count` of them (1 to kHotKeysMax), the hottest
  // first. READs the server's record of uses, which is a 64th of its memory, then its index, and
  // then only the hot items. A use counts less as time goes by, and the latest uses may be missing.
  // Cancelled: goes_on() returned false. FailedPrecondition: the server has no such record, because
  // it does not evict. Unimplemented: it is too old. Other errors as Walk. Of a cluster, these are
  // the keys of one group.
  static constexpr size_t kHotKeysMax = 100'000;
  absl::StatusOr<std::vector<HotKey>> HotKeys(size_t count,
                                              const std::function<bool()>& goes_on = nullptr);
  // May be called by `show`, too.
  WalkProgress progress() const;

  // READs once the first `bytes` (at most 4096) of the memory of the server that was walked through
  // last, and drops them. So a caller can measure a READ without any lookup. Do not call it while
  // Walk runs. Unavailable: the connection broke.
  absl::Status ReadOnce(uint32_t bytes);
  // Returns how far the server's clock is ahead of this machine's; negative if it is behind. The
  // faster the server answered, the more exact this is.
  std::chrono::milliseconds ServerClockAhead() const;

 private:
  class State;
  explicit Walker(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gannet

#endif  // GANNET_WALKER_H_
