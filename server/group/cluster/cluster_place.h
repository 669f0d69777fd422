#ifndef GANNET_SERVER_GROUP_CLUSTER_CLUSTER_PLACE_H_
#define GANNET_SERVER_GROUP_CLUSTER_CLUSTER_PLACE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/etcd/etcd_access.h"
#include "server/group/cluster/etcd_config_store.h"
#include "server/group/members/group_options.h"

namespace gannet {

// What kvserver's flags say about being a member of a group; each field is the flag of its name.
struct ClusterFlags {
  std::string cluster;
  std::string etcd;
  EtcdAccess etcd_access;  // --etcd_ca_file and the others of its fields
  bool etcd_compact = false;
  std::string advertise;
  std::string name;
  std::string listen;
  std::string auth_file;
  std::string memory_file;
  std::string restore_from;
  std::string data;
  std::string sync;
  std::string version = "unknown";  // no flag: of this kvserver
  bool waits_for_etcd = false;      // no flag: it was a member already, so its flags are right

  bool asks_for_member() const { return !cluster.empty(); }
};

// Returns InvalidArgument if flags are missing, wrong, or do not go with each other.
absl::Status Check(const ClusterFlags& flags);

// What a member's server is told. Outlives the server.
struct ClusterPlace {
  std::unique_ptr<EtcdConfigStore> store;
  GroupOptions group;  // points to the store
};

// Blocks until the configuration is read. Errors as EtcdConfigStore::Open. REQUIRES: the flags ask
// for a member, and Check returned OK.
absl::StatusOr<ClusterPlace> FindClusterPlace(const ClusterFlags& flags);

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_CLUSTER_CLUSTER_PLACE_H_
