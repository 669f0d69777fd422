#include "server/main/control/item_lease_keeper.h"

#include <algorithm>

#include "common/base/clock.h"

namespace gannet {
namespace {

// A lease is renewed so many times while it lasts.
constexpr int64_t kRenewals = 4;
constexpr int64_t kChoosePeriodNs = kNsPerSecond / 4;
constexpr int64_t kCoolPeriodNs = 10 * kNsPerSecond;

}  // namespace

void ItemLeaseKeeper::Poll(const Now& now) {
  if (now.monotonic_ns < due_ns_) return;
  leaser_.Forget(now.server_time);
  if (now.monotonic_ns >= cool_ns_) {
    cool_ns_ = now.monotonic_ns + kCoolPeriodNs;
    leases_.popular().Cool();
  }
  if (now.monotonic_ns >= choose_ns_) {
    choose_ns_ = now.monotonic_ns + kChoosePeriodNs;
    if (!stopping_) leaser_.Choose(now.server_time);
  }
  const bool renewed = leases_.Renew(store_.Now(now.server_time));
  const int64_t renew_ns = now.monotonic_ns + leases_.lease_ms() * kNsPerMs / kRenewals;
  due_ns_ = renewed ? std::min(renew_ns, choose_ns_) : choose_ns_;
}

void ItemLeaseKeeper::BeginStop() {
  stopping_ = true;
  leases_.EndAll();
}

}  // namespace gannet
