#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/protocol/replica.h"
#include "tools/kvcli/ask_members.h"
#include "tools/kvcli/cluster_health.h"
#include "tools/kvcli/cluster_state.h"
#include "tools/kvcli/cluster_status.h"
#include "tools/kvcli/cluster_terms.h"
#include "tools/kvcli/etcd_session.h"
#include "tools/kvcli/lost_cluster.h"
#include "tools/kvcli/run_init.h"
#include "tools/kvcli/run_moves.h"
#include "tools/kvcli/run_verbs.h"
#include "tools/kvcli/shell.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {
namespace {

using std::chrono::milliseconds;
using Action = ClusterCommand::Action;
using Outcome = EtcdTxnResult::Outcome;

constexpr int kTries = 10;  // members change their group, too
constexpr milliseconds kHandOverWait{10'000};
// How long a primary may take to be gone after it deleted the wish. For a lease it tells clients of
// short leases first, and its lease may be longer than the group has it now.
constexpr milliseconds kWishGoneWait{kPrimaryLeaseMsMax + 3'000};

// How servers are reached, for what goes to them, too.
struct RunClusterFrom {
  Options connect;
  absl::Status device;  // what the choice of a device came to
};

// One run of the command.
class Run {
 public:
  Run(const ClusterCommand& command, milliseconds wait, bool json, const RunClusterFrom& from,
      EtcdSession session)
      : command_(command), wait_(wait), json_(json), from_(from), session_(std::move(session)) {}

  absl::Status Do();
  // What to exit with after Do returned OK.
  int exit_code() const { return exit_code_; }

 private:
  using Change = std::function<absl::StatusOr<GroupConfig>(const ClusterState&)>;

  absl::StatusOr<ClusterState> Read();
  absl::Status Status();
  void AskMembers(ClusterState* state) const;
  absl::Status HandOver();
  absl::Status AwaitHandOver(int64_t mod_revision);
  absl::Status Force();
  absl::Status Set();
  absl::Status AwaitSignOfLife();
  // Changes the group, as often as somebody else changes it meanwhile. It gets `settings`, too.
  absl::StatusOr<GroupConfig> ChangeGroup(const Change& change, std::vector<std::string> deletes,
                                          const GroupPolicy& settings = {});
  void Answer(const std::string& text, Json json) const;
  void AnswerGroup(const std::string& text, const GroupConfig& config) const;

  const ClusterCommand& command_;
  const milliseconds wait_;
  const bool json_;
  const RunClusterFrom& from_;
  EtcdSession session_;
  int exit_code_ = kExitDone;
  std::optional<GroupConfig> tried_ = {};  // of unknown result
};

void Run::Answer(const std::string& text, Json json) const {
  Say(json_ ? Dump(json) + "\n" : text);
}

void Run::AnswerGroup(const std::string& text, const GroupConfig& config) const {
  Answer(absl::StrCat(text, "\n"),
         {{"group", command_.group},
          {"epoch", config.epoch},
          {"primary", config.epoch > 0 ? Json(config.primary.node) : Json(nullptr)},
          {"members", config.members}});
}

absl::Status Run::Do() {
  switch (command_.action) {
    case Action::kStatus:
      return Status();
    case Action::kHandOver:
      return HandOver();
    case Action::kForce:
      return Force();
    case Action::kSet:
      return Set();
    case Action::kAdd: {
      const auto add = [&](const ClusterState& state) {
        return WithMember(state, command_.group, command_.node);
      };
      GANNET_ASSIGN_OR_RETURN(const GroupConfig config, ChangeGroup(add, {}));
      AnswerGroup(
          absl::StrCat(command_.node, " may join group ", command_.group, ": start its kvserver"),
          config);
      return absl::OkStatus();
    }
    case Action::kRemove: {
      const auto remove = [&](const ClusterState& state) {
        return WithoutMember(state, command_.group, command_.node);
      };
      GANNET_ASSIGN_OR_RETURN(const GroupConfig config,
                              ChangeGroup(remove, {NodeKey(command_.cluster, command_.node),
                                                   VersionKey(command_.cluster, command_.node),
                                                   RailsKey(command_.cluster, command_.node),
                                                   LifeKey(command_.cluster, command_.node)}));
      AnswerGroup(absl::StrCat(command_.node, " is no member of group ", command_.group,
                               " any more: stop its kvserver"),
                  config);
      return absl::OkStatus();
    }
    default:
      break;
  }
  return absl::InternalError("an action of RunInit or RunMoves");
}

absl::StatusOr<ClusterState> Run::Read() {
  GANNET_ASSIGN_OR_RETURN(const EtcdRangeAnswer answer,
                          session_.RangeOfPrefix(ClusterPrefix(command_.cluster)));
  return ReadCluster(command_.cluster, answer.items);
}

absl::Status Run::Status() {
  GANNET_ASSIGN_OR_RETURN(ClusterState state, Read());
  AskMembers(&state);
  Json json = StatusJson(state);
  std::string text = StatusText(state);
  json["unreadable"] = state.unreadable;
  for (const std::string& key : state.unreadable) {
    absl::StrAppend(&text, "not written by Gannet, and ignored: ", key, "\n");
  }
  if (!state.lives.empty()) {
    json["lost"] = LivesText(command_.cluster, state.lives);
    absl::StrAppend(&text, LivesText(command_.cluster, state.lives), "\n");
  }
  Answer(text, std::move(json));
  if (!command_.check) return absl::OkStatus();
  const Health health = HealthOf(state);
  if (health != Health::kOk) exit_code_ = health == Health::kDegraded ? kExitNotFound : kExitError;
  return absl::OkStatus();
}

// etcd has who was in sync when that last changed. Whether they live, only they can tell.
void Run::AskMembers(ClusterState* state) const {
  std::vector<std::string> addresses;
  for (const auto& [node, info] : state->nodes) addresses.push_back(info.address);
  std::vector<MemberAnswer> answers(addresses.size(), {.why = std::string(from_.device.message())});
  if (from_.device.ok()) answers = kvcli::AskMembers(addresses, from_.connect.auth_file);
  for (size_t i = 0; const auto& [node, info] : state->nodes) {
    state->answers[node] = std::move(answers[i++]);
  }
}

absl::StatusOr<GroupConfig> Run::ChangeGroup(const Change& change, std::vector<std::string> deletes,
                                             const GroupPolicy& settings) {
  const std::string key = GroupKey(command_.cluster, command_.group);
  absl::Status last;
  for (int i = 0; i < kTries; ++i) {
    GANNET_ASSIGN_OR_RETURN(const ClusterState state, Read());
    const auto group = state.groups.find(command_.group);
    const bool is_tried = tried_ && group != state.groups.end() && group->second.config == *tried_;
    const GroupPolicy there = PolicyIn(state, command_.group);
    const GroupPolicy policy = there.With(settings);
    if (is_tried && policy == there) return *tried_;
    GANNET_ASSIGN_OR_RETURN(const GroupConfig config, change(state));
    EtcdTxn txn = {.compares = {{.key = key, .mod_revision = group->second.mod_revision}},
                   .puts = {{key, Encode(config)}},
                   .deletes = deletes};
    if (policy != there) {
      txn.puts.push_back({PolicyKey(command_.cluster, command_.group), Encode(policy)});
    }
    const EtcdTxnResult result = session_.Txn(txn);
    if (result.outcome == Outcome::kWon) return config;
    if (result.outcome == Outcome::kFailed) return result.status;
    if (result.outcome == Outcome::kUnknown) tried_ = config;  // reading again tells
    last = result.status;
  }
  return absl::UnavailableError(
      last.ok() ? absl::StrCat("group ", command_.group, " changes all the time; try again")
                : absl::StrCat("nobody knows whether it was changed; see kvcli cluster status: ",
                               last.message()));
}

absl::Status Run::Set() {
  GANNET_ASSIGN_OR_RETURN(const ClusterState before, Read());
  GANNET_RETURN_IF_ERROR(WithTerms(before, command_).status());
  const auto set = [&](const ClusterState& state) { return WithTerms(state, command_); };
  GANNET_ASSIGN_OR_RETURN(const GroupConfig config, ChangeGroup(set, {}, command_.policy));
  Answer(TermsText(before, command_), {{"group", command_.group},
                                       {"min_copies", config.min_copies},
                                       {"lease_ms", config.lease_ms},
                                       {"set", command_.policy.settings}});
  return absl::OkStatus();
}

absl::Status Run::HandOver() {
  GANNET_ASSIGN_OR_RETURN(const ClusterState state, Read());
  GANNET_RETURN_IF_ERROR(MayHandOver(state, command_.group, command_.node));
  const ClusterState::Group& group = state.groups.at(command_.group);
  if (group.config.primary.node == command_.node) {
    AnswerGroup(absl::StrCat(command_.node, " is primary already"), group.config);
    return absl::OkStatus();
  }
  const std::string key = WishKey(command_.cluster, command_.group);
  const auto wish = state.wishes.find(command_.group);
  // Both are compared, so that a wish which etcd executes late is not one of another time.
  const EtcdTxnResult result = session_.Txn(
      {.compares = {{.key = key,
                     .mod_revision = wish != state.wishes.end() ? wish->second.mod_revision : 0},
                    {.key = GroupKey(command_.cluster, command_.group),
                     .mod_revision = group.mod_revision}},
       .puts = {{key, Encode(GroupWish{.handover = command_.node})}}});
  if (result.outcome == Outcome::kRefused) {
    return absl::AbortedError(
        absl::StrCat("group ", command_.group, " was changed meanwhile; try again"));
  }
  if (result.outcome != Outcome::kWon) return result.status;
  return AwaitHandOver(result.revision);
}

absl::Status Run::AwaitHandOver(int64_t mod_revision) {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + wait_;
  bool gone = false;
  while (true) {
    GANNET_ASSIGN_OR_RETURN(const ClusterState state, Read());
    const auto group = state.groups.find(command_.group);
    if (group == state.groups.end()) return absl::NotFoundError("the group is gone from etcd");
    if (group->second.config.primary.node == command_.node) {
      AnswerGroup(absl::StrCat(command_.node, " is primary of group ", command_.group, ", epoch ",
                               group->second.config.epoch),
                  group->second.config);
      return absl::OkStatus();
    }
    const auto wish = state.wishes.find(command_.group);
    const bool there = wish != state.wishes.end() && wish->second.mod_revision == mod_revision;
    if (!there && !std::exchange(gone, true)) {
      end = std::min(end, Clock::now() + kWishGoneWait);
    }
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    if (left.count() <= 0) break;
    session_.AwaitChange(ClusterPrefix(command_.cluster), std::min(left, milliseconds(200)));
  }
  if (gone) {
    return absl::AbortedError(absl::StrCat("the primary has not handed over: ", command_.node,
                                           " is not in sync any more, or silent"));
  }
  const std::string key = WishKey(command_.cluster, command_.group);
  const EtcdTxnResult deleted =
      session_.Txn({.compares = {{.key = key, .mod_revision = mod_revision}}, .deletes = {key}});
  return absl::DeadlineExceededError(absl::StrCat(
      "the primary has not handed over within ", wait_.count(), " ms. ",
      deleted.outcome == Outcome::kWon ? "It is not asked any more"
                                       : "It may still do it; see kvcli cluster status"));
}

// The node's key may still name a process that has ended. Without the key, a process that runs
// announces itself again.
absl::Status Run::AwaitSignOfLife() {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + wait_;
  GANNET_ASSIGN_OR_RETURN(ClusterState state, Read());
  GANNET_RETURN_IF_ERROR(Forced(state, command_.group, command_.from, 1).status());
  const NodeInfo former = state.nodes.at(command_.from);
  const std::string key = NodeKey(command_.cluster, command_.from);
  if (const EtcdTxnResult asked = session_.Txn({.compares = {}, .puts = {}, .deletes = {key}});
      asked.outcome != Outcome::kWon) {
    return asked.status;
  }
  while (true) {
    GANNET_ASSIGN_OR_RETURN(state, Read());
    if (state.nodes.contains(command_.from)) return absl::OkStatus();
    const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now());
    if (left.count() <= 0) break;
    session_.AwaitChange(ClusterPrefix(command_.cluster), std::min(left, milliseconds(200)));
  }
  // What it has kept is of interest all the same.
  session_.Txn({.compares = {{.key = key}}, .puts = {{key, Encode(former)}}});
  return absl::FailedPreconditionError(
      absl::StrCat("no process of ", command_.from, " has announced itself within ", wait_.count(),
                   " ms; nothing was changed. Does its kvserver run, and reach etcd?"));
}

absl::Status Run::Force() {
  GANNET_RETURN_IF_ERROR(AwaitSignOfLife());
  const uint64_t history = NewHistory();
  std::string loss;
  const auto force = [&](const ClusterState& state) -> absl::StatusOr<GroupConfig> {
    auto config = Forced(state, command_.group, command_.from, history);
    if (!config.ok()) return config;
    loss = LossText(state, command_.group, command_.from);
    const std::string better = WhatIsBetter(state, command_.group, command_.from);
    if (!better.empty() && !command_.even_if_worse) {
      return absl::FailedPreconditionError(absl::StrCat(
          better,
          ". What only others have would be lost. Nothing was changed: choose that one, or "
          "say --even-if-worse"));
    }
    return config;
  };
  GANNET_ASSIGN_OR_RETURN(const ClusterState state, Read());
  std::vector<std::string> notes;
  for (const auto& [node, life] : state.lives) {
    if (life.info.group == command_.group) notes.push_back(LifeKey(command_.cluster, node));
  }
  GANNET_ASSIGN_OR_RETURN(const GroupConfig config, ChangeGroup(force, notes));
  std::fputs(loss.c_str(), stderr);
  AnswerGroup(absl::StrCat(command_.from, " is primary of group ", command_.group, ", epoch ",
                           config.epoch, ", with a new history: clients begin anew"),
              config);
  return absl::OkStatus();
}

int CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitDone;
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAborted:
      return kExitNotFound;
    case absl::StatusCode::kInvalidArgument:
      return kExitUsage;
    default:
      return kExitError;
  }
}

// Does what "cluster" asks for, and prints the answer. Returns the exit code: kExitDone,
// kExitNotFound if it cannot be done now, kExitError if etcd gives no answer; after status --check
// kExitNotFound if copies are missing, kExitError if a group is not served, or if nobody knows.
int RunCluster(const Command& command, const RunClusterFrom& from, bool json) {
  int exit_code = kExitDone;
  const auto do_it = [&]() -> absl::Status {
    if (!IsClusterName(command.cluster.cluster)) {
      return absl::InvalidArgumentError("--cluster: " + WhatNamesAre("cluster"));
    }
    GANNET_ASSIGN_OR_RETURN(EtcdClient::Options etcd, ClientOptions(command.cluster.etcd_access));
    etcd.endpoints = command.cluster.etcd;
    GANNET_ASSIGN_OR_RETURN(EtcdSession session, EtcdSession::Open(std::move(etcd)));
    if (command.cluster.changes_map()) {
      return RunMoves(command.cluster, command.wait, json, from.connect, &session);
    }
    if (command.cluster.action == Action::kInit) {
      return RunInit(command.cluster, command.wait, json, &session);
    }
    Run run(command.cluster, command.wait.value_or(kHandOverWait), json, from, std::move(session));
    GANNET_RETURN_IF_ERROR(run.Do());
    exit_code = run.exit_code();
    return absl::OkStatus();
  };
  const absl::Status status = do_it();
  if (status.ok()) return exit_code;
  const std::string message(status.message());
  std::fprintf(stderr, "kvcli: %s\n", message.c_str());
  if (json) Say(Dump(ErrorJson(absl::StatusCodeToString(status.code()), message)) + "\n");
  return CodeOf(status);
}

}  // namespace

int RunClusterAction(Shell& shell, const Command& command) {
  return RunCluster(command, {.connect = shell.options().connect, .device = absl::OkStatus()},
                    shell.options().json);
}

int RunClusterAlone(const Command& command, const Invocation& invocation, char** argv) {
  RunClusterFrom from = {.connect = ClientOptions(invocation)};
  if (command.cluster.goes_to_servers()) {
    from.device = ChooseDevice(invocation, false, argv);
  }
  if (command.cluster.measures() && !from.device.ok()) {
    return Fail(kExitError, from.device, invocation.json);
  }
  return RunCluster(command, from, invocation.json);
}

}  // namespace gannet::kvcli
