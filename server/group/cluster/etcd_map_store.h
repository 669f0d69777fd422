#ifndef GANNET_SERVER_GROUP_CLUSTER_ETCD_MAP_STORE_H_
#define GANNET_SERVER_GROUP_CLUSTER_ETCD_MAP_STORE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/etcd/etcd.h"
#include "server/group/cluster/announcement.h"
#include "server/group/cluster/group_view.h"
#include "server/group/replica/map_store.h"

namespace gannet {

// A member's way to the cluster's map in etcd. Part of EtcdConfigStore, which polls the client.
//
// Thread safety: one thread.
class EtcdMapStore : public MapStore {
 public:
  // All outlive it.
  EtcdMapStore(std::string cluster, Etcd* client, GroupView* view, const Announcement* announcement)
      : cluster_(std::move(cluster)), client_(client), view_(view), announcement_(announcement) {}

  void Txn(const MapTxn& txn) override;
  std::optional<Result> Poll() override { return std::exchange(result_, std::nullopt); }
  const SeenMap* Seen() const override { return &view_->map(); }

 private:
  // Takes what it says of the map.
  Result Take(const MapTxn& txn, const EtcdTxnResult& result);

  const std::string cluster_;
  Etcd* const client_;
  GroupView* const view_;
  const Announcement* const announcement_;
  uint64_t request_ = 0;  // the newest; results of others are not told
  std::optional<Result> result_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_CLUSTER_ETCD_MAP_STORE_H_
