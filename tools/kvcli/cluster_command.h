#ifndef GANNET_TOOLS_KVCLI_CLUSTER_COMMAND_H_
#define GANNET_TOOLS_KVCLI_CLUSTER_COMMAND_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "common/etcd/etcd_access.h"

namespace gannet::kvcli {

// What "cluster" is to do.
struct ClusterCommand {
  enum class Action : uint8_t { kInit, kStatus, kHandOver, kAdd, kRemove, kForce };
  struct Group {
    std::string name;
    std::vector<std::string> members;
  };

  Action action = Action::kStatus;
  std::string group;  // of all but init and status
  std::string node;   // of handover, add and remove
  std::vector<std::string> etcd;
  EtcdAccess etcd_access;
  std::string cluster;
  std::vector<Group> groups;           // init
  std::optional<uint32_t> lease_ms;    // init
  std::optional<uint32_t> min_copies;  // init
  std::optional<uint64_t> ring_bytes;  // init
  bool if_missing = false;             // init: a cluster that is there is no error
  std::string from;                    // force: the node whose items are kept
  bool lose_data = false;              // force
};

// Takes an option that only "cluster" has. Returns nullopt if this is none. InvalidArgument: the
// value is wrong.
std::optional<absl::Status> ApplyClusterOption(std::string_view name, std::string_view value,
                                               ClusterCommand* command);

// Takes the words behind "cluster", once the options are taken. InvalidArgument: the action is
// unknown, or words or options are missing or too many.
absl::Status TakeClusterWords(std::span<const std::string> words, ClusterCommand* command);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_CLUSTER_COMMAND_H_
