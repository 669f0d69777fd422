#include "server/main/control/rail_watch.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/rdma/port.h"
#include "glog/logging.h"

namespace gannet {

RailWatch::RailWatch(const ServerWorkers& workers, bool in_group)
    : workers_(workers), server_(workers.context()), in_group_(in_group) {
  Look();
}

void RailWatch::Look() {
  if (server_.rails.size() == 1) return;
  for (size_t i = 0; i < server_.rails.size(); ++i) {
    const Device& device = server_.rails[i].device;
    std::vector<PathEvent> paths;
    if (!lost_[i] && TakeDeviceEvents(device.verbs, &paths)) OnLost(device.verbs, "failed");
    CountPaths(device.verbs, paths);
    Show(i);
  }
}

void RailWatch::CountPaths(const ibv_context* verbs, std::span<const PathEvent> events) {
  if (events.empty()) return;
  server_.rail_board.ChangePaths();
  for (size_t i = 0; i < server_.rails.size(); ++i) {
    const Rail& rail = server_.rails[i];
    if (rail.device.verbs != verbs) continue;
    const auto count = [&](bool moved) {
      return std::ranges::count_if(events, [&](const PathEvent& event) {
        return event.port == rail.port && event.moved == moved;
      });
    };
    const auto moved = static_cast<uint64_t>(count(true));
    const auto not_moved = static_cast<uint64_t>(count(false));
    server_.rail_board.Moved(i, moved, not_moved);
    if (moved > 0) {
      LOG(WARNING) << moved << " connections go by rail " << rail.address.ToString()
                   << " now, their alternate path";
    }
    if (not_moved > 0) {
      LOG(WARNING) << not_moved << " connections by rail " << rail.address.ToString()
                   << " could not take their alternate path";
    }
  }
}

void RailWatch::Show(size_t rail) {
  const Rail& it = server_.rails[rail];
  const Port port = lost_[rail] ? Port{} : LookAtPort(it.device.verbs, it.port);
  const RailBoard::Seen before = server_.rail_board.Of(rail);
  const RailBoard::Seen seen = {
      .mbit_per_second = port.mbit_per_second,
      .mtu_bytes = static_cast<uint16_t>(std::min<uint32_t>(port.mtu_bytes, UINT16_MAX)),
      .state = port.up ? RailState::kUp : RailState::kDown,
      .lost = lost_[rail]};
  server_.rail_board.Show(rail, seen);
  const bool first = before.state == RailState{};
  if (seen.state == before.state || (first && port.up)) return;
  server_.rail_board.ChangePaths();
  const std::string name = absl::StrCat("rail ", it.address.ToString(), " (", it.device.name, ")");
  if (port.up) {
    LOG(INFO) << name << " is up again";
  } else {
    LOG(WARNING) << name << " is down";
  }
}

void RailWatch::OnLost(const ibv_context* verbs, std::string_view how) {
  const bool one = server_.rails.size() == 1;
  for (size_t i = 0; i < server_.rails.size(); ++i) {
    const Device& device = server_.rails[i].device;
    if (lost_[i] || (!one && device.verbs != verbs)) continue;
    lost_[i] = true;
    const std::string what = absl::StrCat("device ", device.name, " ", std::string(how));
    if (in_group_ && !one) {
      status_ = absl::UnavailableError(
          absl::StrCat(what, ", which ends a member of a group: it is to be started again"));
      continue;
    }
    if (std::ranges::count(lost_, true) == static_cast<int>(server_.rails.size())) {
      status_ = absl::UnavailableError(what);
      continue;
    }
    LOG(ERROR) << what << ": rail " << server_.rails[i].address.ToString()
               << " is lost until the server is started again";
    Show(i);
    workers_.Notify({Notice::Type::kRailLost, i});
  }
}

}  // namespace gannet
