#include "tests/simulation/group_register.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/map_changes.h"

namespace gannet::simulation {
namespace {

constexpr int64_t kPatienceNs = 500 * kNsPerMs;
constexpr int64_t kForgottenNsMax = 4 * kNsPerSecond;
constexpr int64_t kLateNsMax = 900 * kNsPerMs;
constexpr int64_t kDelayNsMax = 2 * kNsPerMs;
constexpr int64_t kLookNsMax = 300 * kNsPerMs;
// A watch that is silent, of a cluster.
constexpr int64_t kSilentNsMax = 2 * kNsPerSecond;

}  // namespace

GroupRegisterService::GroupRegisterService(Run* run, GroupTerms terms) : run_(run) {
  groups_.push_back({.name = "", .terms = std::move(terms), .successor = std::nullopt});
}

GroupRegisterService::GroupRegisterService(Run* run, const std::vector<Group>& groups,
                                           ClusterConfig map)
    : run_(run) {
  log_.emplace();
  const int64_t revision = log_->Begin();
  map_ = {.config = std::move(map), .mod_revision = revision};
  log_->Put(ConfigKey(kCluster), Encode(map_.config));
  for (const Group& group : groups) {
    const bool present =
        std::ranges::find(map_.config.groups, group.name) != map_.config.groups.end();
    groups_.push_back(
        {.name = group.name, .terms = group.terms, .successor = std::nullopt, .present = present});
    if (present) PutGroup(groups_.back());
  }
}

void GroupRegisterService::PutGroup(const State& group) {
  log_->Put(GroupKey(kCluster, group.name), Encode(ConfigOf(group.terms, group.now.configuration)));
}

void GroupRegisterService::Step() {
  while (!events_.empty() && events_.begin()->first <= run_->now_ns()) {
    const std::function<void()> what = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    what();
  }
}

int64_t GroupRegisterService::Delay() {
  return 1 + static_cast<int64_t>(
                 run_->Below(static_cast<uint64_t>(Fault(20) ? kLateNsMax : kDelayNsMax)));
}

// A request may be forgotten by its sender and executed much later; it may be lost before or after
// it was executed.
void GroupRegisterService::Carry(const Answered& unknown,
                                 const std::function<Answered()>& execute) {
  const bool forgotten = Fault(8);
  const int64_t executed_after =
      forgotten ? static_cast<int64_t>(run_->Below(static_cast<uint64_t>(kForgottenNsMax)))
                : Delay();
  const bool lost = Fault(30);
  const bool answer_lost = Fault(20);
  const int64_t answer_after = Delay();
  if (forgotten || lost || answer_lost) After(executed_after + kPatienceNs, unknown);
  if (lost) return;
  After(executed_after, [this, unknown, execute, silent = forgotten || answer_lost, answer_after] {
    const Answered answered = away_ ? unknown : execute();
    if (!silent) After(away_ ? kPatienceNs : answer_after, answered);
  });
}

ConfigStore::Answer GroupRegisterService::Execute(uint32_t group, const GroupMember& sender,
                                                  const Wanted& wanted) {
  using Result = ConfigStore::Result;
  GroupRegister& now = groups_[group].now;
  if (!groups_[group].present) return {};  // as etcd's, when the group's key is gone
  if (!wanted) return {.result = Result::kRead, .now = now};
  const bool dead = IsDead(sender) || IsDead(wanted->configuration.primary);
  if (dead || wanted->revision != now.revision) {
    return {.result = Result::kLost, .now = now};
  }
  // etcd's store would end the process that wants this.
  const absl::Status valid = gannet::Check(ConfigOf(groups_[group].terms, wanted->configuration));
  GANNET_CHECK(valid.ok(), std::string(valid.message()).c_str());
  const uint64_t revision = log_ ? static_cast<uint64_t>(log_->Begin()) : now.revision + 1;
  now = {.revision = revision, .configuration = wanted->configuration};
  if (log_) PutGroup(groups_[group]);
  run_->Note("the register changes");
  return {.result = Result::kWon, .now = now};
}

MapStore::Result GroupRegisterService::Execute(uint32_t group, const GroupMember& sender,
                                               const MapTxn& txn) {
  bool wins = !IsDead(sender) && txn.map_revision == map_.mod_revision &&
              (!txn.group || *txn.group == groups_[group].now.revision);
  for (const auto& [partition, revision] : txn.ended) {
    const auto wish = wishes_.find(partition);
    wins = wins && wish != wishes_.end() && wish->second.mod_revision == revision;
  }
  if (!wins) return MapStore::Result::kLost;
  GANNET_CHECK(gannet::Check(txn.wanted).ok(), "a map that cannot be");
  map_ = {.config = txn.wanted, .mod_revision = log_->Begin()};
  log_->Put(ConfigKey(kCluster), Encode(map_.config));
  for (const auto& [partition, revision] : txn.ended) {
    wishes_.erase(partition);
    log_->Delete(MoveKey(kCluster, partition));
  }
  run_->Note(absl::StrCat("the map becomes that of revision ", map_.config.revision, ", by ",
                          sender.node, ", ", map_.config.closed.size(), " closed, ",
                          txn.ended.size(), " wishes end"));
  return MapStore::Result::kWon;
}

void GroupRegisterService::WantSuccessor(uint32_t group, const std::string& node) {
  groups_[group].successor = node;
  if (!real_stores_) return;
  log_->Begin();
  log_->Put(WishKey(kCluster, groups_[group].name), Encode(GroupWish{.handover = node}));
}

bool GroupRegisterService::WantsSuccessor(uint32_t group) const {
  if (!real_stores_) return groups_[group].successor.has_value();
  return log_->Find(WishKey(kCluster, groups_[group].name)) != nullptr;
}

void GroupRegisterService::WishMove(uint16_t partition, uint32_t to) {
  const std::string& owner = map_.config.groups[map_.config.partitions[partition]];
  if (wishes_.contains(partition) || owner == groups_[to].name) return;
  wishes_[partition] = {.to = groups_[to].name, .mod_revision = log_->Begin()};
  log_->Put(MoveKey(kCluster, partition), Encode(MoveInfo{.to = groups_[to].name, .asked = "x"}));
  run_->Note(absl::StrCat("partition ", partition, " is to move to ", groups_[to].name));
}

void GroupRegisterService::StopMoves() {
  const int64_t revision = log_->Begin();
  map_.mod_revision = revision;
  log_->Put(ConfigKey(kCluster), Encode(map_.config));
  for (auto it = wishes_.begin(); it != wishes_.end();) {
    auto& [partition, wish] = *it;
    const std::string key = MoveKey(kCluster, partition);
    if (IsClosed(map_.config, partition)) {
      wish.stop = true;
      wish.mod_revision = revision;
      log_->Put(key, Encode(MoveInfo{.to = wish.to, .asked = "x", .stop = true}));
      ++it;
    } else {
      log_->Delete(key);
      it = wishes_.erase(it);
    }
  }
  run_->Note("moves are given up");
}

bool GroupRegisterService::Has(std::string_view group) const {
  return std::ranges::find(map_.config.groups, group) != map_.config.groups.end();
}

uint32_t GroupRegisterService::OwnerOf(uint16_t partition) const {
  const std::string& owner = map_.config.groups[map_.config.partitions[partition]];
  const auto found = std::ranges::find(groups_, owner, &State::name);
  return static_cast<uint32_t>(found - groups_.begin());
}

void GroupRegisterService::AddGroup(uint32_t group, GroupTerms terms) {
  State& state = groups_[group];
  auto map = gannet::AddGroup(map_.config, state.name);
  GANNET_CHECK(map.ok(), "a group that is there comes again");
  const int64_t revision = log_->Begin();
  map_ = {.config = *std::move(map), .mod_revision = revision};
  log_->Put(ConfigKey(kCluster), Encode(map_.config));
  state = {.name = state.name,
           .terms = std::move(terms),
           .now = {.revision = static_cast<uint64_t>(revision), .configuration = {}},
           .successor = std::nullopt};
  PutGroup(state);
  run_->Note(absl::StrCat("group ", state.name, " comes"));
}

bool GroupRegisterService::RemoveGroup(uint32_t group) {
  State& state = groups_[group];
  auto map = gannet::RemoveGroup(map_.config, state.name);
  if (!wishes_.empty() || !map.ok()) return false;
  map_ = {.config = *std::move(map), .mod_revision = log_->Begin()};
  log_->Put(ConfigKey(kCluster), Encode(map_.config));
  log_->Delete(GroupKey(kCluster, state.name));
  state.present = false;
  run_->Note(absl::StrCat("group ", state.name, " is gone"));
  return true;
}

void GroupRegisterService::Announce(const GroupMember& self, std::string_view address,
                                    uint16_t stream_version) {
  stream_versions_[self.node] = stream_version;
  auto& announced = nodes_[self.node];
  const std::pair<GroupMember, std::string> now = {self, std::string(address)};
  if (std::exchange(announced, now) == now || !log_) return;
  log_->Begin();
  log_->Put(NodeKey(kCluster, self.node),
            Encode(NodeInfo{.incarnation = self.incarnation, .address = std::string(address)}));
}

std::string GroupRegisterService::NodeAt(std::string_view address) const {
  for (const auto& [name, node] : nodes_) {
    if (node.second == address) return name;
  }
  return "";
}

// --- a process's ways ---

MemberMapStore::MemberMapStore(MemberStore* store)
    : store_(store), state_(std::make_shared<State>()) {}

// A result tells of the map, also one that nobody waits for any more.
void MemberMapStore::Txn(const MapTxn& txn) {
  GroupRegisterService* const service = store_->service_;
  const uint64_t request = ++state_->newest;
  state_->result.reset();
  const auto give = [state = state_, request](Result result) {
    if (state->newest == request) state->result = result;
  };
  service->Carry([give] { give(Result::kUnknown); },
                 [service, give, txn, group = store_->group_, self = store_->self_,
                  of_store = store_->state_]() -> GroupRegisterService::Answered {
                   const Result result = service->Execute(group, self, txn);
                   return [give, result, of_store, now = service->map_] {
                     of_store->view->TakeConfig(now.config, now.mod_revision);
                     give(result);
                   };
                 });
}

std::optional<MapStore::Result> MemberMapStore::Poll() {
  return std::exchange(state_->result, std::nullopt);
}

const SeenMap* MemberMapStore::Seen() const { return store_->Config(); }

MemberStore::MemberStore(GroupRegisterService* service, uint32_t group, const std::string& node,
                         uint16_t stream_version, std::function<bool(const std::string&)> reaches)
    : service_(service),
      group_(group),
      stream_version_(stream_version),
      reaches_(std::move(reaches)),
      state_(std::make_shared<State>()),
      map_store_(this) {
  if (!service_->log_) return;
  state_->view.emplace(kCluster, node);
  const absl::Status begun = state_->view->Begin(service_->log_->Items());
  GANNET_CHECK(begun.ok(), std::string(begun.message()).c_str());
  state_->told = service_->log_->size();
}

void MemberStore::Begin(const GroupRegisterService::Wanted& wanted) {
  const uint64_t request = ++state_->newest;
  state_->answer.reset();
  const auto give = [state = state_, request](const Answer& answer) {
    if (state->newest == request) state->answer = answer;
    return state->newest == request;
  };
  service_->Carry([give] { give({}); },
                  [service = service_, group = group_, self = self_, state = state_, give,
                   wanted]() -> GroupRegisterService::Answered {
                    const Answer answer = service->Execute(group, self, wanted);
                    if (!state->view) return [give, answer] { give(answer); };
                    // The map is read in the same step (rule 3 of docs/partitions.md).
                    return [give, answer, state, terms = service->groups_[group].terms,
                            map = service->map_] {
                      if (!give(answer) || answer.result == Result::kUnknown) return;
                      state->view->TakeConfig(map.config, map.mod_revision);
                      state->view->TakeGroup(ConfigOf(terms, answer.now.configuration),
                                             static_cast<int64_t>(answer.now.revision));
                    };
                  });
}

std::optional<ConfigStore::Answer> MemberStore::Poll() {
  Run* const run = service_->run_;
  if (run->now_ns() >= look_ns_) {
    look_ns_ = run->now_ns() + static_cast<int64_t>(run->Below(kLookNsMax));
    if (state_->view && service_->Fault(10)) {
      look_ns_ += static_cast<int64_t>(run->Below(kSilentNsMax));
    }
    service_->After(service_->Delay(), [state = state_, at = service_, group = group_] {
      if (at->away_) return;
      if (!state->view) {
        state->seen = at->groups_[group].now;
        return;
      }
      state->view->Take(at->log_->Since(state->told));
      state->told = at->log_->size();
    });
  }
  return std::exchange(state_->answer, std::nullopt);
}

std::optional<GroupRegister> MemberStore::Seen() const {
  if (!state_->view) return state_->seen;
  return state_->view->state().now;
}

std::optional<std::string> MemberStore::AddressOf(const GroupMember& member) const {
  const auto it = service_->nodes_.find(member.node);
  if (it == service_->nodes_.end() || it->second.first != member) return std::nullopt;
  if (!reaches_(member.node)) return std::nullopt;
  return it->second.second;
}

std::optional<NodeSeen> MemberStore::NodeOf(std::string_view node) const {
  const auto it = service_->nodes_.find(std::string(node));
  if (it == service_->nodes_.end()) return std::nullopt;
  return NodeSeen{
      .incarnation = it->second.first.incarnation,
      .applied = 0,
      .kept = std::nullopt,
      .stream_version = std::min(stream_version_, service_->stream_versions_.at(it->first))};
}

// As etcd tells it to members.
std::optional<PartitionMap> MemberStore::Map() const {
  if (state_->view) return state_->view->Map();
  PartitionMap map{.groups = {{"g", {}}}, .partitions = std::vector<uint16_t>(kPartitions)};
  for (const auto& [name, node] : service_->nodes_) map.groups[0].addresses.push_back(node.second);
  return map;
}

const GroupPartitions* MemberStore::Partitions() const {
  return state_->view ? &state_->view->partitions() : nullptr;
}

const SeenMap* MemberStore::Config() const { return state_->view ? &state_->view->map() : nullptr; }

const PartitionMoveWishes* MemberStore::Moves() const {
  return state_->view ? state_->view->moves() : nullptr;
}

std::optional<std::string> MemberStore::PrimaryOf(std::string_view group) const {
  if (!state_->view) return std::nullopt;
  std::optional<std::string> address = state_->view->PrimaryOf(group);
  if (address && !reaches_(service_->NodeAt(*address))) return std::nullopt;
  return address;
}

std::optional<uint64_t> MemberStore::RingBytesOf(std::string_view group) const {
  return state_->view ? state_->view->RingBytesOf(group) : std::nullopt;
}

}  // namespace gannet::simulation
