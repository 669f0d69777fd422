#ifndef GANNET_SERVER_GROUP_CLUSTER_ANNOUNCEMENT_H_
#define GANNET_SERVER_GROUP_CLUSTER_ANNOUNCEMENT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "common/cluster/cluster_config.h"
#include "common/etcd/etcd_client.h"

namespace gannet {

// A process's own nodes/N, and versions/N beside it: when to write it, and who has the name. Each
// write compares the revision, so one that etcd executes late changes nothing. Of two processes
// with one name the one in sync has it: it writes over what is there. If neither is, the later one
// has it.
//
// How far a process is changes all the time, and is for people. etcd keeps each value that a key
// ever had, until somebody compacts it, and each member of a cluster hears of each node's write. So
// a process writes that once a minute, and more seldom if there are many nodes: all together some
// ten times a second. It writes at once when it has changed otherwise, and when it is told to
// (Hurry).
//
// What etcd does not take shows only when something is written. So it is written now and then
// though nothing has changed: a register that takes nothing allows no fail-over.
//
// Thread safety: one thread. Times are those of any clock that does not go back, in ns.
class Announcement {
 public:
  static constexpr int64_t kPauseNs = 1'000'000'000;            // between two writes, at least
  static constexpr int64_t kPauseOfProgressNs = 60 * kPauseNs;  // if only `applied` has changed
  static constexpr int64_t kPauseOfEachNodeNs = kPauseNs / 10;  // the same, for each node
  static constexpr int64_t kPauseOfNothingNs = 600 * kPauseNs;  // if nothing has changed
  static constexpr int64_t kPauseOfFailuresNs = 5 * kPauseNs;   // while etcd takes none
  static constexpr int64_t kPatienceNs = 10 * kPauseNs;         // until it is said that it fails

  struct Options {
    std::string node_key;
    std::string version_key;
    std::string rails_key;
    std::string disk_key;
    std::string version = "unknown";  // of Gannet. It is written with the first write of nodes/N
  };
  explicit Announcement(Options options) : options_(std::move(options)) {}

  // What is to be known of this process, whose incarnation never changes.
  void Want(const NodeInfo& info) { wanted_ = info; }
  // What is wanted tells more than how far the process is: its role has changed, for example, and
  // `applied` stays what it is.
  void Hurry() { hurries_ = true; }
  // Where it can be reached, if that is by several rails. It is written with the first write of
  // nodes/N.
  void WantRails(const NodeRails& rails) { rails_ = rails; }
  // What is on its disk. It is written together with nodes/N.
  void WantDisk(const NodeDisk& disk) { disk_ = disk; }
  // The group counts on this process: it is in sync, as far as it knows.
  void KeepName(bool keeps) {
    keeps_name_ = keeps;
    replaced_ = replaced_ && !keeps;
  }
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

  // Another process with this name has announced itself after this one did, and has it.
  bool replaced() const { return replaced_; }
  // Returns why etcd takes nothing, if that has been so for kPatienceNs; "" otherwise.
  std::string WhyNotWritten(int64_t now) const {
    return failing_since_ && now - *failing_since_ >= kPatienceNs ? failure_ : "";
  }

 private:
  // Takes note of what is there now.
  void Judge(const NodeInfo& seen);
  void OnDeleted();
  // Returns how long after the last write the next one is due.
  int64_t Pause(size_t nodes) const;

  const Options options_;
  std::optional<NodeInfo> wanted_;
  std::optional<NodeInfo> written_;  // that etcd has, as far as it is known
  std::optional<NodeInfo> sent_;
  std::optional<NodeRails> rails_;
  std::optional<NodeDisk> disk_;
  std::optional<NodeDisk> disk_written_;
  std::optional<NodeDisk> disk_sent_;
  int64_t mod_revision_ = 0;  // the newest that was seen
  NodeInfo seen_;             // what it had
  std::optional<int64_t> sent_at_;
  bool hurries_ = false;
  std::optional<int64_t> failing_since_;  // sent_at_ of the first write that etcd did not take
  std::string failure_;
  bool busy_ = false;
  bool announced_ = false;
  bool keeps_name_ = false;
  bool replaced_ = false;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_CLUSTER_ANNOUNCEMENT_H_
