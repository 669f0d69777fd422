#ifndef GANNET_COMMON_PROTOCOL_GROUP_MEMBER_H_
#define GANNET_COMMON_PROTOCOL_GROUP_MEMBER_H_

#include <cstdint>
#include <string>

namespace gannet {

// One run of a process of a group. A node whose process starts again is another member.
struct GroupMember {
  std::string node;
  uint64_t incarnation = 0;  // unique among all processes of the group, ever; of a member never 0
  // Members are compared often, and most that differ do so in their incarnations.
  friend bool operator==(const GroupMember& a, const GroupMember& b) {
    return a.incarnation == b.incarnation && a.node == b.node;
  }
};

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_GROUP_MEMBER_H_
