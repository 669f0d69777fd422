#include "server/cluster/group_view.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
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

void GroupView::Take(const EtcdNews& news) {
  if (news.kind != EtcdNews::Kind::kLost) watched_ = news.revision;
  if (news.kind == EtcdNews::Kind::kListed) {
    nodes_.clear();
    versions_.clear();
    disks_.clear();
    policy_.reset();
    wish_.reset();
    moves_.clear();
    groups_.clear();
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

void GroupView::TakeGroup(const GroupConfig& config, int64_t mod_revision) {
  if (!state_ || static_cast<uint64_t>(mod_revision) > state_->now.revision) {
    state_ = StateOf(config, mod_revision);
  }
}

GroupTerms GroupView::terms() const {
  GroupTerms terms = state_->terms;
  if (policy_) terms.on_full = policy_->on_full;
  return terms;
}

const GroupView::Node* GroupView::FindNode(std::string_view name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : &found->second;
}

// versions/N and disks/N may be those of an earlier process.
std::optional<NodeSeen> GroupView::SeenOf(std::string_view name) const {
  const Node* const node = FindNode(name);
  if (node == nullptr || node->info.incarnation == 0) return std::nullopt;
  NodeSeen seen = {.incarnation = node->info.incarnation, .applied = node->info.applied};
  const auto version = versions_.find(name);
  if (version != versions_.end() && version->second.incarnation == seen.incarnation) {
    seen.stream_version = static_cast<uint16_t>(std::min(version->second.stream, kStreamMost));
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
    if (config.ok()) TakeConfig(*std::move(config), item.mod_revision);
  } else if (key->kind == kGroup) {
    const auto group = DecodeGroupConfig(item.value);
    read = group.status();
    if (group.ok()) groups_[key->name] = *group;
    if (group.ok() && key->name == group_) TakeGroup(*group, item.mod_revision);
  } else if (key->kind == kNode) {
    const auto node = DecodeNodeInfo(item.value);
    read = node.status();
    // Kept, if it cannot be read: its revision is what an announcement compares with.
    nodes_[key->name] = {.info = node.value_or(NodeInfo{}), .mod_revision = item.mod_revision};
  } else if (key->kind == kVersion) {
    const auto version = DecodeNodeVersion(item.value);
    read = version.status();
    if (version.ok()) versions_[key->name] = *version;
  } else if (key->kind == kDisk) {
    const auto disk = DecodeNodeDisk(item.value);
    read = disk.status();
    if (disk.ok()) disks_[key->name] = *disk;
  } else if (key->kind == kPolicy && key->name == group_) {
    const auto policy = DecodeGroupPolicy(item.value);
    read = policy.status();
    if (policy.ok()) policy_ = *policy;
  } else if (key->kind == kWish && key->name == group_) {
    const auto wish = DecodeGroupWish(item.value);
    read = wish.status();
    wish_.reset();
    if (wish.ok()) wish_ = {.handover = wish->handover, .mod_revision = item.mod_revision};
  } else if (key->kind == kMove) {
    const auto move = DecodeMoveInfo(item.value);
    read = move.status();
    moves_.erase(key->partition);
    if (move.ok()) {
      moves_[key->partition] = {
          .to = move->to, .stop = move->stop, .mod_revision = item.mod_revision};
    }
  }
  if (!read.ok()) LOG(ERROR) << In(item.key, read).message();
}

// A group that is not in the map any more has nothing.
void GroupView::TakeConfig(ClusterConfig taken, int64_t mod_revision) {
  if (mod_revision <= map_.mod_revision) return;
  map_ = {.config = std::move(taken), .mod_revision = mod_revision};
  const ClusterConfig& config = map_.config;
  partitions_ = {.revision = config.revision, .alone = config.groups.size() == 1};
  const auto found = std::ranges::find(config.groups, group_);
  if (found == config.groups.end()) return;
  const auto place = found - config.groups.begin();
  if (config.revision > 0) partitions_.lost = config.lost[place];
  for (uint32_t i = 0; i < kPartitions; ++i) {
    partitions_.served[i] = config.partitions[i] == place;
  }
  for (const uint16_t partition : config.closed) partitions_.served[partition] = false;
  partitions_.changed = config.changed;
}

bool GroupView::TakeMap(const std::vector<EtcdKeyValue>& items) {
  const auto item = std::ranges::find(items, ConfigKey(cluster_), &EtcdKeyValue::key);
  if (item == items.end()) return false;
  auto config = DecodeClusterConfig(item->value);
  if (!config.ok()) return false;
  TakeConfig(*std::move(config), item->mod_revision);
  return true;
}

void GroupView::Forget(std::string_view key_text) {
  const auto key = ParseClusterKey(cluster_, key_text);
  if (!key) return;
  if (key->kind == kNode) nodes_.erase(key->name);
  if (key->kind == kVersion) versions_.erase(key->name);
  if (key->kind == kDisk) disks_.erase(key->name);
  if (key->kind == kPolicy && key->name == group_) policy_.reset();
  if (key->kind == kWish && key->name == group_) wish_.reset();
  if (key->kind == kMove) moves_.erase(key->partition);
  if (key->kind == kGroup && key->name != group_) groups_.erase(key->name);
  if (key->kind == kGroup && key->name == group_) {
    LOG(ERROR) << std::string(key_text) << " is gone from etcd. The group goes on as it was";
  }
}

}  // namespace gannet
