#include "tools/kvload/loss_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gannet::kvload {

void LossWatch::Log(LogLevel level, std::string_view line, int64_t now_ns) {
  if (!troubled_ && level == LogLevel::kInfo) return;
  if (!troubled_) since_ns_ = now_ns;
  troubled_ = true;
  last_line_ = line;
}

// A new primary of the same group has another incarnation, and all that was acknowledged.
void LossWatch::LookForOtherRuns(const std::vector<ServerInfo>& now) {
  const size_t n = std::min(now.size(), servers_.size());
  for (size_t i = 0; i < n; ++i) {
    if (now[i].incarnation == servers_[i].incarnation) continue;
    const bool failed_over = now[i].history != 0 && now[i].history == servers_[i].history;
    if (failed_over) {
      ++fail_overs_;
      servers_[i] = now[i];
    } else if (!forgives_) {
      lost_ = absl::StrCat(now[i].endpoint, " was restarted and lost its data");
      lost_for_good_ = true;
      return;
    }
  }
}

int64_t LossWatch::AwayNsMax() const {
  const bool group = std::ranges::any_of(servers_, [](const auto& it) { return it.history != 0; });
  return group ? kGroupAwayNs : kAwayNs;
}

void LossWatch::Look(const std::vector<ServerInfo>& now, int64_t now_ns) {
  LookForOtherRuns(now);
  if (lost_for_good_) return;
  away_ = std::ranges::any_of(now, &ServerInfo::unreachable);
  if (std::ranges::all_of(now, &ServerInfo::connected)) {
    troubled_ = false;
    lost_.clear();
  } else if (away_ || now_ns - since_ns_ >= AwayNsMax()) {
    lost_ = last_line_;
  }
}

}  // namespace gannet::kvload
