// GroupWorld: etcd loses its data, or has what Gannet has not written, and what an operator does.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/cluster/create_cluster.h"
#include "tests/simulation/group_world.h"
#include "tools/kvcli/cluster_state.h"
#include "tools/kvcli/lost_cluster.h"

namespace gannet::simulation {
namespace {

constexpr uint64_t kNoticedNsMax = 2 * kNsPerSecond;  // until an operator looks
constexpr int64_t kLookAgainNs = 200 * kNsPerMs;
// For what a primary that lives has to hear until it may lead again, and for it to do so. For a
// backup to say all that its primary, which is dead, has brought: it says once a second what it
// has.
constexpr int64_t kToldNs = 2 * kNsPerSecond;
constexpr int64_t kAdoptedNs = 3 * kNsPerSecond;

kvcli::Lives LivesIn(const std::vector<EtcdKeyValue>& items) {
  kvcli::Lives lives;
  for (const EtcdKeyValue& item : items) {
    const auto key = ParseClusterKey(kCluster, item.key);
    if (!key || key->kind != ClusterKey::Kind::kLife) continue;
    auto life = DecodeNodeLife(item.value);
    GANNET_CHECK(life.ok(), std::string(life.status().message()).c_str());
    lives[key->name] = {.info = *std::move(life), .mod_revision = item.mod_revision};
  }
  return lives;
}

// The owners of all partitions change places, by no change that there is.
ClusterConfig Swapped(ClusterConfig map) {
  ++map.revision;
  map.changed.assign(kPartitions, map.revision);
  map.lost.resize(map.groups.size());
  map.closed.clear();
  for (uint16_t& owner : map.partitions) owner = static_cast<uint16_t>(1 - owner);
  return map;
}

// Another process has the epoch that there is.
GroupConfig UnderAnother(const GroupTerms& terms, uint64_t epoch, const GroupMember& primary) {
  return ConfigOf(terms, {.epoch = epoch, .primary = primary, .in_sync = {primary}});
}

}  // namespace

// --- etcd loses its data ---

bool GroupWorld::SomebodyKnows(uint32_t group, uint32_t except) const {
  return std::ranges::any_of(servers_, [&](const auto& server) {
    return server->group() == group && server->node() != except && server->up() &&
           !server->member().ended() && !server->steps_down() && server->HasItems() &&
           register_.now(group).IsInSync(server->self());
  });
}

// If nobody alive knew that he has all, everything would be lost.
void GroupWorld::LoseEtcd() {
  if (etcd_lost_ || has_garbage_) return;
  for (uint32_t group = 0; group < scenario_.groups.size(); ++group) {
    if (!SomebodyKnows(group, kNobody)) return;
  }
  ++happened_.losses;
  register_.LoseAll();
  etcd_lost_ = true;
  asked_who_lives_ = false;
  operator_ns_ = run_->now_ns() + static_cast<int64_t>(run_->Below(kNoticedNsMax));
}

// What kvcli cluster init and force do, and moves that were under way begin again.
void GroupWorld::OperatorTurn() {
  const int64_t now_ns = run_->now_ns();
  if (!etcd_lost_ || now_ns < operator_ns_) return;
  operator_ns_ = now_ns + kLookAgainNs;
  if (register_.away()) return;
  if (IsThereAgain()) {
    etcd_lost_ = false;
    for (const uint16_t partition : register_.map().closed) {
      register_.WishMove(partition, 1 - register_.OwnerOf(partition));
    }
    return run_->Note("the cluster is there again");
  }
  if (!asked_who_lives_) return AskWhoLives();
  if (!AllSaidThatTheyLive() || !MakeClusterAgain()) return;
  asked_who_lives_ = false;
  operator_ns_ = now_ns + kAdoptedNs;
}

bool GroupWorld::IsThereAgain(uint32_t group) const {
  const EtcdKeyValue* const there = register_.Find(GroupKey(kCluster, scenario_.names[group]));
  if (there == nullptr) return false;
  const auto config = DecodeGroupConfig(there->value);
  return config.ok() && config->epoch > 0;
}

bool GroupWorld::IsThereAgain() const {
  for (uint32_t group = 0; group < scenario_.groups.size(); ++group) {
    if (!IsThereAgain(group)) return false;
  }
  return true;
}

// Notes of processes that have ended are not told from others.
void GroupWorld::AskWhoLives() {
  asked_who_lives_ = true;
  told_until_ns_ = 0;
  const kvcli::Lives lives = LivesIn(register_.Items());
  for (const auto& [node, life] : lives) {
    register_.Execute({.puts = {{LifeKey(kCluster, node), Encode(kvcli::Asking(life.info))}}},
                      true);
  }
}

// Then all get a moment more, until primaries know that they lead, or the others have said all that
// they have.
bool GroupWorld::AllSaidThatTheyLive() {
  const kvcli::Lives lives = LivesIn(register_.Items());
  size_t led = 0;
  for (uint32_t group = 0; group < scenario_.groups.size(); ++group) led += IsThereAgain(group);
  for (const auto& server : servers_) {
    if (IsThereAgain(server->group()) || !server->up() || server->member().ended()) continue;
    if (!server->HasItems() || !register_.now(server->group()).IsInSync(server->self())) continue;
    const auto life = lives.find(server->self().node);
    if (life == lives.end() || life->second.info.incarnation != server->self().incarnation) {
      return false;
    }
    led += life->second.info.leads;
  }
  if (told_until_ns_ == 0) told_until_ns_ = run_->now_ns() + kToldNs;
  return led == scenario_.groups.size() || run_->now_ns() >= told_until_ns_;
}

// Returns false if that is to be tried again.
bool GroupWorld::MakeClusterAgain() {
  const kvcli::Lives lives = LivesIn(register_.Items());
  std::set<std::string> living;
  for (const auto& [node, life] : lives) {
    if (!kvcli::IsAsking(life.info)) living.insert(node);
  }
  NewCluster cluster = {.name = kCluster};
  for (size_t group = 0; group < scenario_.groups.size(); ++group) {
    cluster.groups.push_back({scenario_.names[group], scenario_.groups[group].members});
  }
  const auto create = CreateClusterTxn(cluster, [this] { return run_->Next(); });
  GANNET_CHECK(create.ok(), std::string(create.status().message()).c_str());
  const auto plan = kvcli::PlanInit(cluster, *create, register_.Items(), lives, living);
  if (!plan.ok()) {
    run_->Note(absl::StrCat("init: ", plan.status().message()));
    return true;
  }
  if (!plan->txn.puts.empty()) {
    const auto result = register_.Execute(plan->txn, true);
    if (result.outcome != EtcdTxnResult::Outcome::kWon) return false;
  }
  run_->Note(absl::StrCat("init: ", plan->adopting.size(), " adopt; ", plan->advice));
  for (uint32_t group = 0; group < scenario_.groups.size(); ++group) {
    const bool adopts =
        std::ranges::find(plan->adopting, scenario_.names[group]) != plan->adopting.end();
    if (!adopts) ForceTheBest(group, living);
  }
  return true;
}

void GroupWorld::ForceTheBest(uint32_t group, const std::set<std::string>& living) {
  const std::string& name = scenario_.names[group];
  const auto state = kvcli::ReadCluster(kCluster, register_.Items());
  if (!state.ok() || state->groups.at(name).config.epoch > 0) return;
  kvcli::ClusterState of_living = *state;
  std::erase_if(of_living.lives, [&](const auto& it) { return !living.contains(it.first); });
  for (const std::string& node : scenario_.groups[group].members) {
    if (!living.contains(node) || !kvcli::WhatIsBetter(of_living, name, node).empty()) continue;
    const auto config = kvcli::Forced(*state, name, node, run_->Next() | 1);
    if (!config.ok()) continue;
    EtcdTxn txn = {.compares = {{GroupKey(kCluster, name), state->groups.at(name).mod_revision}},
                   .puts = {{GroupKey(kCluster, name), Encode(*config)}}};
    for (const auto& [of, life] : state->lives) {
      if (life.info.group == name) txn.deletes.push_back(LifeKey(kCluster, of));
    }
    register_.Execute(txn, true);
    ++happened_.forced;
    return;
  }
}

// --- garbage ---

void GroupWorld::PutGarbage(int64_t until_ns) {
  if (etcd_lost_ || has_garbage_) return;
  const GroupServer& server = *servers_[run_->Below(servers_.size())];
  const std::string node = GroupServer::NameOf(server.node());
  const std::string& group = scenario_.names[server.group()];
  // Who has no items yet believes what is there.
  for (uint32_t each = 0; each < scenario_.groups.size(); ++each) {
    if (!SomebodyKnows(each, kNobody)) return;
  }
  std::string key;
  std::string value = "garbage";
  switch (run_->Below(8)) {
    case 0:
      key = NodeKey(kCluster, node);
      break;
    case 1:
      key = NodeKey(kCluster, node);
      value = Encode(NodeInfo{.incarnation = run_->Next() | 1, .address = "127.0.0.1:1"});
      break;
    case 2:
      key = ConfigKey(kCluster);
      break;
    case 3:
      key = ConfigKey(kCluster);
      value = Encode(Swapped(register_.map()));
      break;
    case 4:
      key = GroupKey(kCluster, group);
      break;
    case 5:
      key = GroupKey(kCluster, group);
      value =
          Encode(UnderAnother(scenario_.groups[server.group()], register_.now(server.group()).epoch,
                              {.node = node, .incarnation = run_->Next() | 1}));
      break;
    default: {
      const std::string keys[] = {VersionKey(kCluster, node), DiskKey(kCluster, node),
                                  LifeKey(kCluster, node), PolicyKey(kCluster, group),
                                  WishKey(kCluster, group)};
      key = keys[run_->Below(std::size(keys))];
    }
  }
  ++happened_.garbage;
  has_garbage_ = true;
  run_->Note(absl::StrCat("garbage in ", key));
  register_.PutGarbage(key, value);
  Later(until_ns, [this, key] {
    has_garbage_ = false;
    run_->Note(absl::StrCat("no garbage any more in ", key));
    register_.MendGarbage(key);
  });
}

}  // namespace gannet::simulation
