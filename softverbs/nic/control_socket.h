#ifndef SOFTVERBS_NIC_CONTROL_SOCKET_H_
#define SOFTVERBS_NIC_CONTROL_SOCKET_H_

#include <cstdint>
#include <vector>

#include "softverbs/base/unique_fd.h"

namespace softverbs {

// A link's control socket, beside its rings. Rare events travel as SOCK_SEQPACKET messages, which
// can carry descriptors. The end of file on the socket tells a process that its peer died.

enum class ControlType : uint32_t {
  // The fields that each type uses, and the descriptors it carries.
  kHello = 1,      // slot; fds: link memory, tables. The lower slot's first message, opens a link
  kWelcome,        // slot; fds: tables. The answer to kHello
  kDialMe,         // slot. The higher slot asks the lower one to open a link
  kDoorbell,       // wakes the peer's NIC: there are packets
  kRegionRequest,  // region
  kRegion,         // region, writable; fds: the file, or none if it is not available
  kRegionGone,     // region
  kBellRequest,    // region holds the bell's number
  kBell,           // region holds the bell's number; fds: the eventfd, or none if it is gone
  kBellGone,       // region holds the bell's number
  kCaller,         // fds: a connection of another host that asks for this slot. First and last
};

struct ControlMessage {
  uint32_t magic = kMagic;
  ControlType type{};
  uint32_t slot = 0;
  uint32_t region = 0;
  uint32_t writable = 0;
  uint32_t reserved = 0;

  static constexpr uint32_t kMagic = 0x53765636;  // "SvV6"; changes with the layout of the link
};
static_assert(sizeof(ControlMessage) == 24);

// Claims a slot, and returns its listening socket. The socket's abstract name is the claim: the
// kernel refuses a second socket with the same name, and frees the name when the process ends.
// Returns an invalid descriptor if the slot is taken (errno: EADDRINUSE).
UniqueFd ListenOnSlot(uint32_t slot);

// Connects to the process that owns `slot`. Returns an invalid descriptor if there is no such
// process, or if it belongs to another user.
UniqueFd ConnectToSlot(uint32_t slot);

// Accepts the next connection. Returns an invalid descriptor if none waits, or if it comes from
// another user.
UniqueFd AcceptPeer(int listener);

// Sends a message. Never blocks. Returns false if the peer is gone or its buffer is full.
bool SendControl(int socket, const ControlMessage& message, const std::vector<int>& fds = {});

enum class ReceiveResult { kMessage, kNothing, kClosed };
// Receives a message. Never blocks. Returns kClosed for a malformed message too.
ReceiveResult ReceiveControl(int socket, ControlMessage* message, std::vector<UniqueFd>* fds);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_CONTROL_SOCKET_H_
