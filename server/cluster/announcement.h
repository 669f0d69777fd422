#ifndef GANNET_SERVER_CLUSTER_ANNOUNCEMENT_H_
#define GANNET_SERVER_CLUSTER_ANNOUNCEMENT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/cluster/cluster_config.h"
#include "common/etcd/etcd_client.h"

namespace gannet {

// A process's own nodes/N, and versions/N beside it: when to write it, and who has the name. Each
// write compares the revision, so one that etcd executes late changes nothing, and of two processes
// with one name the later one has it.
//
// How far a process is changes all the time. Each member of a cluster hears of each node's write,
// so n members that write once a second would have etcd tell n * n changes a second. So the more
// nodes there are, the more seldom each writes this: all together some ten times a second.
//
// Thread safety: one thread. Times are those of any clock that does not go back, in ns.
class Announcement {
 public:
  static constexpr int64_t kPauseNs = 1'000'000'000;          // between two writes, at least
  static constexpr int64_t kPauseOfEachNodeNs = 100'000'000;  // if etcd knows the process already

  struct Options {
    std::string node_key;
    std::string version_key;
    std::string disk_key;
    std::string version = "unknown";  // of Gannet. It is written with the first write of nodes/N
  };
  explicit Announcement(Options options) : options_(std::move(options)) {}

  // What is to be known of this process, whose incarnation never changes.
  void Want(const NodeInfo& info) { wanted_ = info; }
  // What is on its disk. It is written together with nodes/N.
  void WantDisk(const NodeDisk& disk) { disk_ = disk; }
  // `seen`: what nodes/N has, as the watch or an answer says; without an incarnation if it cannot
  // be read. Only what another process can have written says that another one has the name. All
  // else that this process has not written, it writes over.
  void Saw(const NodeInfo& seen, int64_t mod_revision);

  // Returns what is to be written now, if anything. `nodes`: how many the cluster has. Until
  // OnResult, nothing else is.
  std::optional<EtcdTxn> Due(int64_t now, size_t nodes);
  void OnResult(const EtcdTxnResult& result);

  // The watch has told all up to the revision `watched`, and nodes/N is not there. If it has been,
  // it was deleted. Then it is written again: somebody may want to know whether this process lives.
  // The revision decides, not the order of the calls: the answer to the write comes on another way
  // than the watch, so it may come after what the watch tells of the deletion.
  void NotThere(int64_t watched) {
    if (mod_revision_ > 0 && watched >= mod_revision_) OnDeleted();
  }
  // What etcd has to find, so that it executes what this process sends: no later process has its
  // name. Without it, what a dead process sent may be executed when its node has another one.
  // nullopt: this process announces nothing.
  std::optional<EtcdTxn::Compare> Standing() const {
    if (!wanted_) return std::nullopt;
    return EtcdTxn::Compare{.key = options_.node_key, .value_begins = BeginningOf(*wanted_)};
  }

  // Another process with this name has announced itself after this one did.
  bool replaced() const { return replaced_; }

 private:
  void OnDeleted();

  const Options options_;
  std::optional<NodeInfo> wanted_;
  std::optional<NodeInfo> written_;  // that etcd has, as far as it is known
  std::optional<NodeInfo> sent_;
  std::optional<NodeDisk> disk_;
  std::optional<NodeDisk> disk_written_;
  std::optional<NodeDisk> disk_sent_;
  int64_t mod_revision_ = 0;  // the newest that was seen
  std::optional<int64_t> sent_at_;
  bool busy_ = false;
  bool announced_ = false;
  bool replaced_ = false;
};

}  // namespace gannet

#endif  // GANNET_SERVER_CLUSTER_ANNOUNCEMENT_H_
