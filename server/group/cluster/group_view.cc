// Takes what the watch tells, key by key, and decides what is believed. TakeConfig and MayFollow
// hold the rules for the register, TakeMap those for the map; what they refuse leaves the view as
// it was.

#include "server/group/cluster/group_view.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/map_changes.h"
#include "glog/logging.h"

namespace gannet {
namespace {

using enum ClusterKey::Kind;

constexpr uint32_t kStreamMost = std::numeric_limits<uint16_t>::max();

absl::Status In(std::string_view key, const absl::Status& status) {
  return {status.code(), absl::StrCat(std::string(key), " in etcd: ", status.message())};
}

}  // namespace

GroupState StateOf(const GroupConfig& config, int64_t mod_revision) {
  return {.now = {.revision = static_cast<uint64_t>(mod_revision),
                  .configuration = {.epoch = config.epoch,
                                    .primary = config.primary,
                                    .in_sync = config.in_sync}},
          .terms = {.history = config.history,
                    .lease_ms = config.lease_ms,
                    .min_copies = config.min_copies,
                    .ring_bytes = config.ring_bytes,
                    .members = config.members}};
}

GroupConfig ConfigOf(const GroupTerms& terms, const GroupConfiguration& configuration) {
  return {.history = terms.history,
          .epoch = configuration.epoch,
          .primary = configuration.primary,
          .in_sync = configuration.in_sync,
          .members = terms.members,
          .lease_ms = terms.lease_ms,
          .min_copies = terms.min_copies,
          .ring_bytes = terms.ring_bytes};
}

absl::Status GroupView::Begin(const std::vector<EtcdKeyValue>& items) {
  const auto config =
      std::ranges::find(items, ConfigKey(cluster_), [](const EtcdKeyValue& it) { return it.key; });
  if (config == items.end()) {
    return absl::NotFoundError(absl::StrCat("there is no cluster ", cluster_));
  }
  found_cluster_ = true;
  // An unknown format makes all other keys unreadable, so it is looked at first.
  if (const auto read = DecodeClusterConfig(config->value); !read.ok()) {
    return In(config->key, read.status());
  }
  for (const EtcdKeyValue& item : items) {
    const auto key = ParseClusterKey(cluster_, item.key);
    if (!key || key->kind != kGroup) continue;
    const auto group = DecodeGroupConfig(item.value);
    if (!group.ok()) return In(item.key, group.status());
    if (std::ranges::find(group->members, node_) != group->members.end()) group_ = key->name;
  }
  if (group_.empty()) {
    return absl::NotFoundError(
        absl::StrCat("node ", node_, " is in no group of cluster ", cluster_));
  }
  for (const EtcdKeyValue& item : items) {
    watched_ = std::max(watched_, item.mod_revision);
    TakeItem(item);
  }
  return absl::OkStatus();
}

// If etcd has lost the cluster, the other groups and nodes stay as they were: clients ask for them.
void GroupView::ForgetAll(const EtcdNews& news) {
  const bool lost =
      std::ranges::find(news.items, ConfigKey(cluster_), &EtcdKeyValue::key) == news.items.end();
  if (lost) {
    for (auto& [name, node] : nodes_) node.mod_revision = 0;
  } else {
    nodes_.clear();
    groups_.clear();
  }
  versions_.clear();
  rails_.clear();
  disks_.clear();
  lives_.clear();
  wish_.reset();
  moves_.clear();
  policy_revision_ = 0;
  there_ = has_map_ = false;
  other_revision_ = 0;
  if (news.went_back) trusted_from_ = news.revision + 1;
}

void GroupView::Take(const EtcdNews& news) {
  if (news.kind != EtcdNews::Kind::kLost) watched_ = news.revision;
  if (news.kind == EtcdNews::Kind::kListed) {
    ForgetAll(news);
    for (const EtcdKeyValue& item : news.items) TakeItem(item);
  }
  for (const EtcdChange& change : news.changes) {
    if (change.deleted) {
      Forget(change.item.key);
    } else {
      TakeItem(change.item);
    }
  }
}

bool GroupView::MayFollow(const GroupConfig& config, int64_t mod_revision) const {
  if (!state_ || !Filters()) return true;
  const GroupConfiguration& now = state_->now.configuration;
  if (config.epoch != now.epoch) return config.epoch > now.epoch;
  return config.primary == now.primary && config.history == state_->terms.history &&
         mod_revision >= trusted_from_;
}

void GroupView::SetHasItemsIfInSync(uint64_t incarnation, const GroupConfig& config) {
  incarnation_ = incarnation;
  const GroupMember self = {.node = node_, .incarnation = incarnation};
  has_items_ = has_items_ || std::ranges::find(config.in_sync, self) != config.in_sync.end();
}

bool GroupView::TakeGroup(const GroupConfig& config, int64_t mod_revision) {
  if (state_ && static_cast<uint64_t>(mod_revision) <= state_->now.revision) {
    there_ = true;  // though maybe not as an answer has told it
    return true;
  }
  if (MayFollow(config, mod_revision)) {
    SetHasItemsIfInSync(incarnation_, config);
    state_ = StateOf(config, mod_revision);
    there_ = true;
    return true;
  }
  if (there_ || other_revision_ != mod_revision) {
    LOG(ERROR) << GroupKey(cluster_, group_) << " in etcd, of epoch " << config.epoch
               << ", cannot have become of epoch " << state_->now.configuration.epoch << " under "
               << state_->now.configuration.primary.node
               << ", which this process knows: has etcd lost its data, or was it restored? The "
                  "group goes on as it was. kvcli cluster status says what to do";
  }
  there_ = false;
  other_revision_ = mod_revision;
  other_founded_ = config.epoch > 0;
  return false;
}

ConfigStore::Standing GroupView::standing() const {
  using enum ConfigStore::Standing;
  if (there_ || !Filters()) return IsDoubted() ? kDoubted : kThere;
  const bool founded = other_revision_ != 0 && other_founded_;
  return founded || !has_map_ ? kLost : kUnfounded;
}

bool GroupView::IsDoubted() const {
  const GroupRegister& now = state_->now;
  return std::ranges::any_of(lives_, [&](const auto& it) {
    const auto& [node, life] = it;
    return life.info.group == group_ && life.info.known.epoch == now.configuration.epoch &&
           static_cast<uint64_t>(life.mod_revision) > now.revision &&
           now.configuration.IsInSync({.node = node, .incarnation = life.info.incarnation});
  });
}

const GroupView::Life* GroupView::FindLife(std::string_view name) const {
  const auto found = lives_.find(name);
  return found == lives_.end() ? nullptr : &found->second;
}

// One that cannot be read counts, too: whoever founds the group compares that there is none.
std::vector<std::string> GroupView::WithItems() const {
  std::vector<std::string> nodes;
  for (const std::string& node : state_->terms.members) {
    if (lives_.contains(node)) nodes.push_back(node);
  }
  return nodes;
}

const GroupView::Node* GroupView::FindNode(std::string_view name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

// versions/N, rails/N and disks/N may be those of an earlier process.
std::optional<NodeSeen> GroupView::SeenOf(std::string_view name) const {
  const Node* const node = FindNode(name);
  if (node == nullptr || node->info.incarnation == 0) return std::nullopt;
  NodeSeen seen = {.incarnation = node->info.incarnation, .applied = node->info.applied};
  const auto version = versions_.find(name);
  if (version != versions_.end() && version->second.incarnation == seen.incarnation) {
    seen.stream_version = static_cast<uint16_t>(std::min(version->second.stream, kStreamMost));
  }
  const auto rails = rails_.find(name);
  if (rails != rails_.end() && rails->second.incarnation == seen.incarnation) {
    seen.rails = rails->second.rails;
  }
  const auto disk = disks_.find(name);
  if (disk == disks_.end() || disk->second.incarnation != seen.incarnation) return seen;
  seen.kept = KeptRun{.process = disk->second.run,
                      .history = disk->second.history,
                      .lsn = disk->second.applied,
                      .always = disk->second.always,
                      .opened = disk->second.opened};
  return seen;
}

std::optional<std::string> GroupView::PrimaryOf(std::string_view group) const {
  const auto found = groups_.find(group);
  if (found == groups_.end() || found->second.epoch == 0) return std::nullopt;
  const GroupMember& primary = found->second.primary;
  const Node* const node = FindNode(primary.node);
  if (node == nullptr || node->info.incarnation != primary.incarnation) return std::nullopt;
  return node->info.address;
}

std::optional<uint64_t> GroupView::RingBytesOf(std::string_view group) const {
  const auto found = groups_.find(group);
  if (found == groups_.end()) return std::nullopt;
  return found->second.ring_bytes;
}

PartitionMap GroupView::Map() const {
  const ClusterConfig& config = map_.config;
  PartitionMap map = {.revision = config.revision,
                      .groups = {},
                      .partitions = config.partitions,
                      .changed = config.changed,
                      .closed = {}};
  if (config.revision > 0) map.closed.resize(kPartitions);
  for (const uint16_t partition : config.closed) map.closed[partition] = true;
  for (const std::string& name : config.groups) {
    PartitionMap::Group& group = map.groups.emplace_back();
    group.name = name;
    const auto found = groups_.find(name);
    if (found == groups_.end()) continue;
    for (const std::string& member : found->second.members) {
      const Node* const node = FindNode(member);
      if (node != nullptr && !node->info.address.empty()) {
        group.addresses.push_back(node->info.address);
      }
    }
  }
  return map;
}

void GroupView::TakeItem(const EtcdKeyValue& item) {
  const auto key = ParseClusterKey(cluster_, item.key);
  if (!key) return;
  absl::Status read;
  if (key->kind == kConfig) {
    auto config = DecodeClusterConfig(item.value);
    read = config.status();
    has_map_ = config.ok() && TakeConfig(*std::move(config), item.mod_revision);
  } else if (key->kind == kGroup) {
    const auto group = DecodeGroupConfig(item.value);
    read = group.status();
    if (group.ok()) groups_[key->name] = *group;
    if (group.ok() && key->name == group_) TakeGroup(*group, item.mod_revision);
    if (!group.ok() && key->name == group_) {
      there_ = false;
      other_revision_ = item.mod_revision;
      other_founded_ = true;  // nobody knows
    }
  } else {
    read = TakeNote(*key, item);
  }
  if (!read.ok()) LOG(ERROR) << In(item.key, read).message();
}

absl::Status GroupView::TakeNote(const ClusterKey& key, const EtcdKeyValue& item) {
  if (key.kind == kNode) {
    const auto node = DecodeNodeInfo(item.value);
    // Kept, if it cannot be read: its revision is what an announcement compares with.
    nodes_[key.name] = {.info = node.value_or(NodeInfo{}), .mod_revision = item.mod_revision};
    return node.status();
  }
  if (key.kind == kLife) {
    const auto life = DecodeNodeLife(item.value);
    lives_[key.name] = {.info = life.value_or(NodeLife{}), .mod_revision = item.mod_revision};
    return life.status();
  }
  if (key.kind == kVersion) {
    GANNET_ASSIGN_OR_RETURN(versions_[key.name], DecodeNodeVersion(item.value));
  } else if (key.kind == kRails) {
    GANNET_ASSIGN_OR_RETURN(rails_[key.name], DecodeNodeRails(item.value));
  } else if (key.kind == kDisk) {
    GANNET_ASSIGN_OR_RETURN(disks_[key.name], DecodeNodeDisk(item.value));
  } else if (key.kind == kPolicy && key.name == group_) {
    policy_revision_.reset();
    GANNET_ASSIGN_OR_RETURN(policy_, DecodeGroupPolicy(item.value));
    policy_revision_ = item.mod_revision;
  } else if (key.kind == kWish && key.name == group_) {
    wish_.reset();
    GANNET_ASSIGN_OR_RETURN(const GroupWish wish, DecodeGroupWish(item.value));
    wish_ = {.handover = wish.handover, .mod_revision = item.mod_revision};
  } else if (key.kind == kMove) {
    moves_.erase(key.partition);
    GANNET_ASSIGN_OR_RETURN(const MoveInfo move, DecodeMoveInfo(item.value));
    moves_[key.partition] = {.to = move.to, .stop = move.stop, .mod_revision = item.mod_revision};
  }
  return absl::OkStatus();
}

// A group that is not in the map any more has nothing.
bool GroupView::TakeConfig(ClusterConfig taken, int64_t mod_revision) {
  if (mod_revision <= map_.mod_revision) return true;
  if (Filters()) {
    if (const absl::Status follows = CheckFollows(map_.config, taken); !follows.ok()) {
      LOG_IF(ERROR, std::exchange(refused_map_, mod_revision) != mod_revision)
          << ConfigKey(cluster_) << " in etcd is not believed: " << follows.message()
          << ". Was it not written by Gannet, or was etcd restored? The map stays that of revision "
          << map_.config.revision << ". kvcli cluster init writes it again";
      return false;
    }
  }
  map_ = {.config = std::move(taken), .mod_revision = mod_revision};
  const ClusterConfig& config = map_.config;
  partitions_ = {.revision = config.revision, .alone = config.groups.size() == 1};
  const auto found = std::ranges::find(config.groups, group_);
  if (found == config.groups.end()) {
    removed_ = removed_ || has_items_;
    return true;
  }
  const auto place = found - config.groups.begin();
  if (config.revision > 0) partitions_.lost = config.lost[place];
  for (uint32_t i = 0; i < kPartitions; ++i) {
    partitions_.served[i] = config.partitions[i] == place;
  }
  for (const uint16_t partition : config.closed) partitions_.served[partition] = false;
  partitions_.changed = config.changed;
  return true;
}

bool GroupView::TakeMap(const std::vector<EtcdKeyValue>& items) {
  const auto item = std::ranges::find(items, ConfigKey(cluster_), &EtcdKeyValue::key);
  if (item == items.end()) return false;
  auto config = DecodeClusterConfig(item->value);
  return config.ok() && TakeConfig(*std::move(config), item->mod_revision);
}

void GroupView::Forget(std::string_view key_text) {
  const auto key = ParseClusterKey(cluster_, key_text);
  if (!key) return;
  if (key->kind == kNode) nodes_.erase(key->name);
  if (key->kind == kVersion) versions_.erase(key->name);
  if (key->kind == kRails) rails_.erase(key->name);
  if (key->kind == kDisk) disks_.erase(key->name);
  if (key->kind == kPolicy && key->name == group_) policy_revision_ = 0;
  if (key->kind == kLife) lives_.erase(key->name);
  if (key->kind == kConfig) has_map_ = false;
  if (key->kind == kWish && key->name == group_) wish_.reset();
  if (key->kind == kMove) moves_.erase(key->partition);
  if (key->kind == kGroup && key->name != group_) groups_.erase(key->name);
  if (key->kind == kGroup && key->name == group_) {
    LOG(ERROR) << std::string(key_text) << " is gone from etcd. The group goes on as it was";
    there_ = false;
    other_revision_ = 0;
  }
}

}  // namespace gannet
