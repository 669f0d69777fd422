#include "tools/kvcli/partition_bytes.h"

#include <gannet/walker.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/protocol/partition_map.h"

namespace gannet::kvcli {
namespace {

// A walk is meant to be fast here, and to leave the most of a NIC's READs to clients.
constexpr uint32_t kReadsPerSecond = 200'000;
constexpr std::chrono::seconds kTellPause{1};
constexpr int kNice = 19;

absl::StatusOr<std::string> PrimaryAddress(const ClusterState& state, const std::string& group) {
  const auto found = state.groups.find(group);
  if (found != state.groups.end() && found->second.config.epoch > 0) {
    const auto node = state.nodes.find(found->second.config.primary.node);
    if (node != state.nodes.end()) return node->second.address;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("group ", group, " has partitions and no primary: start its members first"));
}

}  // namespace

absl::StatusOr<std::vector<uint64_t>> MeasurePartitions(
    const ClusterState& state, const Options& connect,
    const std::function<void(const std::string& line)>& tell) {
  // Others on this machine come first: a walk takes a whole core. kvcli only waits afterwards.
  setpriority(PRIO_PROCESS, 0, kNice);
  std::vector<uint64_t> bytes(kPartitions);
  for (uint16_t place = 0; place < state.map.groups.size(); ++place) {
    if (std::ranges::count(state.map.partitions, place) == 0) continue;
    const std::string& group = state.map.groups[place];
    GANNET_ASSIGN_OR_RETURN(const std::string address, PrimaryAddress(state, group));
    const auto advise = [&](const absl::Status& status) -> absl::Status {
      return {status.code(),
              absl::StrCat("group ", group, " cannot be measured: ", status.message(),
                           ". Without measuring: --by_partitions")};
    };
    const auto walker = Walker::Connect(
        address, connect, {.reads_per_second = kReadsPerSecond, .this_server_alone = true});
    if (!walker.ok()) return advise(walker.status());
    auto told = std::chrono::steady_clock::now();
    const absl::Status walked = (*walker)->Walk([&](const WalkedItem& item) {
      const uint32_t partition = PartitionOf(item.key);
      if (state.map.partitions[partition] == place) {
        // A long value's pieces are not in its block.
        bytes[partition] += std::max<uint64_t>(item.block_bytes, item.info.value_bytes);
      }
      if (const auto now = std::chrono::steady_clock::now(); now - told >= kTellPause) {
        told = now;
        tell(
            absl::StrFormat("measures group %s: %.0f %%", group, 100 * (*walker)->progress().done));
      }
      return true;
    });
    if (!walked.ok()) return advise(walked);
  }
  return bytes;
}

}  // namespace gannet::kvcli
