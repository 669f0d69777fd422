#ifndef GANNET_SERVER_GROUP_MEMBERS_FOLLOWER_STATE_H_
#define GANNET_SERVER_GROUP_MEMBERS_FOLLOWER_STATE_H_

#include <cstdint>

namespace gannet {

// What a process is to the primary that it has a link to (docs/group.md):
//
//   greets --hello of a backup--> follows --has all items--> counted
//     |                              |                          |
//     |                              +--goes on over another rail--> replaced
//     +-----hello of a receiver--> receives
//
// It stays that while its link breaks and closes (PrimaryLinkState).
enum class FollowerState : uint8_t {
  kGreets,    // has said no hello that was taken
  kFollows,   // a backup. It gets the stream, and was not in sync yet as far as is known
  kCounted,   // a backup that is in sync, or asked to be. Its link ends once it is not
  kReplaced,  // another link of the same backup goes on, as what this one was
  kReceives,  // gets the stream for another group (docs/partitions.md), and counts for nothing here
};

constexpr bool MayFollow(FollowerState from, FollowerState to) {
  using enum FollowerState;
  if (from == kGreets) return to == kFollows || to == kReceives;
  if (to == kReplaced) return from == kFollows || from == kCounted;
  return from == kFollows && to == kCounted;
}

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_FOLLOWER_STATE_H_
