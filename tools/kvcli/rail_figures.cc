#include "tools/kvcli/rail_figures.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "absl/strings/str_cat.h"

namespace gannet::kvcli {
namespace {

constexpr std::chrono::seconds kRailsWaitMax{3};
constexpr std::chrono::milliseconds kRailsLookAgain{10};

// The others are not told yet if there is one.
bool AllConnected(const std::vector<RailInfo>& rails) {
  return rails.size() != 1 &&
         std::ranges::all_of(rails, [](const RailInfo& it) { return it.connected || !it.up; });
}

}  // namespace

std::vector<RailInfo> AwaitRails(Client& client, uint32_t server) {
  const auto end = std::chrono::steady_clock::now() + kRailsWaitMax;
  for (;;) {
    std::vector<RailInfo> rails = client.Info()[server].rails;
    if (AllConnected(rails) || std::chrono::steady_clock::now() >= end) return rails;
    std::this_thread::sleep_for(kRailsLookAgain);
    (void)client.Ping();  // a client looks at its connections while it is called
  }
}

std::string_view RailStateText(const RailInfo& rail) {
  if (!rail.up) return "down";
  return rail.connected ? "up" : "not reached";
}

uint64_t ConnectionsOf(const std::vector<RailInfo>& rails) {
  uint64_t all = 0;
  for (const RailInfo& rail : rails) all += rail.connections;
  return all;
}

Json RailsJson(const std::vector<RailInfo>& rails) {
  const uint64_t all = ConnectionsOf(rails);
  Json json = Json::array();
  for (const RailInfo& rail : rails) {
    Json& one = json.emplace_back();
    one = {{"address", rail.address},
           {"state", RailStateText(rail)},
           {"connections", rail.connections},
           {"mtu_bytes", rail.mtu_bytes},
           {"mbit_per_second", rail.mbit_per_second}};
    one["share"] =
        all > 0 ? Json(static_cast<double>(rail.connections) / static_cast<double>(all)) : Json();
  }
  return json;
}

std::string RailsText(const std::vector<RailInfo>& rails) {
  const uint64_t all = ConnectionsOf(rails);
  std::string text;
  for (const RailInfo& rail : rails) {
    absl::StrAppend(&text, "rail ", rail.address, " ", std::string(RailStateText(rail)), ", ",
                    rail.connections, " connections");
    if (all > 0) absl::StrAppend(&text, " (", rail.connections * 100 / all, " %)");
    if (rail.mtu_bytes > 0) absl::StrAppend(&text, ", packets of ", rail.mtu_bytes, " bytes");
    if (rail.mbit_per_second > 0) absl::StrAppend(&text, ", ", rail.mbit_per_second, " Mbit/s");
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace gannet::kvcli
