#include "common/cluster/cluster_config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_keys.h"
#include "common/cluster/json_fields.h"
#include "common/protocol/rails_reply.h"
#include "common/protocol/replica.h"

namespace gannet {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr size_t kAddressBytesMax = 256;
constexpr uint32_t kClusterFormatUnchanged = 1;
constexpr uint32_t kNodeVersionFormat = 1;
constexpr uint32_t kNodeRailsFormat = 1;
constexpr uint32_t kNodeDiskFormat = 1;
constexpr uint32_t kMoveFormat = 1;
constexpr size_t kTextBytesMax = 128;

absl::Status Wrong(std::string_view what) { return absl::InvalidArgumentError(std::string(what)); }

bool IsAddress(std::string_view text) {
  const auto printable = [](char c) { return c > ' ' && c < 0x7f; };
  return !text.empty() && text.size() <= kAddressBytesMax && std::ranges::all_of(text, printable);
}

OrderedJson ToJson(const GroupMember& member) {
  return {{"node", member.node}, {"incarnation", HexOf(member.incarnation)}};
}

GroupMember MemberOf(const Json& json, JsonFields* owner) {
  JsonFields fields(json, "member");
  GroupMember member = {.node = fields.Text("node"), .incarnation = fields.Hex("incarnation")};
  if (const absl::Status status = fields.Finish(); !status.ok()) {
    owner->Fail(std::string(status.message()));
  }
  return member;
}

// Fit for a terminal, and short.
bool IsText(std::string_view text) {
  return text.size() <= kTextBytesMax &&
         std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 0x7f; });
}

// Takes the format, and returns an error if this version of Gannet does not know it.
absl::Status TakeFormat(JsonFields* fields, std::string_view of_what, uint32_t newest,
                        uint32_t* format) {
  *format = fields->Number32("format");
  if (*format == 0) fields->Fail("no format");
  if (*format <= newest) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat(std::string(of_what), ": format ", *format,
                   " is newer than this version of Gannet, which knows ", newest, ". Update it"));
}

bool IsIn(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

absl::Status CheckInSync(const GroupConfig& group) {
  absl::flat_hash_set<std::string> nodes;
  for (const GroupMember& member : group.in_sync) {
    if (!IsIn(group.members, member.node)) return Wrong("group: in sync is who is no member");
    if (!nodes.insert(member.node).second) return Wrong("group: a node is in sync twice");
    if (member.incarnation == 0) return Wrong("group: a member without an incarnation");
  }
  const bool primary_in_sync =
      std::ranges::find(group.in_sync, group.primary) != group.in_sync.end();
  if (group.epoch > 0 && !primary_in_sync) return Wrong("group: the primary is not in sync");
  if (group.epoch == 0 && (!group.in_sync.empty() || group.primary != GroupMember{})) {
    return Wrong("group: a primary, or who is in sync, before the first epoch");
  }
  return absl::OkStatus();
}

bool AreUpTo(const std::vector<uint64_t>& revisions, uint64_t most) {
  return std::ranges::all_of(revisions, [&](uint64_t it) { return it <= most; });
}

absl::Status CheckChanges(const ClusterConfig& config) {
  if (config.revision == 0) {
    const bool none = config.changed.empty() && config.closed.empty() && config.lost.empty();
    return none ? absl::OkStatus() : Wrong("config: changes before the first revision");
  }
  if (config.revision > kJsonNumberMax) return Wrong("config: revision is too large");
  if (config.changed.size() != kPartitions || config.lost.size() != config.groups.size()) {
    return Wrong("config: changes of another number of partitions or groups");
  }
  if (!AreUpTo(config.changed, config.revision) || !AreUpTo(config.lost, config.revision)) {
    return Wrong("config: a change after the last revision");
  }
  for (size_t i = 0; i < config.closed.size(); ++i) {
    const bool ascending = i == 0 || config.closed[i - 1] < config.closed[i];
    if (!ascending || config.closed[i] >= kPartitions) return Wrong("config: closed is no list");
    const uint64_t changed = config.changed[config.closed[i]];
    if (changed == 0 || config.lost[config.partitions[config.closed[i]]] < changed) {
      return Wrong("config: a partition that was never closed is");
    }
  }
  return absl::OkStatus();
}

// Takes numbers that are smaller than `end`.
template <class Number>
std::vector<Number> TakeNumbers(JsonFields* fields, const char* name, size_t size_max,
                                uint64_t end) {
  std::vector<Number> numbers;
  for (const Json& json : fields->Array(name, size_max)) {
    const bool fits = json.is_number_unsigned() && json.get<uint64_t>() < end;
    if (!fits) fields->Fail(absl::StrCat(name, " has what is no number, or is too large"));
    numbers.push_back(fits ? json.get<Number>() : 0);
  }
  return numbers;
}

}  // namespace

absl::Status Check(const ClusterConfig& config) {
  if (config.groups.empty() || config.groups.size() > kGroupsMax) {
    return Wrong(absl::StrCat("config: a cluster has 1 to ", kGroupsMax, " groups"));
  }
  for (size_t i = 0; i < config.groups.size(); ++i) {
    if (!IsClusterName(config.groups[i])) return Wrong("config: " + WhatNamesAre("group"));
    if (i > 0 && config.groups[i - 1] >= config.groups[i]) {
      return Wrong("config: groups are not in order, or two have one name");
    }
  }
  if (config.partitions.size() != kPartitions) {
    return Wrong(absl::StrCat("config: there are not ", kPartitions, " partitions"));
  }
  for (const uint16_t group : config.partitions) {
    if (group >= config.groups.size()) return Wrong("config: a partition of a group that is none");
  }
  return CheckChanges(config);
}

absl::Status Check(const GroupConfig& group) {
  if (group.history == 0) return Wrong("group: no history");
  if (group.epoch > kJsonNumberMax) return Wrong("group: epoch is too large");
  if (group.members.empty() || group.members.size() > kMembersMax) {
    return Wrong(absl::StrCat("group: a group has 1 to ", kMembersMax, " members"));
  }
  absl::flat_hash_set<std::string> nodes;
  for (const std::string& node : group.members) {
    if (!IsClusterName(node)) return Wrong("group: " + WhatNamesAre("node"));
    if (!nodes.insert(node).second) return Wrong("group: a node is a member twice");
  }
  if (group.lease_ms < kPrimaryLeaseMsMin || group.lease_ms > kPrimaryLeaseMsMax) {
    return Wrong(
        absl::StrCat("group: lease_ms is not ", kPrimaryLeaseMsMin, " to ", kPrimaryLeaseMsMax));
  }
  if (group.min_copies == 0 || group.min_copies > group.members.size()) {
    return Wrong("group: min_copies is not between 1 and the number of members");
  }
  if (group.ring_bytes < kRingBytesMin || group.ring_bytes > kRingBytesMax ||
      group.ring_bytes % kRingAlignment != 0) {
    return Wrong(absl::StrCat("group: ring_bytes is no multiple of ", kRingAlignment, " from ",
                              kRingBytesMin, " to ", kRingBytesMax));
  }
  return CheckInSync(group);
}

absl::Status Check(const NodeInfo& node) {
  if (node.incarnation == 0) return Wrong("node: no incarnation");
  if (node.applied > kJsonNumberMax) return Wrong("node: applied is too large");
  return IsAddress(node.address) ? absl::OkStatus() : Wrong("node: no address");
}

absl::Status Check(const NodeRails& rails) {
  if (rails.incarnation == 0) return Wrong("rails: no incarnation");
  if (rails.rails.size() < 2 || rails.rails.size() > kRailsMax) {
    return Wrong(absl::StrCat("rails: not 2 to ", kRailsMax, " of them"));
  }
  return std::ranges::all_of(rails.rails, IsAddress) ? absl::OkStatus()
                                                     : Wrong("rails: no address");
}

absl::Status Check(const GroupWish& wish) {
  return IsClusterName(wish.handover) ? absl::OkStatus() : Wrong("wish: " + WhatNamesAre("node"));
}

absl::Status Check(const NodeVersion& version) {
  if (version.incarnation == 0) return Wrong("version: no incarnation");
  if (version.version.empty() || !IsText(version.version)) return Wrong("version: no version");
  return absl::OkStatus();
}

absl::Status Check(const NodeDisk& disk) {
  if (disk.incarnation == 0 || disk.run == 0) return Wrong("disk: no incarnation");
  return disk.history != 0 ? absl::OkStatus() : Wrong("disk: no history");
}

absl::Status Check(const MoveInfo& move) {
  if (!IsClusterName(move.to)) return Wrong("move: " + WhatNamesAre("group"));
  return IsText(move.asked) ? absl::OkStatus() : Wrong("move: asked is no short text");
}

std::string Encode(const ClusterConfig& config) {
  GANNET_CHECK(Check(config).ok(), "a configuration that is none");
  OrderedJson json{{"format", config.revision == 0 ? kClusterFormatUnchanged : kClusterFormat},
                   {"groups", config.groups},
                   {"partitions", config.partitions}};
  if (config.revision > 0) {
    json["revision"] = config.revision;
    json["changed"] = config.changed;
    json["closed"] = config.closed;
    json["lost"] = config.lost;
  }
  return json.dump();
}

std::string Encode(const GroupConfig& group) {
  GANNET_CHECK(Check(group).ok(), "a group that is none");
  OrderedJson in_sync = OrderedJson::array();
  for (const GroupMember& member : group.in_sync) in_sync.push_back(ToJson(member));
  return OrderedJson{{"history", HexOf(group.history)},
                     {"epoch", group.epoch},
                     {"primary", group.epoch > 0 ? ToJson(group.primary) : OrderedJson(nullptr)},
                     {"in_sync", in_sync},
                     {"members", group.members},
                     {"lease_ms", group.lease_ms},
                     {"min_copies", group.min_copies},
                     {"ring_bytes", group.ring_bytes}}
      .dump();
}

std::string Encode(const NodeInfo& node) {
  GANNET_CHECK(Check(node).ok(), "a node that is none");
  return OrderedJson{{"incarnation", HexOf(node.incarnation)},
                     {"address", node.address},
                     {"applied", node.applied}}
      .dump();
}

std::string BeginningOf(const NodeInfo& node) {
  std::string beginning = OrderedJson{{"incarnation", HexOf(node.incarnation)}}.dump();
  beginning.pop_back();  // the object's end
  return beginning;
}

std::string Encode(const GroupWish& wish) {
  GANNET_CHECK(Check(wish).ok(), "a wish that is none");
  return OrderedJson{{"handover", wish.handover}}.dump();
}

std::string Encode(const NodeVersion& version) {
  GANNET_CHECK(Check(version).ok(), "a version that is none");
  return OrderedJson{{"format", kNodeVersionFormat},
                     {"incarnation", HexOf(version.incarnation)},
                     {"version", version.version},
                     {"moves", version.moves},
                     {"stream", version.stream}}
      .dump();
}

std::string Encode(const NodeRails& rails) {
  GANNET_CHECK(Check(rails).ok(), "rails that are none");
  return OrderedJson{{"format", kNodeRailsFormat},
                     {"incarnation", HexOf(rails.incarnation)},
                     {"rails", rails.rails}}
      .dump();
}

std::string Encode(const NodeDisk& disk) {
  GANNET_CHECK(Check(disk).ok(), "a disk that is none");
  return OrderedJson{{"format", kNodeDiskFormat}, {"incarnation", HexOf(disk.incarnation)},
                     {"run", HexOf(disk.run)},    {"history", HexOf(disk.history)},
                     {"applied", disk.applied},   {"always", disk.always},
                     {"opened", disk.opened}}
      .dump();
}

std::string Encode(const MoveInfo& move) {
  GANNET_CHECK(Check(move).ok(), "a move that is none");
  return OrderedJson{
      {"format", kMoveFormat}, {"to", move.to}, {"asked", move.asked}, {"stop", move.stop}}
      .dump();
}

absl::StatusOr<ClusterConfig> DecodeClusterConfig(std::string_view text) {
  JsonFields fields(text, "config");
  uint32_t format = 0;
  GANNET_RETURN_IF_ERROR(TakeFormat(&fields, "config", kClusterFormat, &format));
  ClusterConfig config;
  for (Json& group : fields.Array("groups", kGroupsMax)) {
    if (!group.is_string()) fields.Fail("a group that is no name");
    config.groups.push_back(group.is_string() ? group.get<std::string>() : "");
  }
  config.partitions = TakeNumbers<uint16_t>(&fields, "partitions", kPartitions, kGroupsMax);
  if (format > kClusterFormatUnchanged) {
    config.revision = fields.Number("revision");
    if (config.revision == 0) fields.Fail("no revision");
    config.changed = TakeNumbers<uint64_t>(&fields, "changed", kPartitions, kJsonNumberMax);
    config.closed = TakeNumbers<uint16_t>(&fields, "closed", kPartitions, kPartitions);
    config.lost = TakeNumbers<uint64_t>(&fields, "lost", kGroupsMax, kJsonNumberMax);
  }
  GANNET_RETURN_IF_ERROR(fields.Finish());
  GANNET_RETURN_IF_ERROR(Check(config));
  return config;
}

absl::StatusOr<GroupConfig> DecodeGroupConfig(std::string_view text) {
  JsonFields fields(text, "group");
  GroupConfig group;
  group.history = fields.Hex("history");
  group.epoch = fields.Number("epoch");
  const Json primary = fields.ObjectOrNull("primary");
  if (!primary.is_null()) group.primary = MemberOf(primary, &fields);
  for (const Json& member : fields.Array("in_sync", kMembersMax)) {
    group.in_sync.push_back(MemberOf(member, &fields));
  }
  for (const Json& node : fields.Array("members", kMembersMax)) {
    if (!node.is_string()) fields.Fail("a member that is no name");
    group.members.push_back(node.is_string() ? node.get<std::string>() : "");
  }
  group.lease_ms = fields.Number32("lease_ms");
  group.min_copies = fields.Number32("min_copies");
  group.ring_bytes = fields.Number("ring_bytes");
  GANNET_RETURN_IF_ERROR(fields.Finish());
  GANNET_RETURN_IF_ERROR(Check(group));
  return group;
}

absl::StatusOr<NodeInfo> DecodeNodeInfo(std::string_view text) {
  JsonFields fields(text, "node");
  NodeInfo node = {.incarnation = fields.Hex("incarnation"),
                   .address = fields.Text("address"),
                   .applied = fields.Number("applied")};
  GANNET_RETURN_IF_ERROR(fields.Finish());
  GANNET_RETURN_IF_ERROR(Check(node));
  return node;
}

absl::StatusOr<GroupWish> DecodeGroupWish(std::string_view text) {
  JsonFields fields(text, "wish");
  GroupWish wish = {.handover = fields.Text("handover")};
  GANNET_RETURN_IF_ERROR(fields.Finish());
  GANNET_RETURN_IF_ERROR(Check(wish));
  return wish;
}

absl::StatusOr<NodeVersion> DecodeNodeVersion(std::string_view text) {
  JsonFields fields(text, "version");
  uint32_t format = 0;
  GANNET_RETURN_IF_ERROR(TakeFormat(&fields, "version", kNodeVersionFormat, &format));
  NodeVersion version = {.incarnation = fields.Hex("incarnation"),
                         .version = fields.Text("version"),
                         .moves = fields.Bool("moves"),
                         .stream = fields.Number32("stream")};
  GANNET_RETURN_IF_ERROR(fields.Finish());
  GANNET_RETURN_IF_ERROR(Check(version));
  return version;
}

absl::StatusOr<NodeRails> DecodeNodeRails(std::string_view text) {
  JsonFields fields(text, "rails");
  uint32_t format = 0;
  GANNET_RETURN_IF_ERROR(TakeFormat(&fields, "rails", kNodeRailsFormat, &format));
  NodeRails rails = {.incarnation = fields.Hex("incarnation"), .rails = {}};
  for (const Json& rail : fields.Array("rails", kRailsMax)) {
    rails.rails.push_back(rail.is_string() ? rail.get<std::string>() : "");
  }
  GANNET_RETURN_IF_ERROR(fields.Finish());
  GANNET_RETURN_IF_ERROR(Check(rails));
  return rails;
}

absl::StatusOr<NodeDisk> DecodeNodeDisk(std::string_view text) {
  JsonFields fields(text, "disk");
  uint32_t format = 0;
  GANNET_RETURN_IF_ERROR(TakeFormat(&fields, "disk", kNodeDiskFormat, &format));
  NodeDisk disk = {.incarnation = fields.Hex("incarnation"),
                   .run = fields.Hex("run"),
                   .history = fields.Hex("history"),
                   .applied = fields.Number("applied"),
                   .always = fields.Bool("always"),
                   .opened = fields.Number("opened")};
  GANNET_RETURN_IF_ERROR(fields.Finish());
  GANNET_RETURN_IF_ERROR(Check(disk));
  return disk;
}

absl::StatusOr<MoveInfo> DecodeMoveInfo(std::string_view text) {
  JsonFields fields(text, "move");
  uint32_t format = 0;
  GANNET_RETURN_IF_ERROR(TakeFormat(&fields, "move", kMoveFormat, &format));
  MoveInfo move = {
      .to = fields.Text("to"), .asked = fields.Text("asked"), .stop = fields.Bool("stop")};
  GANNET_RETURN_IF_ERROR(fields.Finish());
  GANNET_RETURN_IF_ERROR(Check(move));
  return move;
}

}  // namespace gannet
