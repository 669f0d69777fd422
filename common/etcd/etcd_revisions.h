#ifndef GANNET_COMMON_ETCD_ETCD_REVISIONS_H_
#define GANNET_COMMON_ETCD_ETCD_REVISIONS_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/etcd/etcd.h"
#include "common/etcd/etcd_messages.h"

namespace gannet {

// The revisions that are told of an etcd. They never fall, also if etcd loses its data, or is
// restored from a backup, and counts from a lower one again: an era begins then.
//
// Thread safety: one thread.
class EtcdRevisions {
 public:
  // How often etcd went back.
  uint64_t era() const { return era_; }
  // The highest that was told, as etcd counts now.
  int64_t highest() const { return highest_ - base_; }
  // Returns what is told of a revision of etcd, and the other way round; less than 1 for one of a
  // former era.
  int64_t Told(int64_t revision) const { return revision + base_; }
  int64_t Etcds(int64_t told) const { return told - base_; }

  // Returns what is wrong if another cluster of etcd answered before.
  absl::Status CheckCluster(const EtcdHeader& header) {
    if (!cluster_id_) cluster_id_ = header.cluster_id;
    if (*cluster_id_ == header.cluster_id) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "it belongs to another cluster of etcd than the one that answered first. All URLs must be "
        "of one cluster");
  }
  // Make of etcd's revisions those that are told.
  void Tell(EtcdHeader* header, std::vector<EtcdKeyValue>* items) {
    header->revision = Told(header->revision);
    NoteTold(header->revision);
    for (EtcdKeyValue& item : *items) item.mod_revision = Told(item.mod_revision);
  }
  void NoteTold(int64_t revision) { highest_ = std::max(highest_, revision); }
  // etcd has lost its data, or a part of it.
  void GoBack() {
    ++era_;
    base_ = highest_;
  }

 private:
  std::optional<uint64_t> cluster_id_;
  uint64_t era_ = 0;
  int64_t base_ = 0;     // what is added to etcd's revisions
  int64_t highest_ = 0;  // that was told
};

}  // namespace gannet

#endif  // GANNET_COMMON_ETCD_ETCD_REVISIONS_H_
