// Rounds, pauses, members that were named, and names that are looked up again. When the next
// attempt is due is computed in one place, ScheduleNext.

#include "client/session/connect_attempts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/protocol/limits.h"

namespace gannet {
namespace {

// Returns the addresses of those members whose names are known.
absl::StatusOr<std::vector<SocketAddress>> ResolveMembers(const std::vector<std::string>& members) {
  std::vector<SocketAddress> all;
  for (const std::string& member : members) {
    const absl::StatusOr<std::vector<SocketAddress>> some = ResolveAll(member, kDefaultPort);
    if (some.ok()) all.insert(all.end(), some->begin(), some->end());
  }
  if (all.empty()) return absl::UnavailableError("DNS knows no member of the group");
  return all;
}

}  // namespace

void ConnectAttempts::OnFailed(Failure failure) {
  told_ |= Bit(failure.code);
  group_ |= failure.code == RejectCode::kNotPrimary;
  const absl::Status why = WithOthersInVain(failure);
  // What a server said tells more than that nobody listens at another of its addresses.
  if (failure.answered || !answered_) {
    status_ = why;
    refused_with_ = failure.code;
    answered_ = failure.answered;
  }
  if (failure.session_forgotten) {  // ask the same address for a new session, at once
    backoff_.Reset();
    at_once_ = group_;
    return;
  }
  begun_ = true;
  GoOn(failure);
}

absl::Status ConnectAttempts::WithOthersInVain(const Failure& failure) {
  const std::string current = address().ToString();
  std::string others;
  for (const std::string& it : in_vain_) {
    if (it != current) absl::StrAppend(&others, others.empty() ? "" : ", ", it);
  }
  if (failure.answered) {
    in_vain_.erase(current);
    return failure.why;
  }
  in_vain_.insert(current);
  if (others.empty()) return failure.why;
  return {failure.why.code(),
          absl::StrCat(std::string(failure.why.message()), "; also tried in vain: ", others)};
}

// Chooses the next address.
void ConnectAttempts::GoOn(const Failure& failure) {
  const bool starting = failure.code == RejectCode::kStarting;
  if (!group_) {
    // This address is the server's if it is starting.
    if (starting || !order_.GoOn()) EndRound();
    return;
  }
  if (starting || failure.code == RejectCode::kNotPrimary) {
    answered_not_primary_ = waits_for_primary_ = true;
    unreachable_ = false;
  }
  if (failure.primary.has_value() && order_.GoOnTo(*failure.primary)) {
    at_once_ = true;
  } else if (!order_.GoOn()) {
    EndRound();
  }
}

void ConnectAttempts::EndRound() {
  round_over_ = true;
  if (names_ != nullptr) names_->Ask();
  if (member_names_ != nullptr) member_names_->Ask();
  begun_ = answered_ = false;
  waits_for_primary_ = answered_not_primary_;
  answered_not_primary_ = false;
  if (group_) return;  // ScheduleNext knows for how long it has been lost
  order_.Begin();
  unreachable_ |= rails_.empty();
}

void ConnectAttempts::OnConnected(bool group, int64_t now_ns) {
  status_ = absl::OkStatus();
  group_ |= group;
  refused_with_ = {};
  told_ = 0;
  in_vain_.clear();
  lost_ns_ = kNever;
  was_connected_ = true;
  connected_ns_ = now_ns;
  unreachable_ = begun_ = answered_ = false;
  waits_for_primary_ = answered_not_primary_ = false;
  order_.Begin();
  backoff_.Reset();
}

void ConnectAttempts::OnBroken(absl::Status why, int64_t lease_ns) {
  status_ = std::move(why);
  if (!group_ && rails_.empty()) return;
  lease_ns_ = lease_ns;
  order_.BeginBehind();
  broken_ = true;
}

void ConnectAttempts::LookForNames() {
  if (names_ != nullptr && !only_members_) {
    if (auto found = names_->Take()) order_.Replace(*std::move(found));
  }
  if (member_names_ == nullptr) return;
  if (auto found = member_names_->Take()) {
    resolved_members_ = *std::move(found);
    LearnAddresses();
  }
}

// Names are looked up in another thread, as DNS may block.
void ConnectAttempts::LearnMembers(const std::vector<std::string>& members, bool only) {
  only_members_ |= only;
  members_.clear();
  std::vector<std::string> named;
  for (const std::string& member : members) {
    if (auto address = NumericAddress(member, kDefaultPort)) {
      members_.push_back(*std::move(address));
    } else {
      named.push_back(member);
    }
  }
  if (named != named_members_) {
    named_members_ = named;
    resolved_members_.clear();
    member_names_ = nullptr;
    if (!named.empty()) {
      member_names_ = std::make_shared<NameLookup>([named] { return ResolveMembers(named); });
      member_names_->Ask();
    }
  }
  LearnAddresses();
}

void ConnectAttempts::LearnRails(const std::vector<SocketAddress>& rails) {
  rails_ = rails;
  LearnAddresses();
}

void ConnectAttempts::LearnAddresses() {
  std::vector<SocketAddress> all = members_;
  all.insert(all.end(), resolved_members_.begin(), resolved_members_.end());
  if (only_members_ && !all.empty()) order_.ListNone();
  all.insert(all.end(), rails_.begin(), rails_.end());
  order_.Learn(all);
}

// The next address is tried at once, the first one again after a pause. A server that is starting
// has answered already, so it is tried again also where a broken connection would not be.
void ConnectAttempts::ScheduleNext(int64_t now_ns) {
  if (lost_ns_ == kNever) lost_ns_ = now_ns;
  LookForNames();
  const bool broken = std::exchange(broken_, false);
  const bool brief = broken && now_ns - connected_ns_ < kBriefNs;
  if (broken && !brief) brief_.Reset();
  const bool at_once = std::exchange(at_once_, false) || (broken && !brief);
  const bool round_over = std::exchange(round_over_, false);
  if (group_ && round_over && !waits_for_primary_) {
    unreachable_ |= !was_connected_ || LostNs(now_ns) >= kPatientLeases * lease_ns_;
  }
  if (!group_ && round_over && !rails_.empty()) unreachable_ |= LostNs(now_ns) >= kRailPatienceNs;
  const uint64_t random = Mix64(static_cast<uint64_t>(now_ns));
  const bool again = reconnect_ || (!was_connected_ && (begun_ || starting()));
  if (!again) {
    next_ns_ = kNever;
  } else if (at_once || (!group_ && begun_)) {
    next_ns_ = now_ns;
  } else if (brief) {
    next_ns_ = now_ns + brief_.NextNs(random);
  } else if (group_) {
    const int64_t apart_ns = std::clamp(LostNs(now_ns) / 16, kApartNs, kApartNsMax);
    next_ns_ =
        now_ns + apart_ns + static_cast<int64_t>(random % static_cast<uint64_t>(apart_ns / 4));
  } else {
    next_ns_ = now_ns + backoff_.NextNs(random);
  }
}

// The former primary may be stopped, and then it answers nobody. It is not worth as much time as
// the others, who may be waiting for clients meanwhile.
int64_t ConnectAttempts::AttemptNs(int64_t now_ns, int64_t connect_timeout_ns) const {
  if (!group_ && rails_.empty()) return connect_timeout_ns;
  if (!group_) return std::min(connect_timeout_ns, std::max(kRailAttemptNs, LostNs(now_ns) / 4));
  const int64_t first_ns = order_.at_last() ? lease_ns_ / 4 : lease_ns_;
  return std::min(connect_timeout_ns, std::max(first_ns, LostNs(now_ns) / 4));
}

}  // namespace gannet
