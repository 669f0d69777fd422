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

void LossWatch::Look(const std::vector<ServerInfo>& now, int64_t now_ns) {
  const size_t n = std::min(now.size(), servers_.size());
  for (size_t i = 0; i < n && !forgives_; ++i) {
    if (now[i].incarnation == servers_[i].incarnation) continue;
    lost_ = absl::StrCat(now[i].endpoint, " was restarted and lost its data");
    return;
  }
  away_ = std::ranges::any_of(now, &ServerInfo::unreachable);
  if (std::ranges::all_of(now, &ServerInfo::connected)) {
    troubled_ = false;
    lost_.clear();
  } else if (away_ || now_ns - since_ns_ >= kAwayNs) {
    lost_ = last_line_;
  }
}

}  // namespace gannet::kvload
