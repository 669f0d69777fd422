// What a member of a group shows of itself.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/http/group_metrics.h"
#include "server/http/server_view.h"

namespace gannet {

using prometheus::MetricType;

const char* GroupRoleName(Member::Role role) {
  switch (role) {
    case Member::Role::kJoining:
      return "joining";
    case Member::Role::kBackup:
      return "backup";
    case Member::Role::kPrimary:
      return "primary";
    case Member::Role::kEnded:
      break;
  }
  return "ended";
}

std::string WhyMemberIsNotReady(const Member::Seen& member) {
  const auto why = [&member](const char* what) {
    return absl::StrCat(member.node, " ", what, ", in epoch ", member.epoch);
  };
  switch (member.role) {
    case Member::Role::kJoining:
      return why("joins its group and does not have all items yet");
    case Member::Role::kBackup:
      return "";
    case Member::Role::kPrimary:
      if (member.as_primary.lease_left_ns > 0) return "";
      return why("is primary without a lease: its backups do not answer");
    case Member::Role::kEnded:
      break;
  }
  return why("left its group's places to others and starts again");
}

namespace {

using SeenBackup = Primary::Seen::Backup;

void AddBackups(const Primary::Seen& it, MetricFamilies* to) {
  const auto add = [&](const char* name, const char* help, auto value) {
    to->Begin(MetricType::Gauge, name, help);
    for (const SeenBackup& backup : it.backups) {
      to->Add({{"node", backup.node}}, static_cast<double>(value(backup)));
    }
  };
  add("gannet_group_backup_in_sync", "1: the backup has all that is committed, and may take over.",
      [](const SeenBackup& backup) { return backup.in_sync ? 1 : 0; });
  add("gannet_group_backup_heard", "1: the backup answered a beacon of late.",
      [](const SeenBackup& backup) { return backup.heard ? 1 : 0; });
  add("gannet_group_backup_lag_bytes", "Bytes of the ring that the backup has not applied.",
      [](const SeenBackup& backup) { return backup.behind_bytes; });
  add("gannet_group_backup_lag_records", "Records that the backup has not applied.",
      [&it](const SeenBackup& backup) { return it.end - std::min(it.end, backup.applied); });
}

// For a primary to whose group partitions come.
void AddMoves(const MoveProgress& it, MetricFamilies* to) {
  to->Gauge("gannet_move_partitions_wanted", "Partitions that are to come to this group.",
            static_cast<double>(it.wanted));
  to->Counter("gannet_move_partitions_total", "Partitions that have come to this group.", it.moved);
  to->Gauge("gannet_move_items", "Changes taken of the partitions that come now.",
            static_cast<double>(it.items));
  to->Gauge("gannet_move_bytes", "Bytes of keys and values in these changes.",
            static_cast<double>(it.bytes));
  to->Gauge("gannet_move_walked_ratio", "The share of the giver's memory that was walked through.",
            it.walked);
}

}  // namespace

void AddGroup(const Member::Seen& it, MetricFamilies* to) {
  to->Begin(MetricType::Gauge, "gannet_group_role", "1 for the role of this member in its group.");
  for (const auto role : {Member::Role::kJoining, Member::Role::kBackup, Member::Role::kPrimary,
                          Member::Role::kEnded}) {
    to->Add({{"node", it.node}, {"role", GroupRoleName(role)}}, role == it.role ? 1 : 0);
  }
  to->Gauge("gannet_group_epoch", "Number of the group's primary, from 1: each takeover adds one.",
            static_cast<double>(it.epoch));
  if (it.role != Member::Role::kPrimary) {
    to->Gauge("gannet_group_applied_lsn", "Where the records end that this member has applied.",
              static_cast<double>(it.applied));
    return;
  }
  const Primary::Seen& primary = it.as_primary;
  to->Gauge("gannet_group_end_lsn", "Where the stream of changes ends.",
            static_cast<double>(primary.end));
  to->Gauge("gannet_group_committed_lsn", "Where the records end that all in sync have.",
            static_cast<double>(primary.committed));
  to->Gauge("gannet_group_lease_seconds", "What is left of the primary's lease.",
            static_cast<double>(primary.lease_left_ns) / 1e9);
  to->Gauge("gannet_group_waiting_bytes", "Bytes of changes that found no room in the ring yet.",
            static_cast<double>(primary.waiting_bytes));
  to->Counter("gannet_group_links_broken_total", "Links to backups that broke.",
              primary.links_broken);
  to->Counter("gannet_group_backups_removed_total", "Backups that left those in sync.",
              primary.removed);
  to->Gauge("gannet_group_stream_version", "The version of the stream, which all members speak.",
            static_cast<double>(primary.stream_version));
  to->Gauge("gannet_group_members_in_sync", "Members that are in sync, the primary among them.",
            1 + std::ranges::count_if(primary.backups, &SeenBackup::in_sync));
  AddBackups(primary, to);
  AddMoves(it.moves.value_or(MoveProgress()), to);
}

}  // namespace gannet
