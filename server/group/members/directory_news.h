#ifndef GANNET_SERVER_GROUP_MEMBERS_DIRECTORY_NEWS_H_
#define GANNET_SERVER_GROUP_MEMBERS_DIRECTORY_NEWS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "server/group/members/group_context.h"
#include "server/group/replica/group_directory.h"
#include "server/group/replica/register.h"

namespace gannet {

// Tells those who answer clients, by the GroupStanding, what the group's directory says: which keys
// this group has, the cluster's map, and where the primary is. Warns people of other policies.
//
// Thread safety: the member's thread only.
class DirectoryNews {
 public:
  // `context` outlives this.
  explicit DirectoryNews(const GroupContext& context) : context_(context) {}

  // Returns whether there was something new to tell.
  bool TellPartitions();
  void TellMap();
  // Warns if operators have changed what a member is started with.
  void TellOfPolicy();
  // Tells where the primary of `configuration` is, unless that is this process.
  void TellElsewhere(const GroupConfiguration& configuration);

 private:
  const GroupContext& context_;
  std::optional<uint64_t> partitions_told_;  // of this revision
  GroupPolicy told_policy_;                  // of the group
  std::string elsewhere_;
  std::optional<GroupMember> told_of_;  // whom elsewhere_ names; nullopt: that may change soon
  uint64_t told_epoch_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_DIRECTORY_NEWS_H_
