#ifndef GANNET_SERVER_GROUP_REPLICA_GROUP_TIMES_H_
#define GANNET_SERVER_GROUP_REPLICA_GROUP_TIMES_H_

#include <cstdint>

namespace gannet {

// The times of a group, in ns. All follow from L, the length of a primary's lease (docs/group.md,
// "Leases"). They are measured by clocks whose rates differ from real time by at most 1/512.
struct GroupTimes {
  int64_t lease_ns;  // L

  constexpr int64_t beacon_ns() const { return lease_ns / 6; }
  // G: a backup that heard nothing for so long takes over. At least L on a slow clock, measured by
  // a fast one.
  constexpr int64_t grace_ns() const { return lease_ns + lease_ns / 128 + 20'000'000; }
  // A backup that does not answer for so long is removed, if another one answers.
  constexpr int64_t silence_ns() const { return lease_ns / 2; }
  // If nobody answers. By then the backups have taken over, if they live.
  constexpr int64_t loneliness_ns() const { return 3 * grace_ns(); }
  // As silence_ns, if it may make its link anew over another rail meanwhile. Less than L, so that
  // writes wait no longer for one that is gone.
  constexpr int64_t silence_with_rails_ns() const { return lease_ns - lease_ns / 4; }
  // A backup that hears no beacon for so long makes its link anew over another rail, if there is
  // one. Two are left before the primary's patience is over, and four before its own is.
  constexpr int64_t rail_silence_ns() const { return 2 * beacon_ns(); }
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_GROUP_TIMES_H_
