#ifndef GANNET_SERVER_GROUP_MEMBERS_BACKUP_STATE_H_
#define GANNET_SERVER_GROUP_MEMBERS_BACKUP_STATE_H_

#include <cstdint>

namespace gannet {

// What a server is in its group until it is primary (docs/group.md):
//
//   seeks --welcome--> follows --old changes are published--> copies --walk is over--> copied
//     |                   |                                      |                       | told
//     | founded, or       |                                      |                       v
//     | begun again       |                                      |                     ready
//     v                   v                                      v                       |
//   leads <--takeover-- in sync <-------------the register says so-----------------------+
//                        |   ^
//    register without it |   | forced by an operator
//                        v   |
//                       out --fenced--> keeps --a primary lives--> ends
//
// It is in sync before it was ready only if an operator forces it. It ends from each state before
// `leads`, and is in sync again from `keeps`, too.
enum class BackupState : uint8_t {
  kSeeks,    // looks for a primary to join, founds the group, or begins it again
  kFollows,  // a stream comes. What was changed before it is not in the primary's index yet
  kCopies,   // walks through the primary's items
  kCopied,   // has all items. The primary is not told before the disk has them, too
  kReady,    // has told it. Others may count on this copy, and this member does not know
  kInSync,   // follows, or takes over
  kOut,      // is in sync no more, and fences its last link
  kKeeps,    // keeps its items, which may be the last, until it finds a primary to copy from
  kLeads,
  kEnds,
};

constexpr bool MayFollow(BackupState from, BackupState to) {
  using enum BackupState;
  const bool ends = to == kEnds;
  switch (from) {
    case kSeeks:
      return ends || to == kFollows || to == kLeads;
    case kFollows:
      return ends || to == kCopies || to == kInSync;
    case kCopies:
      return ends || to == kCopied || to == kInSync;
    case kCopied:
      return ends || to == kReady || to == kInSync;
    case kReady:
      return ends || to == kInSync;
    case kInSync:
      return ends || to == kOut || to == kLeads;
    case kOut:
      return ends || to == kKeeps || to == kInSync;
    case kKeeps:
      return ends || to == kInSync;
    case kLeads:
    case kEnds:
      return false;
  }
  return false;
}

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_BACKUP_STATE_H_
