#ifndef GANNET_SERVER_GROUP_CLUSTER_ETCD_CONFIG_STORE_H_
#define GANNET_SERVER_GROUP_CLUSTER_ETCD_CONFIG_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/etcd/etcd.h"
#include "common/etcd/etcd_client.h"
#include "server/group/cluster/announcement.h"
#include "server/group/cluster/etcd_map_store.h"
#include "server/group/cluster/etcd_upkeep.h"
#include "server/group/cluster/group_view.h"
#include "server/group/replica/config_store.h"
#include "server/group/replica/group_directory.h"

namespace gannet {

// A member's way to its group in etcd (docs/group-recovery.md, "The register in etcd").
//
// 1. GroupRegister::revision is the mod_revision of groups/G.
// 2. A transaction compares it, and that nodes/N is this process's: what a process sent is not
//    executed any more once its node's next process has announced itself. If it names another
//    process as primary, it compares the same of that one. It writes what is wanted
//    with the newest terms that were seen. If an operator has changed the terms since, the revision
//    has changed, too, and it loses. What the terms do not allow (somebody is to be in sync who is
//    no member) is not sent: it is answered kLost after a read.
// 3. Each answer comes with the cluster's map as it was at the register's revision or later, and
//    Partitions and Config have it when Poll gives the answer (docs/partitions.md, rule 3). What
//    Seen tells of the watch needs no more: that tells of all keys in the order of their changes.
// 4. Everything else, and what Seen, terms and the addresses say, comes from a watch of the
//    cluster's keys, in Poll. So call Poll also when no request is under way: when fd() is
//    readable, and a few times a second.
// 5. A request is answered within Options::call_ms for each endpoint.
//
// 6. While etcd has lost the group or the map (GroupView), requests are answered kUnknown, and
//    lives/N says that this process has items, if it does. It is deleted when both are there again.
//    Who founds the group compares that no member's lives/N is there, and writes policies/G.
//
// If etcd is away, requests are answered kUnknown, and what was seen stays as it was.
//
// Thread safety: one thread at a time. Open may be called on another than the rest.
class EtcdConfigStore : public ConfigStore, public GroupDirectory {
 public:
  struct Options {
    EtcdClient::Options etcd;
    std::string cluster;
    std::string node;
    std::string version = "unknown";  // of Gannet, which it announces
    int64_t open_ms = 10'000;         // how long Open waits for an etcd that cannot be reached
    bool patient = false;             // it waits for as long as that is so, and logs it so often
    // How often the group's primary has etcd forget what keys were before: all that is older than
    // when it did so last. 0: never, as etcd may have other users, who want to read that.
    int64_t compact_ms = 0;
  };

  // Blocks until it has read all that lies in etcd of the cluster. The errors' texts say what to
  // do.
  //   InvalidArgument: a name or a URL that cannot be.
  //   Unavailable: no etcd answered within open_ms, and it is not to be patient.
  //   NotFound: etcd has no such cluster, or the node is in no group.
  //   Others: etcd refuses, or what lies there cannot be read.
  static absl::StatusOr<std::unique_ptr<EtcdConfigStore>> Open(Options options);
  ~EtcdConfigStore() override;

  // --- ConfigStore ---
  void Read() override;
  void Txn(uint64_t revision, const GroupConfiguration& wanted) override;
  void BeginAgain(uint64_t revision, const GroupConfiguration& wanted, uint64_t history,
                  const std::vector<GroupMember>& others) override;
  void Adopt(const GroupConfiguration& known) override;
  Standing standing() const override { return view_.standing(); }
  std::optional<Answer> Poll() override;
  std::optional<GroupRegister> Seen() const override { return view_.state().now; }
  bool SeesNewer(uint64_t revision) const override { return view_.state().now.revision > revision; }
  int fd() const override { return client_->fd(); }

  // --- GroupDirectory ---
  GroupTerms terms() const override { return view_.state().terms; }
  const GroupPolicy* Policy() const override { return &view_.policy(); }
  void Announce(const GroupMember& self, std::string_view addresses, uint64_t applied) override;
  void AnnounceSoon() override { announcement_.Hurry(); }
  std::string WhyNotAnnounced() const override;
  void AnnounceKept(const KeptRun& kept) override { kept_ = kept; }
  void AnnounceItems(bool leads) override;
  std::vector<std::string> WithItems() const override { return view_.WithItems(); }
  std::optional<NodeSeen> NodeOf(std::string_view node) const override {
    return view_.SeenOf(node);
  }
  std::optional<std::string> AddressOf(const GroupMember& member) const override;
  std::optional<std::string> WantedSuccessor() const override { return wish_.Wanted(); }
  void ForgetWantedSuccessor() override { wish_.Forget(); }
  std::optional<PartitionMap> Map() const override { return view_.Map(); }
  const GroupPartitions* Partitions() const override { return &view_.partitions(); }
  bool Replaced() const override { return announcement_.replaced(); }
  const SeenMap* Config() const override { return &view_.map(); }
  const PartitionMoveWishes* Moves() const override { return view_.moves(); }
  std::optional<std::string> PrimaryOf(std::string_view group) const override {
    return view_.PrimaryOf(group);
  }
  std::optional<uint64_t> RingBytesOf(std::string_view group) const override {
    return view_.RingBytesOf(group);
  }

  // What this process does of what members do alike. If it founds the group, the group has that
  // from then on, but for what an operator has set.
  void SetOwnPolicy(const GroupPolicy& policy) { own_policy_ = policy; }
  // The way to the cluster's map. Poll carries its requests on.
  MapStore* map_store() { return &map_store_; }
  const std::string& group() const { return view_.group(); }
  // The revision that etcd was last made to compact to; 0: none.
  int64_t compacted() const { return compaction_.done(); }

 protected:
  // For simulations, which have another way to etcd than Options::etcd says. AwaitFirstList is
  // next.
  EtcdConfigStore(Options options, std::unique_ptr<Etcd> client);
  // Returns what Open does.
  absl::Status AwaitFirstList();

 private:
  void OnNews(const EtcdNews& news);
  // Changes the register if it has this revision, and as long as these are their nodes' newest
  // processes.
  void Change(uint64_t revision, const GroupConfig& wanted, const std::vector<GroupMember>& others);
  // Reads the register, and answers with this result.
  void Ask(Result result);
  // Reads the map, and then answers with the register that was read before.
  void AskForMap(Result result, const EtcdRangeAnswer& read);
  // Adds what is to hold if this founds the group.
  void AddFounding(const GroupConfig& config, EtcdTxn* txn) const;
  void OnTxn(const GroupConfig& wanted, const EtcdTxnResult& result);
  // `items` are the register and the map.
  void AnswerWith(Result result, const std::vector<EtcdKeyValue>& items);
  // `pause_ns`: it is told that much later. Whoever asks tries again at once.
  void AnswerUnknown(const absl::Status& why, int64_t pause_ns = 0);
  void KeepAnnounced();

  const Options options_;
  const std::unique_ptr<Etcd> client_;
  GroupView view_;
  Announcement announcement_;
  EtcdMapStore map_store_;
  SuccessorWish wish_;
  LifeNote life_;
  EtcdCompaction compaction_;
  GroupPolicy own_policy_;
  std::optional<KeptRun> kept_;  // on this node's disk
  uint64_t incarnation_ = 0;     // of this process, once it is announced
  uint64_t applied_ = 0;
  bool leads_ = false;
  bool listed_ = false;  // the watch's first list came
  absl::Status begun_;   // what the view made of it
  absl::Status lost_ = absl::UnavailableError("etcd gives no answer");  // why nothing is heard
  uint64_t request_ = 0;  // the newest; answers to others are dropped
  std::optional<Answer> answer_;
  int64_t answer_from_ = 0;  // not before
  std::optional<int64_t> told_unknown_at_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_CLUSTER_ETCD_CONFIG_STORE_H_
