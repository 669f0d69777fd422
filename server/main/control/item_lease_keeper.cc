#include "server/main/control/item_lease_keeper.h"

#include <algorithm>
#include <string_view>

#include "common/base/clock.h"
#include "server/rpc/elsewhere.h"

namespace gannet {
namespace {

// A lease is renewed so many times while it lasts.
constexpr int64_t kRenewals = 4;
constexpr int64_t kChoosePeriodNs = kNsPerSecond / 4;
constexpr int64_t kCoolPeriodNs = 10 * kNsPerSecond;

}  // namespace

void ItemLeaseKeeper::Poll(const Now& now) {
  if (now.boot < due_) return;
  leaser_.Forget(now.server_time);
  if (now.boot >= cool_at_) {
    cool_at_ = now.boot + kCoolPeriodNs;
    leases_.popular().Cool();
  }
  if (now.boot >= choose_at_) {
    choose_at_ = now.boot + kChoosePeriodNs;
    const auto is_served = [this](std::string_view key) { return !IsElsewhere(standing_, key); };
    if (!stopping_ && serves()) leaser_.Choose(now.server_time, is_served);
  }
  const bool renewed = serves() && leases_.Renew(store_.Now(now.server_time));
  const BootTime renew_at = now.boot + leases_.lease_ms() * kNsPerMs / kRenewals;
  due_ = renewed ? std::min(renew_at, choose_at_) : choose_at_;
}

void ItemLeaseKeeper::BeginStop() {
  stopping_ = true;
  leases_.EndAll();
}

}  // namespace gannet
