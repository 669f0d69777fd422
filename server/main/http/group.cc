// What a member of a group shows of itself.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "server/main/http/group_metrics.h"
#include "server/main/http/server_view.h"

namespace gannet {

using prometheus::MetricType;

std::string WhyMemberIsNotReady(const Member::Seen& member) {
  const auto why = [&member](const char* what) {
    return absl::StrCat(member.node, " ", what, ", in epoch ", member.epoch);
  };
  switch (member.role) {
    case Member::Role::kJoining:
      return why("joins its group and does not have all items yet");
    case Member::Role::kBackup:
      break;
    case Member::Role::kPrimary:
      if (!member.open) return why("is primary and does not take clients yet");
      if (member.as_primary.lease_left_ns > 0) break;
      return why("is primary without a lease: its backups do not answer");
    case Member::Role::kEnded:
      return why("left its group's places to others and starts again");
  }
  if (member.not_announced.empty()) return "";
  return absl::StrCat(why("serves, but nobody could take over, as etcd takes nothing"), ": ",
                      member.not_announced);
}

namespace {

using SeenBackup = Primary::Seen::Backup;

// Families whose values all have the labels of their member.
class GroupFamilies {
 public:
  GroupFamilies(MetricFamilies::Labels labels, MetricFamilies* to)
      : labels_(std::move(labels)), to_(to) {}

  template <class Number>
  void Gauge(const char* name, const char* help, Number value) {
    Begin(MetricType::Gauge, name, help);
    Add({}, value);
  }
  template <class Number>
  void Counter(const char* name, const char* help, Number value) {
    Begin(MetricType::Counter, name, help);
    Add({}, value);
  }
  void Begin(MetricType type, const char* name, const char* help) { to_->Begin(type, name, help); }
  template <class Number>
  void Add(const MetricFamilies::Labels& more, Number value) {
    MetricFamilies::Labels labels = labels_;
    labels.insert(labels.end(), more.begin(), more.end());
    to_->Add(std::move(labels), value);
  }

 private:
  const MetricFamilies::Labels labels_;
  MetricFamilies* const to_;
};

void AddBackups(const std::vector<SeenBackup>& backups, GroupFamilies* to) {
  const auto add = [&](const char* name, const char* help, auto value) {
    to->Begin(MetricType::Gauge, name, help);
    for (const SeenBackup& backup : backups) {
      to->Add({{"backup", backup.node}}, static_cast<double>(value(backup)));
    }
  };
  add("gannet_group_backup_linked", "1: the member has a link to this primary. 0: it is not there.",
      [](const SeenBackup& backup) { return backup.linked ? 1 : 0; });
  add("gannet_group_backup_rail", "By which of this server's rails its link goes, from 0.",
      [](const SeenBackup& backup) { return backup.rail; });
  add("gannet_group_backup_in_sync", "1: the backup has all that is committed, and may take over.",
      [](const SeenBackup& backup) { return backup.in_sync ? 1 : 0; });
  add("gannet_group_backup_heard", "1: the backup answered a beacon of late.",
      [](const SeenBackup& backup) { return backup.heard ? 1 : 0; });
  add("gannet_group_backup_lag_bytes", "Bytes of the ring that the backup has not applied.",
      [](const SeenBackup& backup) { return backup.behind_bytes; });
}

// For a primary to whose group partitions come.
void AddMoves(const MoveProgress& it, GroupFamilies* to) {
  to->Gauge("gannet_move_partitions_wanted", "Partitions that are to come to this group.",
            it.wanted);
  to->Counter("gannet_move_partitions_total", "Partitions that have come to this group.", it.moved);
  to->Gauge("gannet_move_items", "Changes taken of the partitions that come now.", it.items);
  to->Gauge("gannet_move_bytes", "Bytes of keys and values in these changes.", it.bytes);
  to->Gauge("gannet_move_walked_ratio", "The share of the giver's memory that was walked through.",
            it.walked);
}

void AddPrimary(const Member::Seen& it, GroupFamilies* to) {
  const Primary::Seen& primary = it.as_primary;
  const std::vector<SeenBackup> backups = AllBackups(it);
  to->Gauge("gannet_group_end_lsn", "Where the stream of changes ends.", primary.end);
  to->Gauge("gannet_group_committed_lsn", "Where the records end that all in sync have.",
            primary.committed);
  to->Gauge("gannet_group_lease_seconds", "What is left of the primary's lease.",
            static_cast<double>(primary.lease_left_ns) / 1e9);
  to->Gauge("gannet_group_waiting_bytes", "Bytes of changes that found no room in the ring yet.",
            primary.waiting_bytes);
  to->Counter("gannet_group_links_broken_total", "Links to backups that broke.",
              primary.links_broken);
  to->Counter("gannet_group_backups_removed_total", "Backups that left those in sync.",
              primary.removed);
  to->Gauge("gannet_group_stream_version", "The version of the stream, which all members speak.",
            primary.stream_version);
  to->Gauge("gannet_group_members_in_sync", "Members that are in sync, the primary among them.",
            1 + std::ranges::count_if(backups, &SeenBackup::in_sync));
  AddBackups(backups, to);
  AddMoves(it.moves.value_or(MoveProgress()), to);
}

}  // namespace

std::vector<Primary::Seen::Backup> AllBackups(const Member::Seen& it) {
  std::vector<SeenBackup> all = it.as_primary.backups;
  for (const std::string& node : it.members) {
    if (node != it.node && std::ranges::find(all, node, &SeenBackup::node) == all.end()) {
      all.push_back({.node = node});
    }
  }
  return all;
}

MetricFamilies::Labels GroupLabels(const ServerView& view) {
  if (!view.group) return {};
  return {{"cluster", view.cluster}, {"group", view.group_name}, {"member", view.group->node}};
}

void AddGroup(const ServerView& view, MetricFamilies* families) {
  GANNET_CHECK(view.group.has_value(), "the server is in no group");
  const Member::Seen& it = *view.group;
  GroupFamilies to(GroupLabels(view), families);
  to.Begin(MetricType::Gauge, "gannet_group_role", "1 for the role of this member in its group.");
  for (const auto role : {Member::Role::kJoining, Member::Role::kBackup, Member::Role::kPrimary,
                          Member::Role::kEnded}) {
    to.Add({{"role", std::string(NameOf(role))}}, role == it.role ? 1 : 0);
  }
  to.Gauge("gannet_group_etcd_refuses",
           "1: etcd has not taken what this member tells it for a while, so nobody can take over.",
           it.not_announced.empty() ? 0 : 1);
  to.Gauge("gannet_group_epoch", "Number of the group's primary, from 1: each takeover adds one.",
           it.epoch);
  to.Gauge("gannet_group_members", "Members that the group has, whether they run or not.",
           it.members.size());
  if (it.role == Member::Role::kPrimary) return AddPrimary(it, &to);
  to.Gauge("gannet_group_applied_lsn", "Where the records end that this member has applied.",
           it.applied);
  to.Gauge("gannet_group_joined_ratio",
           "How much of the group's items a joining member has copied.",
           it.role == Member::Role::kJoining ? it.joined_percent / 100.0 : 1.0);
}

}  // namespace gannet
