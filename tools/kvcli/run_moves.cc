#include "tools/kvcli/run_moves.h"

#include <pwd.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/map_changes.h"
#include "common/cluster/move_plan.h"
#include "tools/kvcli/answers.h"
#include "tools/kvcli/cluster_moves.h"
#include "tools/kvcli/cluster_state.h"
#include "tools/kvcli/partition_bytes.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {
namespace {

using std::chrono::milliseconds;
using Action = ClusterCommand::Action;
using Outcome = EtcdTxnResult::Outcome;
using Wanted = std::map<uint16_t, std::string>;  // the group that a partition is to have

constexpr int kMapTries = 20;         // servers change the map, too
constexpr milliseconds kLook{500};    // between two looks while nothing changes
constexpr int64_t kTellMs = 1000;     // between two lines of progress
constexpr int64_t kStillMs = 15'000;  // if nothing changes for so long, say where to look

volatile sig_atomic_t wait_interrupted = 0;

// While it exists, Ctrl-C only sets `wait_interrupted`.
class InterruptWatch {
 public:
  InterruptWatch() {
    wait_interrupted = 0;
    struct sigaction action = {};
    action.sa_handler = [](int) { wait_interrupted = 1; };
    sigaction(SIGINT, &action, &before_);
  }
  ~InterruptWatch() { sigaction(SIGINT, &before_, nullptr); }
  InterruptWatch(const InterruptWatch&) = delete;
  InterruptWatch& operator=(const InterruptWatch&) = delete;

 private:
  struct sigaction before_ = {};
};

// "2026-11-26T07:30:00Z by root on host".
std::string AskedText() {
  char host[64] = "";
  gethostname(host, sizeof(host) - 1);
  const passwd* const user = getpwuid(geteuid());
  std::string text = absl::StrCat(
      absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone()), " by ",
      user != nullptr ? std::string(user->pw_name).substr(0, 32) : absl::StrCat("user ", geteuid()),
      " on ", host);
  std::ranges::replace_if(
      text, [](char c) { return c < ' ' || c >= 0x7f; }, '?');
  return text;
}

int64_t NowMs() { return MonotonicNs() / kNsPerMs; }

// One run of the command.
class MovesRun {
 public:
  MovesRun(const ClusterCommand& command, std::optional<milliseconds> wait, bool json,
           const Options& connect, EtcdSession* session)
      : command_(command), wait_(wait), json_(json), connect_(connect), session_(session) {}

  absl::Status Do();

 private:
  absl::StatusOr<ClusterState> Read();
  // Sends what `next` makes of the newest state, until it wins or `next` returns no transaction.
  absl::Status Change(
      const std::function<absl::StatusOr<std::optional<EtcdTxn>>(const ClusterState&)>& next);
  EtcdTxn::Compare MapIsAsIn(const ClusterState& state) const {
    return {.key = ConfigKey(command_.cluster), .mod_revision = state.map_revision};
  }
  absl::Status DoAddGroup();
  absl::Status DoRemoveGroup();
  absl::Status Plan();
  absl::StatusOr<std::vector<PartitionMove>> PlanOf(const ClusterState& state,
                                                    std::span<const uint64_t> bytes);
  bool Concerns(const ClusterState& state, uint16_t partition) const;
  absl::Status Ask(Wanted wanted);
  absl::Status Stop();
  absl::Status Await(const Wanted& wanted, std::span<const uint64_t> bytes, Json answer);
  absl::Status Stopped(const PlanProgress& progress, const char* why) const;
  void Answer(const std::string& text, const Json& json) const {
    Say(json_ ? Dump(json) + "\n" : text);
  }
  // For people only. What was said before comes first, also where both go into one file.
  void Tell(const std::string& line) const {
    FlushAnswers();
    std::fprintf(stderr, "kvcli: %s\n", line.c_str());
  }

  const ClusterCommand& command_;
  const std::optional<milliseconds> wait_;
  const bool json_;
  const Options& connect_;
  EtcdSession* const session_;
  bool reached_ = false;  // etcd has answered, so if it does not it will again
};

absl::Status MovesRun::Do() {
  switch (command_.action) {
    case Action::kAddGroup:
      return DoAddGroup();
    case Action::kRemoveGroup:
      return DoRemoveGroup();
    case Action::kMoves:
      if (command_.stop) return Stop();
      break;
    default:
      return command_.stop ? Stop() : Plan();
  }
  GANNET_ASSIGN_OR_RETURN(ClusterState state, Read());
  std::erase_if(state.moves, [&](const auto& it) { return !Concerns(state, it.first); });
  Answer(MovesText(state), {{"cluster", command_.cluster}, {"moves", MovesJson(state)}});
  return absl::OkStatus();
}

absl::StatusOr<ClusterState> MovesRun::Read() {
  GANNET_ASSIGN_OR_RETURN(const EtcdRangeAnswer answer,
                          session_->RangeOfPrefix(ClusterPrefix(command_.cluster)));
  reached_ = true;
  return ReadCluster(command_.cluster, answer.items);
}

absl::Status MovesRun::Change(
    const std::function<absl::StatusOr<std::optional<EtcdTxn>>(const ClusterState&)>& next) {
  absl::Status last;
  for (int i = 0; i < kMapTries; ++i) {
    const auto state = Read();
    if (!state.ok() && (!reached_ || !absl::IsUnavailable(state.status()))) return state.status();
    if (!state.ok()) {
      last = state.status();
      session_->AwaitChange(ConfigKey(command_.cluster), kLook);
      continue;
    }
    GANNET_ASSIGN_OR_RETURN(const std::optional<EtcdTxn> txn, next(*state));
    if (!txn) return absl::OkStatus();
    const EtcdTxnResult result = session_->Txn(*txn);
    if (result.outcome == Outcome::kWon) return absl::OkStatus();
    if (result.outcome == Outcome::kFailed && !absl::IsUnavailable(result.status)) {
      return result.status;
    }
    last = result.status;  // of an unknown result, reading again tells
  }
  return absl::UnavailableError(
      last.ok() ? "the map of partitions changes all the time; try again"
                : absl::StrCat("nobody knows whether it was changed; see kvcli cluster status: ",
                               last.message()));
}

absl::Status MovesRun::DoAddGroup() {
  GroupConfig group = {.history = NewHistory(), .members = command_.groups.front().members};
  group.lease_ms = command_.lease_ms.value_or(group.lease_ms);
  group.min_copies = command_.min_copies.value_or(group.min_copies);
  group.ring_bytes = command_.ring_bytes.value_or(group.ring_bytes);
  const GroupPolicy policy = DefaultGroupPolicy().With(command_.policy);
  const auto add = [&](const ClusterState& state) -> absl::StatusOr<std::optional<EtcdTxn>> {
    const auto there = state.groups.find(command_.group);
    if (there != state.groups.end() && there->second.config.history == group.history) {
      return std::nullopt;  // an earlier try has won
    }
    GANNET_ASSIGN_OR_RETURN(const AddedGroup added, WithGroup(state, command_.group, group));
    const std::string key = GroupKey(command_.cluster, command_.group);
    return EtcdTxn{.compares = {MapIsAsIn(state), {.key = key}},
                   .puts = {{ConfigKey(command_.cluster), Encode(added.map)},
                            {key, Encode(added.group)},
                            {PolicyKey(command_.cluster, command_.group), Encode(policy)}}};
  };
  GANNET_RETURN_IF_ERROR(Change(add));
  Answer(absl::StrCat("group ", command_.group,
                      " is made, without partitions. Start its members "
                      "(kvserver --name=",
                      group.members.front(), " ...), then: kvcli cluster balance\n"),
         {{"group", command_.group}, {"members", group.members}});
  return absl::OkStatus();
}

absl::Status MovesRun::DoRemoveGroup() {
  bool sent = false;
  std::vector<std::string> members;
  const auto remove = [&](const ClusterState& state) -> absl::StatusOr<std::optional<EtcdTxn>> {
    const auto group = state.groups.find(command_.group);
    if (sent && group == state.groups.end()) return std::nullopt;  // an earlier try has won
    GANNET_ASSIGN_OR_RETURN(const ClusterConfig map, WithoutGroup(state, command_.group));
    const std::string key = GroupKey(command_.cluster, command_.group);
    EtcdTxn txn = {
        .compares = {MapIsAsIn(state),
                     {.key = ClusterPrefix(command_.cluster) + "moves/", .prefix = true}},
        .puts = {{ConfigKey(command_.cluster), Encode(map)}},
        .deletes = {key, PolicyKey(command_.cluster, command_.group),
                    WishKey(command_.cluster, command_.group)}};
    if (group != state.groups.end()) {
      members = group->second.config.members;
      txn.compares.push_back({.key = key, .mod_revision = group->second.mod_revision});
    }
    for (const std::string& node : members) {
      txn.deletes.push_back(NodeKey(command_.cluster, node));
      txn.deletes.push_back(VersionKey(command_.cluster, node));
      txn.deletes.push_back(RailsKey(command_.cluster, node));
    }
    sent = true;
    return txn;
  };
  GANNET_RETURN_IF_ERROR(Change(remove));
  Answer(absl::StrCat("group ", command_.group,
                      " is no group of the cluster any more. Stop its kvservers after their "
                      "--session_grace_ms (30 s): until then they answer what was sent to them\n"),
         {{"group", command_.group}, {"removed", true}, {"members", members}});
  return absl::OkStatus();
}

// --- plans ---

absl::StatusOr<std::vector<PartitionMove>> MovesRun::PlanOf(const ClusterState& state,
                                                            std::span<const uint64_t> bytes) {
  if (command_.action == Action::kMove) {
    return PlanOfMove(state, command_.partitions, command_.to);
  }
  return command_.action == Action::kDrain ? PlanOfDrain(state, command_.group, bytes)
                                           : PlanOfBalance(state, bytes);
}

// Whether a move that is under way is one of those that this command is about.
bool MovesRun::Concerns(const ClusterState& state, uint16_t partition) const {
  if (command_.action == Action::kDrain) {
    return state.map.groups[state.map.partitions[partition]] == command_.group;
  }
  return command_.partitions.empty() ||
         std::ranges::find(command_.partitions, partition) != command_.partitions.end();
}

absl::Status MovesRun::Plan() {
  GANNET_ASSIGN_OR_RETURN(ClusterState state, Read());
  std::vector<uint64_t> bytes;
  if (command_.measures()) {
    GANNET_RETURN_IF_ERROR(PlanOf(state, std::vector<uint64_t>(kPartitions)).status());
    GANNET_ASSIGN_OR_RETURN(
        bytes, MeasurePartitions(state, connect_, [&](const std::string& line) { Tell(line); }));
    GANNET_ASSIGN_OR_RETURN(state, Read());  // that took its time
  }
  const std::vector<uint64_t> same(kPartitions);
  GANNET_ASSIGN_OR_RETURN(const std::vector<PartitionMove> plan,
                          PlanOf(state, bytes.empty() ? same : bytes));
  Json answer = PlanJson(state, plan, bytes);
  answer["dry_run"] = command_.dry_run;
  const std::string text = PlanText(state, plan, bytes);
  if (command_.dry_run) {
    Answer(text, answer);
    return absl::OkStatus();
  }
  if (!json_) Say(text);
  Wanted wanted;
  for (const PartitionMove& move : plan) wanted[move.partition] = state.map.groups[move.to];
  const InterruptWatch watch;
  GANNET_RETURN_IF_ERROR(Ask(wanted));
  for (const auto& [partition, move] : state.moves) {
    if (!move.info.stop && Concerns(state, partition)) wanted[partition] = move.info.to;
  }
  return Await(wanted, bytes, std::move(answer));
}

// Of two groups that are drained at once, each would get partitions of the other one. So who drains
// writes the map as it is: of two that have the same plan's state, the second one looks again.
absl::Status MovesRun::Ask(Wanted wanted) {
  const bool drains = command_.action == Action::kDrain;
  const std::string asked = AskedText();
  while (!wanted.empty()) {
    std::set<uint16_t> sent;
    const auto ask = [&](const ClusterState& state) -> absl::StatusOr<std::optional<EtcdTxn>> {
      if (drains) GANNET_RETURN_IF_ERROR(MayDrain(state, command_.group));
      // What an earlier try of unknown result has asked for, or has even moved since.
      std::erase_if(wanted, [&](const auto& it) {
        const auto move = state.moves.find(it.first);
        return (move != state.moves.end() && move->second.info.to == it.second) ||
               state.map.groups[state.map.partitions[it.first]] == it.second;
      });
      sent.clear();
      EtcdTxn txn = {.compares = {MapIsAsIn(state)}};
      for (const auto& [partition, to] : wanted) {
        if (sent.size() == kMovesOfTxnMax) break;
        if (!std::ranges::binary_search(state.map.groups, to)) {
          return absl::AbortedError(absl::StrCat("group ", to, " was removed meanwhile"));
        }
        const std::string key = MoveKey(command_.cluster, partition);
        txn.compares.push_back({.key = key});
        txn.puts.push_back({key, Encode(MoveInfo{.to = to, .asked = asked})});
        sent.insert(partition);
      }
      if (sent.empty()) return std::nullopt;
      if (drains) txn.puts.push_back({ConfigKey(command_.cluster), Encode(state.map)});
      return txn;
    };
    GANNET_RETURN_IF_ERROR(Change(ask));
    std::erase_if(wanted, [&](const auto& it) { return sent.contains(it.first); });
  }
  return absl::OkStatus();
}

// A partition that is closed can only be opened again by the receiver, which knows how far it is.
// The map is written as it is: the receiver's transactions compare when that was last done, so none
// that it made of wishes which are given up wins.
absl::Status MovesRun::Stop() {
  const InterruptWatch watch;
  Wanted wanted;
  size_t left = 0;
  do {
    const auto stop = [&](const ClusterState& state) -> absl::StatusOr<std::optional<EtcdTxn>> {
      EtcdTxn txn = {.compares = {MapIsAsIn(state)},
                     .puts = {{ConfigKey(command_.cluster), Encode(state.map)}}};
      left = 0;
      for (const auto& [partition, move] : state.moves) {
        if (!Concerns(state, partition)) continue;
        // The receiver has it already, and ends the wish.
        if (state.map.groups[state.map.partitions[partition]] == move.info.to) continue;
        const bool closed = IsClosed(state.map, partition);
        wanted.emplace(partition, state.map.groups[state.map.partitions[partition]]);
        if (closed && move.info.stop) continue;
        ++left;
        if (txn.compares.size() > kMovesOfTxnMax) continue;
        const std::string key = MoveKey(command_.cluster, partition);
        txn.compares.push_back({.key = key, .mod_revision = move.mod_revision});
        MoveInfo info = move.info;
        info.stop = true;
        if (closed) txn.puts.push_back({key, Encode(info)});
        if (!closed) txn.deletes.push_back(key);
      }
      if (left == 0) return std::nullopt;
      return txn;
    };
    GANNET_RETURN_IF_ERROR(Change(stop));
  } while (left > 0);
  if (wanted.empty()) {
    Answer("no partition moves\n", {{"given_up", 0}, {"moved", 0}});
    return absl::OkStatus();
  }
  return Await(wanted, {}, Json::object());
}

// --- waiting ---

absl::Status MovesRun::Stopped(const PlanProgress& progress, const char* why) const {
  if (command_.stop) {
    return absl::AbortedError(
        absl::StrCat(why, ". What is closed is opened again by the servers all the same"));
  }
  return absl::AbortedError(absl::StrCat(
      why, ": ", progress.Text(NowMs()),
      ". The servers go on without kvcli. To wait again: the same command; to look: kvcli "
      "cluster moves; to give up what has not moved yet: kvcli cluster moves --stop"));
}

absl::Status MovesRun::Await(const Wanted& wanted, std::span<const uint64_t> bytes, Json answer) {
  const int64_t begun = NowMs();
  PlanProgress progress(wanted, bytes, begun);
  std::string told;
  int64_t told_at = begun;
  bool said_still = false;
  absl::StatusOr<ClusterState> state = absl::UnknownError("not read yet");
  while (true) {
    state = Read();
    const int64_t now = NowMs();
    if (!state.ok() && !absl::IsUnavailable(state.status())) return state.status();
    if (state.ok()) progress.Take(*state, now);
    if (state.ok() && progress.done()) break;
    if (wait_interrupted != 0) return Stopped(progress, "stopped waiting");
    if (wait_ && now - begun >= wait_->count()) return Stopped(progress, "waited long enough");
    std::string line = state.ok() ? progress.Text(now) : std::string(state.status().message());
    if (line != told && now - told_at >= kTellMs && !command_.stop) {
      Tell(line);
      told = std::move(line);
      told_at = now;
    }
    if (progress.StillMs(now) < kStillMs) said_still = false;
    if (progress.StillMs(now) >= kStillMs && !std::exchange(said_still, true)) {
      Tell(
          "nothing has changed for 15 s. The primary of the group that receives moves partitions: "
          "see its log, and kvcli cluster status whether all groups have a primary");
    }
    const auto left = wait_ ? std::min(*wait_ - milliseconds(now - begun), kLook) : kLook;
    session_->AwaitChange(ClusterPrefix(command_.cluster) + "moves/", left);
  }
  const size_t given_up = progress.given_up().size();
  if (command_.stop) {
    // Each was to stay where it was.
    Answer(absl::StrCat(progress.moved(), " moves are given up; ", given_up,
                        " partitions had moved before\n"),
           {{"given_up", progress.moved()}, {"moved", given_up}});
    return absl::OkStatus();
  }
  answer["moved"] = progress.moved();
  answer["given_up"] = progress.given_up();
  answer["seconds"] = static_cast<double>(NowMs() - begun) / 1000;
  if (given_up > 0) {
    return absl::AbortedError(absl::StrCat(progress.moved(), " partitions have moved, ", given_up,
                                           " were given up meanwhile"));
  }
  if (command_.action == Action::kDrain) {
    GANNET_RETURN_IF_ERROR(IsDrained(*state, command_.group));
  }
  std::string text =
      wanted.empty() ? "nothing is to be moved\n" : absl::StrCat(progress.Text(NowMs()), "\n");
  if (command_.action == Action::kDrain) {
    absl::StrAppend(&text, "group ", command_.group,
                    " has no partition any more. To let it go: ", "kvcli cluster remove-group ",
                    command_.group, "\n");
  }
  Answer(text, answer);
  return absl::OkStatus();
}

}  // namespace

absl::Status RunMoves(const ClusterCommand& command, std::optional<std::chrono::milliseconds> wait,
                      bool json, const Options& connect, EtcdSession* session) {
  return MovesRun(command, wait, json, connect, session).Do();
}

}  // namespace gannet::kvcli
