#ifndef GANNET_SERVER_GROUP_CLUSTER_ETCD_UPKEEP_H_
#define GANNET_SERVER_GROUP_CLUSTER_ETCD_UPKEEP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/cluster/cluster_keys.h"
#include "common/etcd/etcd.h"
#include "server/group/cluster/announcement.h"
#include "server/group/cluster/group_view.h"

namespace gannet {

// What a member keeps right in etcd beside its group's register and its own announcement. The watch
// tells what became of each change (GroupView); until then it is tried again, with pauses. Poll of
// each is called as often as EtcdConfigStore::Poll. What they are given outlives them. One thread
// at a time.

// An operator's wish that a certain member leads the group. Who has followed it, or cannot, forgets
// it: then it is deleted, but not a later wish.
class SuccessorWish {
 public:
  // Of the group that `view` shows.
  SuccessorWish(std::string cluster, Etcd& etcd, const GroupView& view)
      : cluster_(std::move(cluster)), etcd_(etcd), view_(view) {}

  // Returns the node that is to lead, if there is a wish that was not forgotten.
  std::optional<std::string> Wanted() const;
  void Forget();
  void Poll();

 private:
  const std::string cluster_;
  Etcd& etcd_;
  const GroupView& view_;
  int64_t forgotten_ = 0;  // its mod_revision
  std::optional<int64_t> deleted_at_;
};

// lives/N: says that this node's process has items, while etcd has lost the group or the map. It is
// deleted when both are there again. One of a former process of this node stays as long as nobody
// has founded the group.
class LifeNote {
 public:
  LifeNote(std::string_view cluster, std::string node, Etcd& etcd, const GroupView& view,
           const Announcement& announcement)
      : key_(LifeKey(cluster, node)),
        node_(std::move(node)),
        etcd_(etcd),
        view_(view),
        announcement_(announcement) {}

  // What this process says of itself. The rest of the note is what the view knows.
  struct Own {
    uint64_t incarnation = 0;
    uint64_t applied = 0;
    bool leads = false;
  };
  void Poll(const Own& own);

 private:
  const std::string key_;
  const std::string node_;
  Etcd& etcd_;
  const GroupView& view_;
  const Announcement& announcement_;
  std::optional<int64_t> told_at_;
};

// Has etcd forget what keys were before, so that its disk does not fill up. Each time, all that is
// older than the time before. Who has not heard of that yet lists all again (EtcdClient::Watch).
class EtcdCompaction {
 public:
  // `every_ms` = 0: never.
  EtcdCompaction(int64_t every_ms, Etcd& etcd, const GroupView& view)
      : every_ms_(every_ms), etcd_(etcd), view_(view) {}

  // `leads`: this process is the group's primary. Only that one compacts.
  void Poll(bool leads);
  // The revision that etcd was last made to compact to; 0: none.
  int64_t done() const { return done_; }

 private:
  const int64_t every_ms_;
  Etcd& etcd_;
  const GroupView& view_;
  int64_t next_at_ = 0;
  int64_t next_to_ = 0;  // to this revision; 0: none is old enough
  int64_t done_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_CLUSTER_ETCD_UPKEEP_H_
