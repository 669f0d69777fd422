#ifndef GANNET_TESTS_COMMON_BASE_BOOT_AT_H_
#define GANNET_TESTS_COMMON_BASE_BOOT_AT_H_

#include <cstdint>

#include "common/base/boot_time.h"

namespace gannet {

// A time by the tested machine's CLOCK_BOOTTIME.
constexpr BootTime BootAt(int64_t ns) { return BootTime::FromNs(ns); }

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_BASE_BOOT_AT_H_
