#ifndef GANNET_SERVER_GROUP_REPLICA_PARTITION_END_H_
#define GANNET_SERVER_GROUP_REPLICA_PARTITION_END_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "server/group/replica/group_times.h"

namespace gannet {

// How the giver's primary ends the partitions that a map has closed (docs/partitions.md, step 4).
// It may say that they have ended when
//
//   1. all workers have begun a Poll since they were told the map: nobody decides by an older one;
//   2. what was decided before is published. A write that finds no slot is undone only then, and
//      its deletion is recorded behind it;
//   3. all that is recorded by then is committed. Where that ends is the LSN that receivers are
//      told;
//   4. the primary's own lease was valid after it saw the map. So no takeover had won before the
//      close, and whoever is primary later knows of the close;
//   5. all leases are over that clients were told of with older maps.
//
// A receiver may announce that it will close. Then clients are told of short leases for a while, so
// that 5 does not take long. It says so again as long as it has more to close.
//
//   end.OnMap(partitions.revision(), partitions.leases_from());
//   end.Poll(facts);
//   grant(min(lease, end.LeaseNsMax()));
//   if (end.ended()) ...                       // tell receivers
//
// It ends all that is closed by one map together. What a later map closes meanwhile is ended beside
// it, so two receivers of one giver do not wait for each other.
//
// Thread safety: one thread. Times are those of CLOCK_BOOTTIME.
class PartitionEnd {
 public:
  static constexpr int64_t kShortNs = 50 * kNsPerMs;  // short leases
  // For how long after the last announcement: until those told before are over, and a while for
  // the close.
  static constexpr int64_t ShortForNs(int64_t lease_ns) {
    return std::max(2 * kNsPerSecond, lease_ns + lease_ns / 8 + kNsPerSecond);
  }
  // How soon to Poll again while it waits for others.
  static constexpr int64_t kLookNs = kNsPerMs;
  // So many maps' partitions are ended beside each other. Those of the next ones wait.
  static constexpr size_t kRunsMax = 16;

  struct Ended {
    uint64_t revision = 0;  // of the map whose closed partitions have ended
    uint64_t lsn = 0;
  };
  // What a Poll has to know. REQUIRES: all of it was read after the last OnMap.
  struct Facts {
    BootTime now;                 // read last of all
    uint64_t workers_at = 0;      // all workers have begun a Poll by this map or a later one
    uint64_t recorded = 0;        // position of the last change that the stream has
    uint64_t published = 0;       // all changes up to this position are published, or undone
    uint64_t safe = 0;            // all up to this position are committed
    uint64_t committed = 0;       // LSN
    bool lease_is_valid = false;  // the primary's own, and nobody may take over by its word
  };

  explicit PartitionEnd(const GroupTimes& times) : times_(times) {}

  // The workers were told a map. `lost`: the revision at which the group last closed a partition.
  // Call it again before each Poll.
  void OnMap(uint64_t revision, uint64_t lost) {
    if (lost <= covered_ || runs_.size() == kRunsMax) return;
    covered_ = revision;
    runs_.push_back({.revision = revision});
  }
  // A receiver will close soon.
  void OnClosing(BootTime now) {
    if (!closing_at_) short_since_.reset();
    closing_at_ = now;
  }
  // No receiver is left. None has announced anything, as far as it counts.
  void OnNoReceiver() {
    closing_at_.reset();
    short_since_.reset();
  }
  // REQUIRES: since OnClosing, clients have been told of leases anew.
  void Poll(const Facts& facts);

  // What has ended last, if anything.
  const std::optional<Ended>& ended() const { return ended_; }
  // Returns the longest lease that clients may be told of.
  int64_t LeaseNsMax() const {
    return closing_at_ ? std::min(times_.lease_ns, kShortNs) : times_.lease_ns;
  }
  // Whether to Poll at all.
  bool busy() const { return !runs_.empty() || closing_at_.has_value(); }
  // Returns when to Poll at the latest.
  BootTime next_at() const { return next_at_; }

 private:
  enum class Phase : uint8_t { kWorkers, kPublishes, kCommits, kLeases, kOver };
  // How the partitions are ended that one map closed.
  struct Run {
    uint64_t revision = 0;  // the map's
    Phase phase = Phase::kWorkers;
    bool lease_was_valid = false;
    uint64_t position = 0;  // that is waited for
    uint64_t lsn = 0;       // where all is that was recorded by older maps
    BootTime leases_over;   // when those told by older maps are
  };

  void FollowClosing(BootTime now);
  void Advance(Run* run, const Facts& facts) const;

  const GroupTimes times_;
  // By revision. None is over before those in front of it: all that it waits for comes later.
  std::deque<Run> runs_;
  uint64_t covered_ = 0;                 // what was closed up to here has ended, or is being ended
  std::optional<BootTime> closing_at_;   // of the last announcement; leases are short
  std::optional<BootTime> short_since_;  // clients had been told of short ones by then
  std::optional<Ended> ended_;
  BootTime next_at_ = BootTime::Never();
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_PARTITION_END_H_
