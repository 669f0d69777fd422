#include "server/cluster_flags.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/rdma/address.h"
#include "gflags/gflags.h"
#include "glog/logging.h"

DEFINE_string(cluster, "",
              "the cluster that this server is of; its group is the one that has --name as a "
              "member. kvcli cluster init makes a cluster. Empty: the server is alone");
DEFINE_string(etcd, "",
              "URL[,URL...] of the etcd that has the cluster's configuration, such as "
              "http://10.0.0.1:2379; for --cluster");
DEFINE_string(etcd_ca_file, "",
              "certificates (PEM) that sign etcd's, if its URLs are https; empty: the system's");
DEFINE_string(advertise, "",
              "HOST:PORT where clients and the other members of the group reach this server; "
              "without it, where it listens, which must then be one address");

namespace gannet {
namespace {

absl::Status Wrong(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

// Whether others can connect to this HOST, which may be one to listen on.
bool IsReachable(const absl::StatusOr<HostPort>& place) {
  return place.ok() && !place->host.empty() && place->host != "0.0.0.0" && place->host != "::";
}

absl::Status CheckAdvertised(const FlagsBesideCluster& others) {
  const auto advertised = ParseHostPort(FLAGS_advertise, 0);
  if (!FLAGS_advertise.empty()) {
    if (IsReachable(advertised) && advertised->port != 0) return absl::OkStatus();
    return Wrong(absl::StrCat("--advertise=", FLAGS_advertise, " is no HOST:PORT to connect to"));
  }
  // Then the server says where it listens, with the port that it got.
  if (IsReachable(ParseHostPort(others.listen, 0))) return absl::OkStatus();
  return Wrong(absl::StrCat("--cluster needs --advertise=HOST:PORT, where clients and the other "
                            "members reach this server, because --listen=",
                            others.listen, " does not say it"));
}

// Refuses what would make a member's items differ from its group's.
absl::Status CheckKeptItems(const FlagsBesideCluster& others) {
  if (!others.memory_file.empty()) {
    return Wrong(
        "--memory_file cannot be used together with --cluster: a member begins empty and takes "
        "the group's items from its primary, so items of an earlier run would be out of date");
  }
  if (others.sync_always) {
    return Wrong(
        "--sync=always cannot be used together with --cluster: in a group, a write is acknowledged "
        "when all members in sync have it in memory, and it does not wait for a disk");
  }
  if (!others.data.empty() || !others.restore_from.empty()) {
    return Wrong(
        "--data and --restore_from cannot be used together with --cluster yet: a member begins "
        "empty and takes the group's items from its primary");
  }
  return absl::OkStatus();
}

}  // namespace

bool IsMember() { return !FLAGS_cluster.empty(); }

absl::Status CheckClusterFlags(const FlagsBesideCluster& others) {
  if (!IsMember()) {
    for (const auto& [name, value] : {std::pair{"--etcd", FLAGS_etcd},
                                      {"--etcd_ca_file", FLAGS_etcd_ca_file},
                                      {"--advertise", FLAGS_advertise}}) {
      if (!value.empty()) return Wrong(absl::StrCat(name, " is of no use without --cluster"));
    }
    return absl::OkStatus();
  }
  if (!IsClusterName(FLAGS_cluster)) return Wrong("--cluster: " + WhatNamesAre("cluster"));
  if (FLAGS_etcd.empty()) return Wrong("--cluster needs --etcd=URL[,URL...]");
  if (others.name.empty()) {
    return Wrong("--cluster needs --name, which says who of the group this server is");
  }
  if (!IsClusterName(others.name)) return Wrong("--name: " + WhatNamesAre("node"));
  GANNET_RETURN_IF_ERROR(CheckAdvertised(others));
  return CheckKeptItems(others);
}

absl::StatusOr<ClusterPlace> FindClusterPlace(const FlagsBesideCluster& others) {
  EtcdConfigStore::Options options = {.cluster = FLAGS_cluster, .node = others.name};
  options.etcd.endpoints = absl::StrSplit(FLAGS_etcd, ',', absl::SkipEmpty());
  options.etcd.ca_file = FLAGS_etcd_ca_file;
  ClusterPlace place;
  GANNET_ASSIGN_OR_RETURN(place.store, EtcdConfigStore::Open(std::move(options)));
  place.group = {.store = place.store.get(),
                 .directory = place.store.get(),
                 .terms = place.store->terms(),
                 .node = others.name,
                 .advertise = FLAGS_advertise,
                 .auth_file = others.auth_file};
  LOG(INFO) << "member " << others.name << " of group " << place.store->group() << ", cluster "
            << FLAGS_cluster;
  return place;
}

}  // namespace gannet
