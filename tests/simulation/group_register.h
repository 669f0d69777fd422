#ifndef GANNET_TESTS_SIMULATION_GROUP_REGISTER_H_
#define GANNET_TESTS_SIMULATION_GROUP_REGISTER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/etcd/etcd.h"
#include "server/group/cluster/group_view.h"
#include "server/group/replica/config_store.h"
#include "server/group/replica/group_directory.h"
#include "server/group/replica/map_store.h"
#include "tests/simulation/cluster_keys_log.h"
#include "tests/simulation/run.h"

namespace gannet::simulation {

inline constexpr const char* kCluster = "c";

// What the members of simulated groups share in the place of etcd: the groups' registers, where
// members can be reached, and an operator's wishes; of a cluster of several groups also its map,
// and which partitions are to move. It may be away. Requests and answers are late or lost, and a
// transaction whose result is unknown may be executed much later, also after its process has ended,
// but not once the next process of that node has announced itself.
class GroupRegisterService {
 public:
  struct Group {
    std::string name;
    GroupTerms terms;
  };
  // One group, which is alone.
  GroupRegisterService(Run* run, GroupTerms terms);
  // The groups of a cluster with this map. Those that the map does not have may come later.
  GroupRegisterService(Run* run, const std::vector<Group>& groups, ClusterConfig map);

  // Does what is due by now.
  void Step();
  // Returns when something is due next.
  int64_t next_ns() const { return events_.empty() ? INT64_MAX : events_.begin()->first; }
  const GroupConfiguration& now(uint32_t group = 0) const {
    return groups_[group].now.configuration;
  }

  void SetAway(bool away) { away_ = away; }
  // Whether requests and answers are lost now and then.
  void SetLossy(bool lossy) { lossy_ = lossy; }
  // What this process has sent and was not executed yet never is, as if its connection had died.
  void DropRequestsOf(const GroupMember& sender) { silenced_.insert(sender.incarnation); }
  void WantSuccessor(uint32_t group, const std::string& node);
  // Whether a hand-over is wanted that the primary does not know of yet.
  bool WantsSuccessor(uint32_t group) const;

  // --- of a cluster ---
  bool has_map() const { return log_.has_value(); }
  // Whether the cluster has the group now.
  bool Has(uint32_t group) const { return groups_[group].present; }
  bool Has(std::string_view group) const;
  // Returns the group that has the partition.
  uint32_t OwnerOf(uint16_t partition) const;
  // What kvcli does. A group comes with other items than when it was there before, and no
  // partition. REQUIRES: it is not there, and none of its former processes lives.
  void AddGroup(uint32_t group, GroupTerms terms);
  // Returns false if the group still has partitions, or if any partitions move.
  bool RemoveGroup(uint32_t group);
  const ClusterConfig& map() const { return map_.config; }
  const PartitionMoveWishes& wishes() const { return wishes_; }
  // What kvcli does. A partition that moves already, or is there, stays as it is.
  void WishMove(uint16_t partition, uint32_t to);
  // Gives up all moves. Of a closed partition, the receiver has to.
  void StopMoves();

  // --- of a cluster whose members have the real store (simulated_etcd.h) ---
  void UseRealStores() { real_stores_ = true; }
  bool real_stores() const { return real_stores_; }
  bool away() const { return away_; }
  std::vector<EtcdKeyValue> Items() const { return log_->Items(); }
  const EtcdKeyValue* Find(const std::string& key) const { return log_->Find(key); }
  // Executes it as etcd does. What members, or an operator, make of groups and of the map is what
  // now() and map() say from then on.
  EtcdTxnResult Execute(const EtcdTxn& txn, bool by_operator);
  // etcd loses all its data. now() and map() go on saying what was there.
  void LoseAll();
  // Writes what neither a member nor an operator writes.
  void PutGarbage(const std::string& key, const std::string& value);
  // Writes again what was there before PutGarbage, or deletes it.
  void MendGarbage(const std::string& key);

 private:
  friend class MemberStore;
  friend class MemberMapStore;
  friend class SimulatedEtcd;
  using Wanted = std::optional<GroupRegister>;  // nullopt: a read
  using Answered = std::function<void()>;
  struct State {
    std::string name;
    GroupTerms terms;
    GroupRegister now{.revision = 1, .configuration = {}};
    std::optional<std::string> successor;
    bool present = true;
  };

  void After(int64_t ns, std::function<void()> what) {
    events_.emplace(run_->now_ns() + ns, std::move(what));
  }
  bool Fault(uint64_t one_in) { return lossy_ && run_->OneIn(one_in); }
  int64_t Delay();
  // Carries a request: execute() is called when it is executed, if ever, and returns what is called
  // when the answer has come. unknown() is called if there is no answer.
  void Carry(const Answered& unknown, const std::function<Answered()>& execute);
  bool IsDead(const GroupMember& sender) {
    return silenced_.contains(sender.incarnation) || nodes_[sender.node].first != sender;
  }
  ConfigStore::Answer Execute(uint32_t group, const GroupMember& sender, const Wanted& wanted);
  MapStore::Result Execute(uint32_t group, const GroupMember& sender, const MapTxn& txn);
  void Announce(const GroupMember& self, std::string_view address, uint16_t stream_version);
  // Returns the node at an address; empty: there is none.
  std::string NodeAt(std::string_view address) const;
  void PutGroup(const State& group);
  // What a transaction has put and deleted.
  void Learn(const EtcdTxn& done, bool by_operator);
  void LearnGroup(const std::string& name, const std::string& value, bool by_operator);

  Run* const run_;
  std::vector<State> groups_;
  bool away_ = false;
  bool lossy_ = true;
  std::map<std::string, std::pair<GroupMember, std::string>> nodes_;
  std::map<std::string, uint16_t> stream_versions_;  // by node: the newest that it speaks
  std::multimap<int64_t, std::function<void()>> events_;
  std::set<uint64_t> silenced_;        // incarnations
  std::optional<ClusterKeysLog> log_;  // nullopt: there is one group, without a map
  SeenMap map_;
  PartitionMoveWishes wishes_;
  bool real_stores_ = false;
};

class MemberStore;

// A process's way to the map.
class MemberMapStore : public MapStore {
 public:
  explicit MemberMapStore(MemberStore* store);

  void Txn(const MapTxn& txn) override;
  std::optional<Result> Poll() override;
  const SeenMap* Seen() const override;

 private:
  struct State {
    uint64_t newest = 0;  // request
    std::optional<Result> result;
  };
  MemberStore* const store_;
  const std::shared_ptr<State> state_;
};

// A process's way to the registers.
class MemberStore : public ConfigStore, public GroupDirectory {
 public:
  // `stream_version`: the newest that this process speaks. It knows of no newer ones of others.
  // `reaches(node)`: whether it can connect to that node now.
  MemberStore(GroupRegisterService* service, uint32_t group, const std::string& node,
              uint16_t stream_version, std::function<bool(const std::string&)> reaches);

  void Read() override { Begin(std::nullopt); }
  void Txn(uint64_t revision, const GroupConfiguration& wanted) override {
    Begin(GroupRegister{.revision = revision, .configuration = wanted});
  }
  std::optional<Answer> Poll() override;
  std::optional<GroupRegister> Seen() const override;

  GroupTerms terms() const override { return group().terms; }
  void Announce(const GroupMember& self, std::string_view address, uint64_t) override {
    self_ = self;
    service_->Announce(self, address, stream_version_);
  }
  std::optional<NodeSeen> NodeOf(std::string_view node) const override;
  std::optional<std::string> AddressOf(const GroupMember& member) const override;
  std::optional<PartitionMap> Map() const override;
  std::optional<std::string> WantedSuccessor() const override { return group().successor; }
  void ForgetWantedSuccessor() override { service_->groups_[group_].successor.reset(); }
  const GroupPartitions* Partitions() const override;
  const SeenMap* Config() const override;
  const PartitionMoveWishes* Moves() const override;
  std::optional<std::string> PrimaryOf(std::string_view group) const override;
  std::optional<uint64_t> RingBytesOf(std::string_view group) const override;

  // nullptr: the group is alone.
  MapStore* map_store() { return state_->view ? &map_store_ : nullptr; }

 private:
  friend class MemberMapStore;
  struct State {
    uint64_t newest = 0;  // request
    std::optional<Answer> answer;
    std::optional<GroupRegister> seen;  // of a group that is alone
    std::optional<GroupView> view;      // of a cluster
    size_t told = 0;                    // so much of the log
  };
  const GroupRegisterService::State& group() const { return service_->groups_[group_]; }
  void Begin(const GroupRegisterService::Wanted& wanted);

  GroupRegisterService* const service_;
  const uint32_t group_;
  const uint16_t stream_version_;
  const std::function<bool(const std::string&)> reaches_;
  GroupMember self_;
  const std::shared_ptr<State> state_;  // outlives the process, for what is under way
  int64_t look_ns_ = 0;                 // when the watch tells something next
  MemberMapStore map_store_;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_GROUP_REGISTER_H_
