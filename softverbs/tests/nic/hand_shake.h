#ifndef SOFTVERBS_TESTS_NIC_HAND_SHAKE_H_
#define SOFTVERBS_TESTS_NIC_HAND_SHAKE_H_

#include <sys/socket.h>

#include "softverbs/nic/net_key.h"
#include "softverbs/nic/net_wire.h"

namespace softverbs {

template <class Frame>
bool SendFrame(int socket, const Frame& frame) {
  return send(socket, &frame, sizeof(frame), MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof(frame));
}

template <class Frame>
bool ReceiveFrame(int socket, Frame* frame) {
  return recv(socket, frame, sizeof(*frame), MSG_WAITALL) == static_cast<ssize_t>(sizeof(*frame));
}

// Begins a connection as a host does that has the key (net_wire.h). Returns whether the other side
// has it too, and welcomes this one.
inline bool ShakeHands(int socket, const NetOpening& opening) {
  Challenge challenge;
  const bool challenged = SendFrame(socket, opening) && ReceiveFrame(socket, &challenge) &&
                          challenge.status == NetStatus::kOk &&
                          challenge.mac == ChallengeMac(opening, challenge.nonce);
  Welcome welcome;
  return challenged && SendFrame(socket, Proof{ProofMac(opening, challenge.nonce)}) &&
         ReceiveFrame(socket, &welcome) && welcome.status == NetStatus::kOk;
}

}  // namespace softverbs

#endif  // SOFTVERBS_TESTS_NIC_HAND_SHAKE_H_
