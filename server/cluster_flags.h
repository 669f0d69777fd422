#ifndef GANNET_SERVER_CLUSTER_FLAGS_H_
#define GANNET_SERVER_CLUSTER_FLAGS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/cluster/etcd_config_store.h"
#include "server/group/group_options.h"

namespace gannet {

// The flags by which kvserver is a member of a group: --cluster, --etcd, --etcd_ca_file and
// --advertise. They are defined in cluster_flags.cc.

// Of the other flags, what matters to a member.
struct FlagsBesideCluster {
  std::string name;
  std::string listen;
  std::string auth_file;
  std::string memory_file;
  std::string data;
  std::string restore_from;
  bool sync_always = false;
};

// Whether the flags ask for a member of a group.
bool IsMember();
// Returns InvalidArgument if flags are missing, wrong, or do not go with each other.
absl::Status CheckClusterFlags(const FlagsBesideCluster& others);

// What a member's server is told. Outlives the server.
struct ClusterPlace {
  std::unique_ptr<EtcdConfigStore> store;
  GroupOptions group;  // points to the store
};
// Blocks until the configuration is read. Errors as EtcdConfigStore::Open. REQUIRES: IsMember(),
// and CheckClusterFlags returned OK.
absl::StatusOr<ClusterPlace> FindClusterPlace(const FlagsBesideCluster& others);

}  // namespace gannet

#endif  // GANNET_SERVER_CLUSTER_FLAGS_H_
