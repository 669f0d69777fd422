#include "server/main/control/item_lease_keeper.h"

#include <algorithm>
#include <string_view>

#include "common/base/clock.h"
#include "server/rpc/elsewhere.h"

namespace gannet {
namespace {

// A lease is renewed so many times while it lasts. Each time wakes a thread, which costs much more
// than what it does.
constexpr int64_t kRenewals = 2;
constexpr int64_t kChoosePeriodNs = kNsPerSecond / 4;
constexpr int64_t kTellPeriodNs = kNsPerMs;  // while workers are told
constexpr int64_t kCoolPeriodNs = 10 * kNsPerSecond;

}  // namespace

void ItemLeaseKeeper::Poll(const Now& now) {
  if (now.boot < due_) return;
  leaser_.Forget(now.server_time);
  if (now.boot >= cool_at_) {
    cool_at_ = now.boot + kCoolPeriodNs;
    leases_.popular().Cool();
  }
  Choose(now);
  const bool renewed = serves() && leases_.Renew(store_.Now(now.server_time));
  const BootTime renew_at = now.boot + leases_.lease_ms() * kNsPerMs / kRenewals;
  due_ = renewed ? std::min(renew_at, choose_at_) : choose_at_;
}

// Workers look at what is leased before they lock a key, so each of them is told before.
void ItemLeaseKeeper::Choose(const Now& now) {
  if (now.boot < choose_at_) return;
  choose_at_ = now.boot + kChoosePeriodNs;
  if (stopping_) return;
  if (!leaser_.announced()) {
    if (!serves() || !leaser_.Choose()) return;
    workers_.Notify({Notice::Type::kKeysAnnounced, ++announcements_});
  } else if (workers_.announcement() == announcements_) {
    const auto is_served = [this](std::string_view key) {
      return serves() && !IsElsewhere(standing_, key);
    };
    return leaser_.LeaseAnnounced(now.server_time, is_served);
  }
  choose_at_ = now.boot + kTellPeriodNs;
}

void ItemLeaseKeeper::BeginStop() {
  stopping_ = true;
  leases_.EndAll();
}

}  // namespace gannet
