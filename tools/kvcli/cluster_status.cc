#include "tools/kvcli/cluster_status.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/cluster/group_policy.h"
#include "common/protocol/versions.h"
#include "tools/kvcli/cluster_health.h"
#include "tools/kvcli/cluster_moves.h"

namespace gannet::kvcli {
namespace {

bool IsInSync(const GroupConfig& config, const std::string& node) {
  return std::ranges::find(config.in_sync, node, &GroupMember::node) != config.in_sync.end();
}

// Returns the last epoch in which a process that was primary with --sync=always took clients, and
// whose disk the node's newest process has found, in the group's present history; 0: none.
uint64_t OpenedBy(const ClusterState& state, const GroupConfig& config, const std::string& node) {
  const auto info = state.nodes.find(node);
  const auto disk = state.disks.find(node);
  if (info == state.nodes.end() || disk == state.disks.end()) return 0;
  const bool newest = disk->second.incarnation == info->second.incarnation;
  if (!newest || InfoInSync(state, config, node) != nullptr) return 0;
  return disk->second.history == config.history ? disk->second.opened : 0;
}

// Returns the version of the stream that all in sync speak. The primary uses that.
uint32_t StreamOf(const ClusterState& state, const GroupConfig& config) {
  uint32_t stream = kStreamVersions.max;
  for (const GroupMember& member : config.in_sync) {
    const auto version = state.versions.find(member.node);
    const bool known =
        version != state.versions.end() && version->second.incarnation == member.incarnation;
    stream = std::min(stream, known ? version->second.stream : 0);
  }
  return stream;
}

// What `status` shows of a member.
struct MemberView {
  std::string name;
  std::string role;  // in etcd
  MemberState state = MemberState::kUnknown;
  MemberAnswer answer;
  std::optional<std::string> address;
  std::optional<uint64_t> applied;
  std::vector<std::string> rails;  // of a process that has several
  std::optional<uint64_t> lag_bytes;
  std::optional<uint64_t> kept;
  std::optional<uint64_t> opened;
};

// Returns what a member in sync has applied, by its answer or by what it announced.
std::optional<uint64_t> AppliedBy(const ClusterState& state, const GroupConfig& config,
                                  const std::string& node) {
  const auto answer = state.answers.find(node);
  const bool told =
      answer != state.answers.end() && answer->second.kind == MemberAnswer::Kind::kTold;
  if (told && StateOf(state, config, node) == MemberState::kInSync) {
    return answer->second.standing.applied;
  }
  const NodeInfo* info = InfoInSync(state, config, node);
  return info != nullptr ? std::optional(info->applied) : std::nullopt;
}

MemberView ViewOf(const ClusterState& state, const GroupConfig& config, const std::string& node) {
  MemberView view = {.name = node};
  const bool primary = config.epoch > 0 && config.primary.node == node;
  view.role = primary ? "primary" : IsInSync(config, node) ? "backup" : "out";
  view.state = StateOf(state, config, node);
  if (const auto it = state.answers.find(node); it != state.answers.end()) view.answer = it->second;
  if (const auto info = state.nodes.find(node); info != state.nodes.end()) {
    view.address = info->second.address;
    const auto rails = state.rails.find(node);
    if (rails != state.rails.end() && rails->second.incarnation == info->second.incarnation) {
      view.rails = rails->second.rails;
    }
  }
  view.applied = AppliedBy(state, config, node);
  if (const uint64_t kept = KeptBy(state, config, node)) view.kept = kept;
  if (const uint64_t opened = OpenedBy(state, config, node)) view.opened = opened;
  const std::optional<uint64_t> leader = AppliedBy(state, config, config.primary.node);
  // What the primary said may be older than what the backup said. Then nothing is known.
  if (view.applied && leader && *leader >= *view.applied) view.lag_bytes = *leader - *view.applied;
  return view;
}

// What there is to say of a member behind its address.
std::string DetailsOf(const MemberView& view) {
  std::vector<std::string> details;
  const bool in_sync = view.state == MemberState::kInSync || view.state == MemberState::kUnknown;
  if (!in_sync && view.role != "out") details.push_back(absl::StrCat(view.role, " in etcd"));
  if (view.state == MemberState::kJoining) {
    details.push_back(absl::StrCat(view.answer.standing.joined_percent, " % copied"));
  }
  if (view.applied) {
    details.push_back(absl::StrCat(in_sync ? "applied " : "had applied ", *view.applied));
  }
  if (view.kept) details.push_back(absl::StrCat("not in sync, kept ", *view.kept));
  if (view.opened) details.push_back(absl::StrCat("opened epoch ", *view.opened));
  if (view.lag_bytes && in_sync && view.role == "backup") {
    details.push_back(absl::StrCat(*view.lag_bytes, " bytes behind"));
  }
  if (view.answer.kind == MemberAnswer::Kind::kTold) {
    details.push_back(absl::StrCat("up ", TimeText(view.answer.standing.uptime_s)));
  } else if (view.answer.kind != MemberAnswer::Kind::kNotAsked) {
    details.push_back(view.answer.why);
  }
  return absl::StrJoin(details, ", ");
}

// Returns why members were not asked; "": they were, or nobody wanted that.
std::string WhyNotAsked(const ClusterState& state) {
  for (const auto& [node, answer] : state.answers) {
    if (answer.kind == MemberAnswer::Kind::kNotAsked) return answer.why;
  }
  return "";
}

// The lines about what a group's members do alike.
std::string TermsOf(const ClusterState& state, const std::string& group,
                    const GroupConfig& config) {
  const GroupPolicy policy = PolicyIn(state, group);
  std::string text = absl::StrCat("  writes need ", config.min_copies, " in sync");
  std::string_view before = "; all members: ";
  for (const PolicySetting& setting : PolicySettings()) {
    const auto value = policy.Find(setting.name);
    if (!value) continue;
    absl::StrAppend(&text, std::string(std::exchange(before, " ")), setting.name, "=", *value);
  }
  // Such a group was made by a version that did not set it.
  for (const auto& [name, value] : DefaultGroupPolicy().settings) {
    if (policy.Find(name)) continue;
    absl::StrAppend(&text, "; ", name, " as each member's own flag says (kvcli cluster set ", group,
                    " ", name, "=", FindPolicySetting(name)->Usage(), ")");
  }
  text += "\n";
  for (const std::string& unknown : policy.Unknown()) {
    absl::StrAppend(&text, "  set, but not known to this version: ", unknown, "\n");
  }
  return text;
}

size_t PartitionsOf(const ClusterConfig& map, const std::string& group) {
  const auto place = std::ranges::find(map.groups, group) - map.groups.begin();
  return static_cast<size_t>(std::ranges::count(map.partitions, place));
}

// The first line about a group.
std::string HeadOf(const ClusterState& state, const std::string& name, const GroupConfig& config,
                   Health health) {
  const auto counts = [&](const GroupMember& member) {
    const MemberState is = StateOf(state, config, member.node);
    return is == MemberState::kInSync || is == MemberState::kUnknown;
  };
  const bool bad = !state.answers.empty() && health > Health::kUnknown;
  std::string text = absl::StrFormat(
      "group %s: %sepoch %u, primary %s, %u of %u in sync, lease %u ms", name,
      bad ? absl::StrCat(std::string(NameOf(health)), ", ") : "", config.epoch,
      config.epoch > 0 ? config.primary.node : "none",
      std::ranges::count_if(config.in_sync, counts), config.members.size(), config.lease_ms);
  if (!config.in_sync.empty() && StreamOf(state, config) < kStreamVersions.max) {
    absl::StrAppend(&text, ", stream version ", StreamOf(state, config), " of ",
                    kStreamVersions.max);
  }
  if (state.map.groups.size() > 1) {
    absl::StrAppend(&text, ", ", PartitionsOf(state.map, name), " partitions");
  }
  return text + "\n";
}

// Groups of the map whose entry etcd has lost.
std::vector<std::string> LostGroups(const ClusterState& state) {
  std::vector<std::string> lost;
  std::ranges::copy_if(state.map.groups, std::back_inserter(lost),
                       [&](const std::string& name) { return !state.groups.contains(name); });
  return lost;
}

// Nodes that are members of no group that etcd knows of.
std::vector<std::string> StrayNodes(const ClusterState& state) {
  std::vector<std::string> strays;
  for (const auto& [node, info] : state.nodes) {
    const auto has = [&, &name = node](const auto& it) {
      return std::ranges::find(it.second.config.members, name) != it.second.config.members.end();
    };
    if (std::ranges::none_of(state.groups, has)) strays.push_back(node);
  }
  return strays;
}

template <class Value>
Json OrNull(const Value& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Adds each setting; null: each member does what its own flag says.
void AddPolicy(const GroupPolicy& policy, Json* group) {
  for (const PolicySetting& setting : PolicySettings()) {
    const auto value = policy.Find(setting.name);
    const Json number_or_bool = Json::parse(value.value_or("null"), nullptr, false);
    (*group)[setting.name] = number_or_bool.is_discarded() ? Json(*value) : number_or_bool;
  }
  (*group)["unknown_settings"] = policy.Unknown();
}

Json MemberJson(const ClusterState& state, const GroupConfig& config, const std::string& node) {
  const MemberView view = ViewOf(state, config, node);
  const bool told = view.answer.kind == MemberAnswer::Kind::kTold;
  const bool says_why = !told && view.answer.kind != MemberAnswer::Kind::kNotAsked;
  const MemberStanding& standing = view.answer.standing;
  return {{"name", view.name},
          {"role", view.role},
          {"state", NameOf(view.state)},
          {"address", OrNull(view.address)},
          {"rails", view.rails},
          {"applied", OrNull(view.applied)},
          {"lag_bytes", OrNull(view.lag_bytes)},
          {"kept", OrNull(view.kept)},
          {"opened", OrNull(view.opened)},
          {"joined_percent",
           view.state == MemberState::kJoining ? Json(standing.joined_percent) : Json(nullptr)},
          {"uptime_s", told ? Json(standing.uptime_s) : Json(nullptr)},
          {"why", says_why ? Json(view.answer.why) : Json(nullptr)}};
}

Json MembersJson(const ClusterState& state, const GroupConfig& config,
                 const std::vector<std::string>& nodes) {
  Json members = Json::array();
  for (const std::string& node : nodes) members.push_back(MemberJson(state, config, node));
  return members;
}

}  // namespace

std::string StatusText(const ClusterState& state) {
  std::string text;
  const auto add_member = [&](const GroupConfig& config, const std::string& node) {
    const MemberView view = ViewOf(state, config, node);
    const bool as_etcd_says = view.state == MemberState::kInSync ||
                              view.state == MemberState::kUnknown ||
                              view.state == MemberState::kAbsent;
    absl::StrAppendFormat(&text, "  %-12s %-8s %-22s", view.name,
                          as_etcd_says ? view.role : std::string(NameOf(view.state)),
                          view.address.value_or("-"));
    std::string details = DetailsOf(view);
    if (!view.rails.empty()) {
      absl::StrAppend(&details, details.empty() ? "" : ", ", "rails ",
                      absl::StrJoin(view.rails, " "));
    }
    absl::StrAppend(&text, details.empty() ? "" : " ", details, "\n");
  };
  const auto add_problems = [&](const GroupHealth& health) {
    if (state.answers.empty() && health.health < Health::kDown) return;
    for (const std::string& it : health.problems) absl::StrAppend(&text, "  ! ", it, "\n");
  };
  for (const auto& [name, group] : state.groups) {
    const GroupHealth health = HealthOf(state, name);
    absl::StrAppend(&text, HeadOf(state, name, group.config, health.health),
                    TermsOf(state, name, group.config));
    for (const std::string& node : group.config.members) add_member(group.config, node);
    add_problems(health);
    if (const auto wish = state.wishes.find(name);
        wish != state.wishes.end() && !wish->second.wish.handover.empty()) {
      absl::StrAppendFormat(&text, "  wanted: hand over to %s\n", wish->second.wish.handover);
    }
  }
  for (const std::string& name : LostGroups(state)) {
    absl::StrAppend(&text, "group ", name, ": down\n");
    add_problems(HealthOf(state, name));
  }
  if (const auto strays = StrayNodes(state); !strays.empty()) {
    absl::StrAppend(&text, "in no group that etcd has:\n");
    for (const std::string& node : strays) add_member({}, node);
  }
  if (!state.moves.empty()) text += MovesText(state);
  if (const std::string why = WhyNotAsked(state); !why.empty()) {
    absl::StrAppend(&text, "members were not asked, so this is what etcd has: ", why, "\n");
  }
  return text;
}

Json StatusJson(const ClusterState& state) {
  Json groups = Json::array();
  for (const auto& [name, group] : state.groups) {
    const GroupConfig& config = group.config;
    Json in_sync = Json::array();
    for (const GroupMember& member : config.in_sync) in_sync.push_back(member.node);
    const GroupHealth health = HealthOf(state, name);
    const auto wish = state.wishes.find(name);
    groups.push_back({{"name", name},
                      {"health", NameOf(health.health)},
                      {"problems", health.problems},
                      {"epoch", config.epoch},
                      {"primary", config.epoch > 0 ? Json(config.primary.node) : Json(nullptr)},
                      {"in_sync", in_sync},
                      {"members", MembersJson(state, config, config.members)},
                      {"lease_ms", config.lease_ms},
                      {"min_copies", config.min_copies},
                      {"stream", StreamOf(state, config)},
                      {"partitions", PartitionsOf(state.map, name)},
                      {"handover", wish != state.wishes.end() ? Json(wish->second.wish.handover)
                                                              : Json(nullptr)}});
    AddPolicy(PolicyIn(state, name), &groups.back());
  }
  for (const std::string& name : LostGroups(state)) {
    const GroupHealth health = HealthOf(state, name);
    groups.push_back({{"name", name},
                      {"health", NameOf(health.health)},
                      {"problems", health.problems},
                      {"epoch", nullptr},
                      {"primary", nullptr},
                      {"in_sync", Json::array()},
                      {"members", Json::array()},
                      {"partitions", PartitionsOf(state.map, name)}});
  }
  return {{"cluster", state.name},
          {"health", NameOf(HealthOf(state))},
          {"groups", groups},
          {"others", MembersJson(state, {}, StrayNodes(state))},
          {"moves", MovesJson(state)}};
}

}  // namespace gannet::kvcli
