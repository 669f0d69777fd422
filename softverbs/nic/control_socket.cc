#include "softverbs/nic/control_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "softverbs/base/log.h"

namespace softverbs {
namespace {

constexpr size_t kMaxFds = 2;

// Writes the slot's address, and returns its size. The name is abstract: it has no file, and is
// visible in this network namespace. Softverbs takes a network namespace for a host.
socklen_t SlotAddress(uint32_t slot, sockaddr_un* address) {
  memset(address, 0, sizeof(*address));
  address->sun_family = AF_UNIX;
  const int length =
      snprintf(address->sun_path + 1, sizeof(address->sun_path) - 1, "softverbs/nic/%u", slot);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

UniqueFd NewSocket() {
  return UniqueFd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

bool SameUser(int socket) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  if (peer.uid == geteuid()) return true;
  Report("refused process %d of user %u: only processes of one user can talk", peer.pid, peer.uid);
  return false;
}

}  // namespace

UniqueFd ListenOnSlot(uint32_t slot) {
  UniqueFd fd = NewSocket();
  sockaddr_un address;
  const socklen_t size = SlotAddress(slot, &address);
  if (fd && (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
             listen(fd.get(), SOMAXCONN) != 0)) {
    fd.Reset();
  }
  return fd;
}

UniqueFd ConnectToSlot(uint32_t slot) {
  UniqueFd fd = NewSocket();
  sockaddr_un address;
  const socklen_t size = SlotAddress(slot, &address);
  if (fd && (connect(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
             !SameUser(fd.get()))) {
    fd.Reset();
  }
  return fd;
}

UniqueFd AcceptPeer(int listener) {
  UniqueFd fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd && !SameUser(fd.get())) fd.Reset();
  return fd;
}

bool SendControl(int socket, const ControlMessage& message, const std::vector<int>& fds) {
  iovec data{const_cast<ControlMessage*>(&message), sizeof(message)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
    memcpy(CMSG_DATA(rights), fds.data(), sizeof(int) * fds.size());
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof(message));
}

ReceiveResult ReceiveControl(int socket, ControlMessage* message, std::vector<UniqueFd>* fds) {
  fds->clear();
  iovec data{message, sizeof(*message)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxFds)];
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t received;
  do {
    received = recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return ReceiveResult::kNothing;
  if (received <= 0) return ReceiveResult::kClosed;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      fds->emplace_back(fd);
    }
  }
  const bool well_formed =
      received == static_cast<ssize_t>(sizeof(*message)) && message->magic == message->kMagic;
  return well_formed ? ReceiveResult::kMessage : ReceiveResult::kClosed;
}

}  // namespace softverbs
