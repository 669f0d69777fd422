// What comes of etcd: its answers, and what lies in it. And what servers tell of it.

#include <cstring>
#include <string>
#include <string_view>

#include "common/base/hash.h"
#include "common/cluster/cluster_config.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/group_policy.h"
#include "common/cluster/node_life.h"
#include "common/etcd/etcd_error.h"
#include "common/etcd/etcd_messages.h"
#include "common/protocol/partition_map.h"
#include "tests/fuzz/fuzz_targets.h"

namespace gannet::fuzz {
namespace {

void RequireItem(const EtcdKeyValue& item) {
  Require(!item.key.empty(), "an item without a key");
  Require(item.mod_revision > 0 && item.mod_revision + 1 > 0, "an item without a next revision");
}

// What was accepted is encoded, and decoded again.
template <class Config>
void RequireSame(const Config& config, const absl::StatusOr<Config>& again) {
  Require(again.ok() && *again == config, "what is not encoded so that it can be decoded");
}

}  // namespace

void EtcdAnswerBytes(std::span<const std::byte> bytes) {
  const std::string_view text = TextOf(bytes);
  if (const auto range = DecodeRangeAnswer(text); range.ok()) {
    Require(range->header.cluster_id != 0, "no cluster");
    for (const EtcdKeyValue& item : range->items) RequireItem(item);
  }
  if (const auto txn = DecodeTxnAnswer(text); txn.ok()) {
    for (const EtcdKeyValue& item : txn->current) RequireItem(item);
  }
  if (const auto watch = DecodeWatchAnswer(text); watch.ok()) {
    int64_t revision = 0;
    for (const EtcdChange& change : watch->changes) {
      RequireItem(change.item);
      Require(change.item.mod_revision >= revision, "changes out of order");
      revision = change.item.mod_revision;
    }
  }
  const absl::Status error = EtcdError(200, text);
  for (const char c : error.message()) Require(c >= 0x20 && c < 0x7f, "an unprintable error");
}

void ClusterConfigBytes(std::span<const std::byte> bytes) {
  const std::string_view text = TextOf(bytes);
  if (const auto config = DecodeClusterConfig(text); config.ok()) {
    Require(config->partitions.size() == kPartitions, "another number of partitions");
    RequireSame(*config, DecodeClusterConfig(Encode(*config)));
  }
  if (const auto group = DecodeGroupConfig(text); group.ok()) {
    Require(group->epoch == 0 || !group->in_sync.empty(), "an epoch that nobody is in sync with");
    RequireSame(*group, DecodeGroupConfig(Encode(*group)));
  }
  if (const auto wish = DecodeGroupWish(text); wish.ok()) {
    RequireSame(*wish, DecodeGroupWish(Encode(*wish)));
  }
  if (const auto node = DecodeNodeInfo(text); node.ok()) {
    RequireSame(*node, DecodeNodeInfo(Encode(*node)));
  }
  if (const auto version = DecodeNodeVersion(text); version.ok()) {
    RequireSame(*version, DecodeNodeVersion(Encode(*version)));
  }
  if (const auto rails = DecodeNodeRails(text); rails.ok()) {
    RequireSame(*rails, DecodeNodeRails(Encode(*rails)));
  }
  if (const auto disk = DecodeNodeDisk(text); disk.ok()) {
    RequireSame(*disk, DecodeNodeDisk(Encode(*disk)));
  }
  if (const auto policy = DecodeGroupPolicy(text); policy.ok()) {
    RequireSame(*policy, DecodeGroupPolicy(Encode(*policy)));
  }
  if (const auto life = DecodeNodeLife(text); life.ok()) {
    Require(life->known.epoch > 0, "items of a group that nobody has founded");
    RequireSame(*life, DecodeNodeLife(Encode(*life)));
  }
  if (const auto move = DecodeMoveInfo(text); move.ok()) {
    RequireSame(*move, DecodeMoveInfo(Encode(*move)));
  }
  if (const auto key = ParseClusterKey("c", text)) {
    using enum ClusterKey::Kind;
    Require(key->kind == kConfig || key->kind == kMove || IsClusterName(key->name), "an odd name");
    Require(key->partition < kPartitions, "no partition");
    Require(key->kind != kMove || MoveKey("c", key->partition) == text, "another key");
  }
}

// The checksum would refuse nearly all bytes, so they get the right one.
void PartitionMapBytes(std::span<const std::byte> bytes) {
  std::string text(TextOf(bytes));
  if (text.size() > sizeof(uint64_t)) {
    const uint64_t checksum =
        Xxh3Unseeded(text.data() + sizeof(checksum), text.size() - sizeof(checksum));
    std::memcpy(text.data(), &checksum, sizeof(checksum));
  }
  const auto map = DecodePartitionMap(text);
  if (!map) return;
  for (const uint16_t group : map->partitions) {
    Require(group < map->groups.size(), "a partition of a group that is none");
  }
  Require(EncodePartitionMap(*map) == text, "a map that has other bytes");
}

}  // namespace gannet::fuzz
