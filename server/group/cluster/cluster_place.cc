// Checks the flags of a member, with each other and with what the disk has, and makes of them what
// its server is told. What would make a member's items differ from its group's is refused.

#include "server/group/cluster/cluster_place.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/rdma/address.h"
#include "glog/logging.h"

namespace gannet {
namespace {

constexpr int64_t kCompactMs = 10 * 60 * 1000;

absl::Status Wrong(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

// Whether others can connect to this HOST, which may be one to listen on.
bool IsReachable(const absl::StatusOr<HostPort>& place) {
  return place.ok() && !place->host.empty() && place->host != "0.0.0.0" && place->host != "::";
}

absl::Status CheckAdvertised(const ClusterFlags& flags) {
  const auto advertised = ParseHostPort(flags.advertise, 0);
  if (!flags.advertise.empty()) {
    if (IsReachable(advertised) && advertised->port != 0) return absl::OkStatus();
    return Wrong(absl::StrCat("--advertise=", flags.advertise, " is no HOST:PORT to connect to"));
  }
  // Then the server says where it listens, with the port that it got.
  if (IsReachable(ParseHostPort(flags.listen, 0))) return absl::OkStatus();
  return Wrong(absl::StrCat(
      "--cluster needs --advertise=HOST:PORT, where clients and the other members reach this "
      "server, or --listen=ADDR:PORT of one address",
      flags.listen.empty() ? "" : absl::StrCat(", which --listen=", flags.listen, " is not")));
}

// Refuses what would make a member's items differ from its group's. What --data has of an earlier
// run counts only if an operator forces it.
absl::Status CheckKeptItems(const ClusterFlags& flags) {
  if (!flags.memory_file.empty()) {
    return Wrong(
        "--memory_file cannot be used together with --cluster: a member begins empty and takes "
        "the group's items from its primary, so items of an earlier run would be out of date");
  }
  if (flags.sync == "always" && flags.data.empty()) {
    return Wrong(
        "--sync=always needs --data=DIR: in a group, a write is then acknowledged when all members "
        "in sync have it in memory, and the primary has it on its disk");
  }
  if (!flags.restore_from.empty()) {
    return Wrong(
        "--restore_from cannot be used together with --cluster: a member begins empty and takes "
        "the group's items from its primary");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Check(const ClusterFlags& flags) {
  if (!flags.asks_for_member()) {
    for (const auto& [name, value] : {std::pair{"--etcd", flags.etcd},
                                      {"--etcd_ca_file", flags.etcd_access.ca_file},
                                      {"--etcd_cert_file", flags.etcd_access.cert_file},
                                      {"--etcd_key_file", flags.etcd_access.key_file},
                                      {"--etcd_user", flags.etcd_access.user},
                                      {"--etcd_password_file", flags.etcd_access.password_file},
                                      {"--advertise", flags.advertise}}) {
      if (!value.empty()) return Wrong(absl::StrCat(name, " is of no use without --cluster"));
    }
    if (flags.etcd_compact) return Wrong("--etcd_compact is of no use without --cluster");
    return absl::OkStatus();
  }
  if (!IsClusterName(flags.cluster)) return Wrong("--cluster: " + WhatNamesAre("cluster"));
  if (flags.etcd.empty()) return Wrong("--cluster needs --etcd=URL[,URL...]");
  GANNET_RETURN_IF_ERROR(Check(flags.etcd_access));
  if (flags.name.empty()) {
    return Wrong("--cluster needs --name, which says who of the group this server is");
  }
  if (!IsClusterName(flags.name)) return Wrong("--name: " + WhatNamesAre("node"));
  GANNET_RETURN_IF_ERROR(CheckAdvertised(flags));
  return CheckKeptItems(flags);
}

absl::StatusOr<ClusterPlace> FindClusterPlace(const ClusterFlags& flags) {
  GANNET_CHECK(flags.asks_for_member() && Check(flags).ok(), "flags of no member");
  EtcdConfigStore::Options options = {.cluster = flags.cluster,
                                      .node = flags.name,
                                      .version = flags.version,
                                      .patient = flags.waits_for_etcd,
                                      .compact_ms = flags.etcd_compact ? kCompactMs : 0};
  GANNET_ASSIGN_OR_RETURN(options.etcd, ClientOptions(flags.etcd_access));
  options.etcd.endpoints = absl::StrSplit(flags.etcd, ',', absl::SkipEmpty());
  ClusterPlace place;
  GANNET_ASSIGN_OR_RETURN(place.store, EtcdConfigStore::Open(std::move(options)));
  place.group = {.config_store = place.store.get(),
                 .directory = place.store.get(),
                 .map_store = place.store->map_store(),
                 .name = place.store->group(),
                 .terms = place.store->terms(),
                 .node = flags.name,
                 .advertise = flags.advertise,
                 .auth_file = flags.auth_file};
  LOG(INFO) << "member " << flags.name << " of group " << place.store->group() << ", cluster "
            << flags.cluster;
  return place;
}

}  // namespace gannet
