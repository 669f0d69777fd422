#ifndef SOFTVERBS_NIC_CONTROL_SOCKET_H_
#define SOFTVERBS_NIC_CONTROL_SOCKET_H_

#include <cstdint>
#include <vector>

#include "softverbs/base/unique_fd.h"

namespace softverbs {

// The socket beside the rings of a link: one SOCK_SEQPACKET message each for everything that is
// rare, with descriptors attached. Its end of file is how a peer's death is noticed.

enum class ControlType : uint32_t {
  kHello = 1,      // slot; fds: link memory, tables. First message of a link, by the lower slot
  kWelcome,        // slot; fds: tables
  kDialMe,         // slot. The higher slot asks the lower one to open the link
  kDoorbell,       // wake up, there are packets
  kRegionRequest,  // region
  kRegion,         // region, writable; fds: the file, or none when it cannot be had
  kRegionGone,     // region
  kBellRequest,    // region: a bell
  kBell,           // region: a bell; fds: the eventfd, or none when it cannot be had
  kBellGone,       // region: a bell
};

struct ControlMessage {
  uint32_t magic = kMagic;
  ControlType type{};
  uint32_t slot = 0;
  uint32_t region = 0;
  uint32_t writable = 0;
  uint32_t reserved = 0;

  static constexpr uint32_t kMagic = 0x53765635;  // "SvV5": changes with the layout of the link
};
static_assert(sizeof(ControlMessage) == 24);

// The slot's listening socket. Its abstract name is the claim: the kernel refuses a second one and
// frees it with the process. Invalid (EADDRINUSE) when the slot is taken.
UniqueFd ListenOnSlot(uint32_t slot);

// Connects to the process that owns `slot`. Invalid when there is none, or another user's.
UniqueFd ConnectToSlot(uint32_t slot);

// The next connection, of the same user; invalid when none waits.
UniqueFd AcceptPeer(int listener);

// Never blocks. False when the peer is gone or its buffer is full.
bool SendControl(int socket, const ControlMessage& message, const std::vector<int>& fds = {});

enum class ReceiveResult { kMessage, kNothing, kClosed };
// Never blocks. A malformed message counts as closed.
ReceiveResult ReceiveControl(int socket, ControlMessage* message, std::vector<UniqueFd>* fds);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_CONTROL_SOCKET_H_
