// Requests to etcd and their answers. A request begins in Read or Txn, goes on in Ask or OnTxn, and
// ends in AnswerWith or AnswerUnknown. A register is answered only with the map as it
// was then or later, so AskForMap follows it.

#include "server/group/cluster/etcd_config_store.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/json_fields.h"
#include "glog/logging.h"

namespace gannet {
namespace {

constexpr int64_t kLostPauseNs = 100 * kNsPerMs;     // before an answer that there is no register
constexpr int64_t kTellPauseNs = 10 * kNsPerSecond;  // between two lines of the log

// Says what an operator can do. `found_cluster`: etcd has such a cluster.
absl::Status Advise(const EtcdConfigStore::Options& options, bool found_cluster,
                    const absl::Status& status) {
  const std::string urls = absl::StrJoin(options.etcd.endpoints, ",");
  const std::string flags = absl::StrCat(" --etcd=", urls, " --cluster=", options.cluster);
  std::string advice;
  if (absl::IsUnavailable(status)) {
    advice = ". Does etcd run at the URLs of --etcd?";
  } else if (absl::IsNotFound(status) && !found_cluster) {
    advice = absl::StrCat(" in the etcd at ", urls, ". Create it: kvcli cluster init", flags,
                          " --group=g1:", options.node, ",...");
  } else if (absl::IsNotFound(status)) {
    advice = absl::StrCat(". Add it: kvcli cluster add GROUP ", options.node, flags);
  }
  return {status.code(), absl::StrCat(status.message(), advice)};
}

// Returns what etcd has to find: no later process of the member's node has announced itself.
EtcdTxn::Compare Runs(const std::string& cluster, const GroupMember& member) {
  return {.key = NodeKey(cluster, member.node),
          .value_begins = BeginningOf(NodeInfo{.incarnation = member.incarnation})};
}

}  // namespace

absl::StatusOr<std::unique_ptr<EtcdConfigStore>> EtcdConfigStore::Open(Options options) {
  if (!IsClusterName(options.cluster)) return absl::InvalidArgumentError(WhatNamesAre("cluster"));
  if (!IsClusterName(options.node)) return absl::InvalidArgumentError(WhatNamesAre("node"));
  GANNET_ASSIGN_OR_RETURN(auto client, EtcdClient::Create(options.etcd));
  std::unique_ptr<EtcdConfigStore> store(
      new EtcdConfigStore(std::move(options), std::move(client)));
  if (const absl::Status opened = store->AwaitFirstList(); !opened.ok()) {
    return Advise(store->options_, store->view_.found_cluster(), opened);
  }
  return store;
}

EtcdConfigStore::EtcdConfigStore(Options options, std::unique_ptr<Etcd> client)
    : options_(std::move(options)),
      client_(std::move(client)),
      view_(options_.cluster, options_.node),
      announcement_({.node_key = NodeKey(options_.cluster, options_.node),
                     .version_key = VersionKey(options_.cluster, options_.node),
                     .rails_key = RailsKey(options_.cluster, options_.node),
                     .disk_key = DiskKey(options_.cluster, options_.node),
                     .version = options_.version}),
      map_store_(options_.cluster, client_.get(), &view_, &announcement_),
      wish_(options_.cluster, *client_, view_),
      life_(options_.cluster, options_.node, *client_, view_, announcement_),
      compaction_(options_.compact_ms, *client_, view_) {}

EtcdConfigStore::~EtcdConfigStore() = default;

absl::Status EtcdConfigStore::AwaitFirstList() {
  client_->Watch(ClusterPrefix(options_.cluster), [this](const EtcdNews& news) { OnNews(news); });
  int64_t end = client_->NowNs() + options_.open_ms * kNsPerMs;
  while (true) {
    client_->Poll();
    if (listed_) return begun_;
    // Others than "unavailable" do not pass by waiting.
    if (!lost_.ok() && !absl::IsUnavailable(lost_)) return lost_;
    const int64_t left_ms = (end - client_->NowNs()) / kNsPerMs;
    if (left_ms <= 0) {
      if (!options_.patient) return lost_;
      LOG(WARNING) << "waits for etcd: "
                   << Advise(options_, view_.found_cluster(), lost_).message();
      end = client_->NowNs() + options_.open_ms * kNsPerMs;
      continue;
    }
    pollfd waiting = {.fd = client_->fd(), .events = POLLIN, .revents = 0};
    poll(&waiting, 1, static_cast<int>(left_ms));
  }
}

void EtcdConfigStore::OnNews(const EtcdNews& news) {
  if (news.kind == EtcdNews::Kind::kLost) {
    lost_ = news.status;
    if (listed_) LOG(WARNING) << "the group's configuration is out of reach: " << lost_.message();
    return;
  }
  if (listed_) return view_.Take(news);
  listed_ = true;
  begun_ = view_.Begin(news.items);
}

// --- requests ---

void EtcdConfigStore::Read() { Ask(Result::kRead); }

void EtcdConfigStore::Ask(Result result) {
  answer_.reset();
  client_->Range(GroupKey(options_.cluster, group()), [this, result, id = ++request_](auto answer) {
    if (id != request_) return;
    answer.ok() ? AskForMap(result, *answer) : AnswerUnknown(answer.status());
  });
}

// After the register: if that says that this process leads, no older map may do.
void EtcdConfigStore::AskForMap(Result result, const EtcdRangeAnswer& read) {
  client_->Range(ConfigKey(options_.cluster),
                 [this, result, items = read.items, id = request_](auto answer) {
                   if (id != request_) return;
                   if (!answer.ok()) return AnswerUnknown(answer.status());
                   std::vector<EtcdKeyValue> both = items;
                   both.insert(both.end(), answer->items.begin(), answer->items.end());
                   AnswerWith(result, both);
                 });
}

void EtcdConfigStore::Txn(uint64_t revision, const GroupConfiguration& wanted) {
  std::vector<GroupMember> others;
  if (wanted.primary.node != options_.node) others.push_back(wanted.primary);
  Change(revision, ConfigOf(view_.state().terms, wanted), others);
}

void EtcdConfigStore::BeginAgain(uint64_t revision, const GroupConfiguration& wanted,
                                 uint64_t history, const std::vector<GroupMember>& others) {
  GroupConfig config = ConfigOf(view_.state().terms, wanted);
  config.history = history;
  Change(revision, config, others);
}

void EtcdConfigStore::Adopt(const GroupConfiguration& known) {
  LOG(WARNING) << "etcd has lost the group. Writes its register again, of epoch " << known.epoch
               << ", as nobody can have led the group since";
  Change(static_cast<uint64_t>(view_.other_revision()), ConfigOf(view_.state().terms, known), {});
}

void EtcdConfigStore::Change(uint64_t revision, const GroupConfig& config,
                             const std::vector<GroupMember>& others) {
  if (const absl::Status wrong = Check(config); !wrong.ok()) {
    LOG(ERROR) << "a configuration that the group may not have: " << wrong.message();
    return Ask(Result::kLost);
  }
  answer_.reset();
  const std::string key = GroupKey(options_.cluster, group());
  EtcdTxn txn = {.compares = {{.key = key, .mod_revision = static_cast<int64_t>(revision)}},
                 .puts = {{key, Encode(config)}},
                 .reads = {ConfigKey(options_.cluster)}};
  if (auto standing = announcement_.Standing()) txn.compares.push_back(*std::move(standing));
  for (const GroupMember& other : others) txn.compares.push_back(Runs(options_.cluster, other));
  // Whoever becomes one of those in sync takes the map that is there for the right one.
  const GroupConfiguration& known = view_.state().now.configuration;
  const auto is_known = [&](const GroupMember& it) {
    return it.node == options_.node || known.IsInSync(it);
  };
  if (!std::ranges::all_of(config.in_sync, is_known)) {
    txn.compares.push_back(
        {.key = ConfigKey(options_.cluster), .mod_revision = view_.map().mod_revision});
  }
  if (known.epoch == 0) AddFounding(config, &txn);
  client_->Txn(txn, [this, config, id = ++request_](const EtcdTxnResult& result) {
    if (id == request_) OnTxn(config, result);
  });
}

void EtcdConfigStore::AddFounding(const GroupConfig& config, EtcdTxn* txn) const {
  for (const std::string& node : config.members) {
    txn->compares.push_back({.key = LifeKey(options_.cluster, node), .mod_revision = 0});
  }
  const GroupPolicy policy = own_policy_.With(view_.policy());
  if (!view_.policy_revision() || policy == view_.policy()) return;
  const std::string key = PolicyKey(options_.cluster, group());
  txn->compares.push_back({.key = key, .mod_revision = *view_.policy_revision()});
  txn->puts.push_back({key, Encode(policy)});
}

void EtcdConfigStore::OnTxn(const GroupConfig& wanted, const EtcdTxnResult& result) {
  using enum EtcdTxnResult::Outcome;
  switch (result.outcome) {
    case kWon: {
      std::vector<EtcdKeyValue> items = {{.key = GroupKey(options_.cluster, group()),
                                          .value = Encode(wanted),
                                          .mod_revision = result.revision}};
      items.insert(items.end(), result.current.begin(), result.current.end());
      return AnswerWith(Result::kWon, items);
    }
    case kRefused:
      return AnswerWith(Result::kLost, result.current);
    // It will not be executed, but that is not what kLost says: the revision may be the same. Who
    // asks tries again, as after an unknown result.
    case kFailed:
    case kUnknown:
      return AnswerUnknown(result.status);
  }
}

void EtcdConfigStore::AnswerWith(Result result, const std::vector<EtcdKeyValue>& items) {
  const auto is_lost = [this](const absl::Status& why) { AnswerUnknown(why, kLostPauseNs); };
  const std::string key = GroupKey(options_.cluster, group());
  const auto item = std::ranges::find(items, key, &EtcdKeyValue::key);
  if (item == items.end()) {
    return is_lost(absl::NotFoundError("the group's key is gone from etcd"));
  }
  const auto config = DecodeGroupConfig(item->value);
  if (!config.ok()) return is_lost(config.status());
  // The map is not older than the register, and maybe younger.
  view_.SetHasItemsIfInSync(incarnation_, *config);
  if (!view_.TakeMap(items)) {
    return is_lost(absl::NotFoundError("no map of the cluster came that can be believed"));
  }
  if (!view_.TakeGroup(*config, item->mod_revision)) {
    return is_lost(absl::NotFoundError("etcd has lost the group"));
  }
  answer_ = {.result = result, .now = StateOf(*config, item->mod_revision).now};
}

void EtcdConfigStore::AnswerUnknown(const absl::Status& why, int64_t pause_ns) {
  answer_ = Answer{.result = Result::kUnknown, .now = {}};
  const int64_t now = client_->NowNs();
  answer_from_ = now + pause_ns;
  if (told_unknown_at_ && now - *told_unknown_at_ < kTellPauseNs) return;
  told_unknown_at_ = now;
  LOG(WARNING) << "the group's configuration can be neither read nor changed: " << why.message();
}

std::optional<ConfigStore::Answer> EtcdConfigStore::Poll() {
  client_->Poll();
  KeepAnnounced();
  life_.Poll({.incarnation = incarnation_, .applied = applied_, .leads = leads_});
  wish_.Poll();
  compaction_.Poll(view_.state().now.configuration.primary.node == options_.node);
  if (answer_ && client_->NowNs() < answer_from_) return std::nullopt;
  return std::exchange(answer_, std::nullopt);
}

// --- nodes and wishes ---

void EtcdConfigStore::Announce(const GroupMember& self, std::string_view addresses,
                               uint64_t applied) {
  GANNET_CHECK(self.node == options_.node, "another node's announcement");
  incarnation_ = self.incarnation;
  view_.SetHasItemsIfInSync(incarnation_, ConfigOf(terms(), view_.state().now.configuration));
  applied_ = std::min(applied, kJsonNumberMax);
  std::vector<std::string> rails = absl::StrSplit(std::string(addresses), ',');
  announcement_.Want({.incarnation = self.incarnation,
                      .address = rails.front(),
                      .applied = std::min(applied, kJsonNumberMax)});
  if (rails.size() > 1) {
    announcement_.WantRails({.incarnation = self.incarnation, .rails = std::move(rails)});
  }
  if (kept_) {
    announcement_.WantDisk({.incarnation = self.incarnation,
                            .run = kept_->process,
                            .history = kept_->history,
                            .applied = std::min(kept_->lsn, kJsonNumberMax),
                            .always = kept_->always,
                            .opened = std::min(kept_->opened, kJsonNumberMax)});
  }
  KeepAnnounced();
}

void EtcdConfigStore::KeepAnnounced() {
  announcement_.KeepName(view_.state().now.configuration.IsInSync(
      {.node = options_.node, .incarnation = incarnation_}));
  const GroupView::Node* const node = view_.FindNode(options_.node);
  if (node != nullptr && node->mod_revision > 0) {
    // In a backup of etcd that was restored, an earlier process of this node may be the newest.
    const bool restored = node->mod_revision < view_.trusted_from();
    announcement_.Saw(restored ? NodeInfo{} : node->info, node->mod_revision);
  } else {
    announcement_.NotThere(view_.watched());
  }
  if (const auto txn = announcement_.Due(client_->NowNs(), view_.nodes())) {
    client_->Txn(*txn, [this](const EtcdTxnResult& result) { announcement_.OnResult(result); });
  }
}

void EtcdConfigStore::AnnounceItems(bool leads) {
  leads_ = leads;
  view_.SetHasItems();
}

std::string EtcdConfigStore::WhyNotAnnounced() const {
  return announcement_.WhyNotWritten(client_->NowNs());
}

std::optional<std::string> EtcdConfigStore::AddressOf(const GroupMember& member) const {
  const GroupView::Node* node = view_.FindNode(member.node);
  if (node == nullptr || node->info.incarnation != member.incarnation) return std::nullopt;
  return node->info.address;
}

}  // namespace gannet
