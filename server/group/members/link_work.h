#ifndef GANNET_SERVER_GROUP_MEMBERS_LINK_WORK_H_
#define GANNET_SERVER_GROUP_MEMBERS_LINK_WORK_H_

#include <cstdint>

namespace gannet {

// What a work request of a link is, in WrId::kind. Its owner is the link's number.
enum class LinkWork : uint8_t {
  kSend = 1,     // a control message; the slot is its place
  kReceive = 2,  // the same
  kWrite = 3,    // of records
  kDrain = 4,    // the last one; the slot is a LinkConnection
};

// The two queue pairs of a link. They are two, as a WRITE behind a SEND waits for the peer's CPU
// on some devices.
enum class LinkConnection : uint8_t { kControl = 0, kStream = 1 };

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_LINK_WORK_H_
