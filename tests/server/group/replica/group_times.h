#ifndef GANNET_TESTS_SERVER_GROUP_REPLICA_GROUP_TIMES_H_
#define GANNET_TESTS_SERVER_GROUP_REPLICA_GROUP_TIMES_H_

#include <cstdint>

#include "common/base/boot_time.h"
#include "server/group/replica/group_times.h"

namespace gannet {

// Of the groups in these tests.
inline constexpr GroupTimes kTimes = {.lease_ns = 600'000'000};
inline constexpr int64_t kL = kTimes.lease_ns;
inline constexpr int64_t kG = kTimes.grace_ns();

// A time by CLOCK_BOOTTIME.
constexpr BootTime Boot(int64_t ns) { return BootTime::FromNs(ns); }

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_REPLICA_GROUP_TIMES_H_
