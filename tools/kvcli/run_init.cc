#include "tools/kvcli/run_init.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/create_cluster.h"
#include "tools/kvcli/lost_cluster.h"
#include "tools/kvcli/shell.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Outcome = EtcdTxnResult::Outcome;

// How long members may take to say that they live, once etcd is there again.
constexpr milliseconds kLivesWait{3'000};
// How long a primary that lives may take to lead its group again.
constexpr milliseconds kAdoptionWait{10'000};
constexpr milliseconds kLookAgain{200};
// So much longer if somebody lives.
constexpr int kPatience = 3;

class InitRun {
 public:
  InitRun(const ClusterCommand& command, milliseconds wait, bool json, EtcdSession* session)
      : command_(command), wait_(wait), json_(json), session_(session) {}

  absl::Status Init();

 private:
  absl::StatusOr<std::vector<EtcdKeyValue>> ReadKeys();
  Lives LivesIn(const std::vector<EtcdKeyValue>& items) const;
  // Whether a process that lives leads each group that the command names.
  bool AllAreLed(const Lives& lives) const;
  // Returns the nodes that say that they have items which etcd has lost, and live.
  absl::StatusOr<std::set<std::string>> AwaitLives();
  void PutLife(const std::string& node, const NodeLife& life, int64_t mod_revision);
  absl::Status AfterInit(const EtcdTxnResult& result, const InitPlan& plan);
  // Waits until the group's primary, which lives, leads it again.
  absl::Status AwaitAdoption(const std::string& group);
  void Answer(const std::string& text, Json json) const { Say(json_ ? Dump(json) + "\n" : text); }

  const ClusterCommand& command_;
  const milliseconds wait_;
  const bool json_;
  EtcdSession* const session_;
};

absl::StatusOr<std::vector<EtcdKeyValue>> InitRun::ReadKeys() {
  GANNET_ASSIGN_OR_RETURN(EtcdRangeAnswer answer,
                          session_->RangeOfPrefix(ClusterPrefix(command_.cluster)));
  return std::move(answer.items);
}

Lives InitRun::LivesIn(const std::vector<EtcdKeyValue>& items) const {
  Lives lives;
  for (const EtcdKeyValue& item : items) {
    const auto key = ParseClusterKey(command_.cluster, item.key);
    if (!key || key->kind != ClusterKey::Kind::kLife) continue;
    if (auto life = DecodeNodeLife(item.value); life.ok()) {
      lives[key->name] = {.info = *std::move(life), .mod_revision = item.mod_revision};
    }
  }
  return lives;
}

bool InitRun::AllAreLed(const Lives& lives) const {
  return std::ranges::all_of(command_.groups, [&](const ClusterCommand::Group& group) {
    return std::ranges::any_of(lives, [&](const auto& it) {
      return it.second.info.leads && it.second.info.group == group.name;
    });
  });
}

void InitRun::PutLife(const std::string& node, const NodeLife& life, int64_t mod_revision) {
  const std::string key = LifeKey(command_.cluster, node);
  session_->Txn(
      {.compares = {{.key = key, .mod_revision = mod_revision}}, .puts = {{key, Encode(life)}}});
}

// Those that are there may be of processes that have ended. Those that are not may come: members
// need a moment to see that etcd has lost the cluster.
absl::StatusOr<std::set<std::string>> InitRun::AwaitLives() {
  const auto began = Clock::now();
  GANNET_ASSIGN_OR_RETURN(std::vector<EtcdKeyValue> items, ReadKeys());
  const Lives before = LivesIn(items);
  for (const auto& [node, life] : before) PutLife(node, Asking(life.info), life.mod_revision);
  std::set<std::string> living;
  while (true) {
    GANNET_ASSIGN_OR_RETURN(items, ReadKeys());
    const Lives now = LivesIn(items);
    living.clear();
    for (const auto& [node, life] : now) {
      if (!IsAsking(life.info)) living.insert(node);
    }
    // A primary needs a moment more, until it is sure that it leads.
    const auto end = began + (living.empty() ? 1 : kPatience) * wait_;
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    if (AllAreLed(now) || left.count() <= 0) break;
    session_->AwaitChange(ClusterPrefix(command_.cluster), std::min(left, kLookAgain));
  }
  // What the others had is of interest all the same.
  for (const auto& [node, life] : LivesIn(items)) {
    if (const auto was = before.find(node); IsAsking(life.info) && was != before.end()) {
      PutLife(node, was->second.info, life.mod_revision);
    }
  }
  return living;
}

absl::Status InitRun::Init() {
  NewCluster cluster = {.name = command_.cluster};
  for (const ClusterCommand::Group& group : command_.groups) {
    cluster.groups.push_back({.name = group.name, .members = group.members});
  }
  cluster.lease_ms = command_.lease_ms.value_or(cluster.lease_ms);
  cluster.min_copies = command_.min_copies.value_or(cluster.min_copies);
  cluster.ring_bytes = command_.ring_bytes.value_or(cluster.ring_bytes);
  cluster.policy = cluster.policy.With(command_.policy);
  GANNET_ASSIGN_OR_RETURN(const EtcdTxn create, CreateClusterTxn(cluster, NewHistory));
  GANNET_ASSIGN_OR_RETURN(std::vector<EtcdKeyValue> items, ReadKeys());
  const bool is_there =
      std::ranges::find(items, ConfigKey(command_.cluster), &EtcdKeyValue::key) != items.end();
  std::set<std::string> living;
  if (!is_there || !LivesIn(items).empty()) {
    GANNET_ASSIGN_OR_RETURN(living, AwaitLives());
    GANNET_ASSIGN_OR_RETURN(items, ReadKeys());
  }
  Lives lives = LivesIn(items);
  for (const std::string& node : command_.abandon) {
    if (living.contains(node)) {
      return absl::FailedPreconditionError(
          absl::StrCat(node, " lives, so what it has is not to be abandoned: stop it first"));
    }
    lives.erase(node);
  }
  GANNET_ASSIGN_OR_RETURN(InitPlan plan, PlanInit(cluster, create, items, lives, living));
  for (const std::string& node : command_.abandon) {
    const std::string key = LifeKey(command_.cluster, node);
    if (std::ranges::find(items, key, &EtcdKeyValue::key) != items.end()) {
      plan.txn.deletes.push_back(key);
    }
  }
  const bool changes = !plan.txn.puts.empty() || !plan.txn.deletes.empty();
  const EtcdTxnResult result =
      changes ? session_->Txn(plan.txn) : EtcdTxnResult{.outcome = Outcome::kRefused};
  if (changes || plan.adopting.empty()) GANNET_RETURN_IF_ERROR(AfterInit(result, plan));
  for (const std::string& group : plan.adopting) GANNET_RETURN_IF_ERROR(AwaitAdoption(group));
  return plan.advice.empty() ? absl::OkStatus() : absl::FailedPreconditionError(plan.advice);
}

absl::Status InitRun::AfterInit(const EtcdTxnResult& result, const InitPlan& plan) {
  if (result.outcome == Outcome::kRefused && command_.if_missing) {
    Answer(absl::StrCat("etcd has the cluster ", command_.cluster, " already\n"),
           {{"cluster", command_.cluster}, {"made", false}});
    return absl::OkStatus();
  }
  if (result.outcome == Outcome::kRefused) {
    return plan.advice.empty()
               ? absl::AlreadyExistsError(absl::StrCat("etcd has a cluster ", command_.cluster,
                                                       " already; nothing was changed"))
               : absl::FailedPreconditionError(plan.advice);
  }
  if (result.outcome == Outcome::kUnknown) {
    return absl::UnavailableError(
        absl::StrCat("nobody knows whether it was created; see kvcli cluster status: ",
                     result.status.message()));
  }
  if (result.outcome == Outcome::kFailed) return result.status;
  if (!plan.adopting.empty() || !plan.advice.empty()) return absl::OkStatus();
  Json groups = Json::array();
  for (const ClusterCommand::Group& group : command_.groups) groups.push_back(group.name);
  const std::string& node = command_.groups.front().members.front();
  Answer(absl::StrCat("cluster ", command_.cluster, " is made. Start its members, for example:\n",
                      "  kvserver --cluster=", command_.cluster,
                      " --etcd=", absl::StrJoin(command_.etcd, ","), " --name=", node,
                      " --advertise=HOST:7471\n"),
         {{"cluster", command_.cluster}, {"groups", groups}});
  return absl::OkStatus();
}

absl::Status InitRun::AwaitAdoption(const std::string& group) {
  const auto end = Clock::now() + kAdoptionWait;
  while (true) {
    GANNET_ASSIGN_OR_RETURN(const std::vector<EtcdKeyValue> items, ReadKeys());
    GANNET_ASSIGN_OR_RETURN(const ClusterState state, ReadCluster(command_.cluster, items));
    const auto found = state.groups.find(group);
    if (found == state.groups.end()) return absl::NotFoundError("the group is gone from etcd");
    const GroupConfig& config = found->second.config;
    if (config.epoch > 0) {
      Answer(absl::StrCat(config.primary.node, " leads group ", group, " as before, epoch ",
                          config.epoch, ", with all that it has\n"),
             {{"group", group},
              {"epoch", config.epoch},
              {"primary", config.primary.node},
              {"members", config.members}});
      return absl::OkStatus();
    }
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    if (left.count() <= 0) break;
    session_->AwaitChange(ClusterPrefix(command_.cluster), std::min(left, kLookAgain));
  }
  return absl::DeadlineExceededError(
      absl::StrCat("the primary of group ", group, " has not led it again within ",
                   kAdoptionWait.count(), " ms. Its log says why; see kvcli cluster status"));
}

}  // namespace

absl::Status RunInit(const ClusterCommand& command, std::optional<milliseconds> wait, bool json,
                     EtcdSession* session) {
  return InitRun(command, wait.value_or(kLivesWait), json, session).Init();
}

}  // namespace gannet::kvcli
