#include "server/group/cluster/etcd_map_store.h"

#include <utility>

#include "common/base/check.h"
#include "common/cluster/cluster_keys.h"
#include "glog/logging.h"

namespace gannet {

void EtcdMapStore::Txn(const MapTxn& txn) {
  GANNET_CHECK(txn.ended.size() <= kMovesOfTxnMax, "more wishes than a transaction takes");
  result_.reset();
  const std::string config_key = ConfigKey(cluster_);
  EtcdTxn sent = {.compares = {{.key = config_key, .mod_revision = txn.map_revision}},
                  .puts = {{config_key, Encode(txn.wanted)}}};
  if (txn.group) {
    sent.compares.push_back({.key = GroupKey(cluster_, view_->group()),
                             .mod_revision = static_cast<int64_t>(*txn.group)});
  }
  for (const auto& [partition, mod_revision] : txn.ended) {
    const std::string key = MoveKey(cluster_, partition);
    sent.compares.push_back({.key = key, .mod_revision = mod_revision});
    sent.deletes.push_back(key);
  }
  if (auto standing = announcement_->Standing()) sent.compares.push_back(*std::move(standing));
  client_->Txn(sent, [this, txn, id = ++request_](const EtcdTxnResult& result) {
    // Also an abandoned one tells what the map is.
    const Result told = Take(txn, result);
    if (id == request_) result_ = told;
  });
}

EtcdMapStore::Result EtcdMapStore::Take(const MapTxn& txn, const EtcdTxnResult& result) {
  using enum EtcdTxnResult::Outcome;
  switch (result.outcome) {
    case kWon:
      view_->TakeConfig(txn.wanted, result.revision);
      return Result::kWon;
    case kRefused:
      view_->TakeMap(result.current);  // what cannot be read is told by the watch
      return Result::kLost;
    // It will not be executed, but that is not what kLost says: all may be as it was.
    case kFailed:
    case kUnknown:
      LOG(WARNING) << "the map of partitions cannot be changed: " << result.status.message();
      return Result::kUnknown;
  }
  return Result::kUnknown;
}

}  // namespace gannet
