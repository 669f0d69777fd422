#include "tests/simulation/simulated_etcd.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "tests/simulation/group_scenario.h"
#include "tests/simulation/group_server.h"

namespace gannet::simulation {
namespace {

constexpr int64_t kNewsNsMax = 300 * kNsPerMs;
constexpr int64_t kQuietNsMax = 2 * kNsPerSecond;  // of a watch that hears nothing

absl::Status NoAnswer() { return absl::UnavailableError("etcd gives no answer"); }

}  // namespace

// --- etcd ---

EtcdTxnResult GroupRegisterService::Execute(const EtcdTxn& txn, bool by_operator) {
  const auto holds = [this](const EtcdTxn::Compare& compare) {
    GANNET_CHECK(!compare.prefix, "nobody compares a prefix here");
    const EtcdKeyValue* const there = log_->Find(compare.key);
    if (!compare.value_begins.empty()) {
      return there != nullptr && there->value.size() > compare.value_begins.size() &&
             there->value.starts_with(compare.value_begins);
    }
    return (there == nullptr ? 0 : there->mod_revision) == compare.mod_revision;
  };
  EtcdTxnResult result = {.outcome = EtcdTxnResult::Outcome::kRefused};
  const auto tell = [&](const std::string& key) {
    if (const EtcdKeyValue* const there = log_->Find(key)) result.current.push_back(*there);
  };
  if (std::ranges::all_of(txn.compares, holds)) {
    result.outcome = EtcdTxnResult::Outcome::kWon;
    if (!txn.puts.empty() || !txn.deletes.empty()) log_->Begin();
    for (const EtcdTxn::Put& put : txn.puts) log_->Put(put.key, put.value);
    for (const std::string& key : txn.deletes) {
      if (log_->Find(key) != nullptr) log_->Delete(key);
    }
    Learn(txn, by_operator);
  } else {
    for (const EtcdTxn::Compare& compare : txn.compares) tell(compare.key);
  }
  for (const std::string& key : txn.reads) tell(key);
  result.revision = log_->revision();
  return result;
}

void GroupRegisterService::Learn(const EtcdTxn& done, bool by_operator) {
  for (const EtcdTxn::Put& put : done.puts) {
    const auto key = ParseClusterKey(kCluster, put.key);
    GANNET_CHECK(key.has_value(), "a key that is none of the cluster's");
    if (key->kind == ClusterKey::Kind::kGroup) LearnGroup(key->name, put.value, by_operator);
    if (key->kind != ClusterKey::Kind::kConfig) continue;
    auto map = DecodeClusterConfig(put.value);
    GANNET_CHECK(map.ok(), "a map that cannot be");
    map_ = {.config = *std::move(map), .mod_revision = log_->revision()};
    run_->Note(absl::StrCat("the map becomes that of revision ", map_.config.revision));
  }
  for (const std::string& text : done.deletes) {
    const auto key = ParseClusterKey(kCluster, text);
    if (key && key->kind == ClusterKey::Kind::kMove) wishes_.erase(key->partition);
  }
}

// What an operator makes of a lost group, which nobody has founded yet, is not what the group is.
void GroupRegisterService::LearnGroup(const std::string& name, const std::string& value,
                                      bool by_operator) {
  const auto config = DecodeGroupConfig(value);
  GANNET_CHECK(config.ok(), "a register that cannot be");
  State& state = *std::ranges::find(groups_, name, &State::name);
  const GroupConfiguration& was = state.now.configuration;
  if (by_operator && config->epoch == 0) return;
  if (!by_operator && (config->epoch < was.epoch || config->history != state.terms.history)) {
    run_->Fail(Check::kFoundedOnce,
               absl::StrCat(config->primary.node, " makes epoch ", config->epoch, " of group ",
                            name, ", which was in epoch ", was.epoch));
  }
  const GroupState now = StateOf(*config, log_->revision());
  state.now = now.now;
  state.terms = now.terms;
  run_->Note(absl::StrCat("group ", name, " is in epoch ", config->epoch, " under ",
                          config->primary.node, ", ", config->in_sync.size(), " in sync"));
}

void GroupRegisterService::LoseAll() {
  log_->LoseAll();
  wishes_.clear();
  run_->Note("etcd loses its data");
}

void GroupRegisterService::PutGarbage(const std::string& key, const std::string& value) {
  log_->Begin();
  log_->Put(key, value);
}

void GroupRegisterService::MendGarbage(const std::string& text) {
  const auto key = ParseClusterKey(kCluster, text);
  GANNET_CHECK(key.has_value(), "a key that is none of the cluster's");
  const int64_t revision = log_->Begin();
  if (key->kind == ClusterKey::Kind::kConfig) {
    map_.mod_revision = revision;
    log_->Put(text, Encode(map_.config));
  } else if (key->kind == ClusterKey::Kind::kGroup) {
    State& state = *std::ranges::find(groups_, key->name, &State::name);
    state.now.revision = static_cast<uint64_t>(revision);
    PutGroup(state);
  } else if (log_->Find(text) != nullptr) {
    log_->Delete(text);
  }
}

// --- a process's way to it ---

SimulatedEtcd::SimulatedEtcd(GroupRegisterService* service)
    : service_(service), state_(std::make_shared<State>()) {}

uint64_t SimulatedEtcd::Watch(std::string_view, WatchHandler handler) {
  handler_ = std::move(handler);
  return 1;
}

void SimulatedEtcd::Poll() {
  Look();
  for (const Answered& answered : std::exchange(state_->inbox, {})) answered();
}

void SimulatedEtcd::Look() {
  if (!handler_ || NowNs() < look_ns_) return;
  const auto look = [this, service = service_, state = state_] {
    if (service->away_) return;
    const ClusterKeysLog& log = *service->log_;
    const uint64_t losses = log.losses();
    const bool lists = state->told == 0 || state->listed != losses;
    if (!lists && state->told == log.size()) return;
    EtcdNews news;
    if (lists) {
      news = {.kind = EtcdNews::Kind::kListed,
              .revision = log.revision(),
              .items = log.Items(),
              .went_back = state->told > 0};
    } else {
      news = log.Since(state->told);
    }
    state->told = log.size();
    state->listed = losses;
    state->inbox.push_back([this, losses, news = std::move(news)] {
      losses_ = std::max(losses_, losses);
      handler_(news);
    });
  };
  if (!std::exchange(listed_, true)) return look();
  Run* const run = service_->run_;
  look_ns_ = NowNs() + static_cast<int64_t>(run->Below(kNewsNsMax));
  if (service_->Fault(10)) look_ns_ += static_cast<int64_t>(run->Below(kQuietNsMax));
  service_->After(service_->Delay(), look);
}

void SimulatedEtcd::Send(const std::function<Answered()>& execute, const Answered& unknown) {
  const auto give = [state = state_](Answered what) { state->inbox.push_back(std::move(what)); };
  service_->Carry(
      [give, unknown] { give(unknown); },
      [this, service = service_, give, execute, unknown, sent = losses_]() -> Answered {
        const uint64_t losses = service->log_->losses();
        if (sent != losses) {
          return [this, give, unknown, losses] {
            give([this, unknown, losses] {
              if (losses > losses_) look_ns_ = 0;
              losses_ = std::max(losses_, losses);
              unknown();
            });
          };
        }
        return [this, give, unknown, sent, answered = execute()] {
          give([this, unknown, sent, answered] { sent == losses_ ? answered() : unknown(); });
        };
      });
}

void SimulatedEtcd::Range(std::string_view key, RangeHandler handler) {
  Send(
      [service = service_, handler, key = std::string(key)]() -> Answered {
        EtcdRangeAnswer answer = {.header = {.revision = service->log_->revision()}};
        if (const EtcdKeyValue* const there = service->log_->Find(key)) {
          answer.items.push_back(*there);
        }
        return [handler, answer] { handler(answer); };
      },
      [handler] { handler(NoAnswer()); });
}

void SimulatedEtcd::Txn(const EtcdTxn& txn, TxnHandler handler) {
  Send(
      [service = service_, handler, txn]() -> Answered {
        return [handler, result = service->Execute(txn, false)] { handler(result); };
      },
      [handler] { handler({.status = NoAnswer()}); });
}

// --- a member's store ---

EtcdMember::EtcdMember(GroupRegisterService* service, const std::string& node,
                       std::function<bool(const std::string&)> reaches)
    : EtcdConfigStore({.cluster = kCluster, .node = node},
                      std::make_unique<SimulatedEtcd>(service)),
      reaches_(std::move(reaches)) {}

absl::StatusOr<std::unique_ptr<EtcdMember>> EtcdMember::Open(
    GroupRegisterService* service, const std::string& node,
    std::function<bool(const std::string&)> reaches) {
  if (service->away()) return NoAnswer();
  std::unique_ptr<EtcdMember> member(new EtcdMember(service, node, std::move(reaches)));
  GANNET_RETURN_IF_ERROR(member->AwaitFirstList());
  return member;
}

std::optional<std::string> EtcdMember::AddressOf(const GroupMember& member) const {
  if (!reaches_(member.node)) return std::nullopt;
  return EtcdConfigStore::AddressOf(member);
}

std::optional<std::string> EtcdMember::PrimaryOf(std::string_view group) const {
  std::optional<std::string> address = EtcdConfigStore::PrimaryOf(group);
  for (uint32_t i = 0; address && i < GroupScenario::kNodesMax; ++i) {
    const std::string node = GroupServer::NameOf(i);
    const auto seen = NodeOf(node);
    if (!seen) continue;
    const GroupMember process = {.node = node, .incarnation = seen->incarnation};
    if (EtcdConfigStore::AddressOf(process) == address && !reaches_(node)) return std::nullopt;
  }
  return address;
}

}  // namespace gannet::simulation
