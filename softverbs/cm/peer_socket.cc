#include "softverbs/cm/peer_socket.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "softverbs/base/log.h"
#include "softverbs/base/monotonic_clock.h"
#include "softverbs/cm/state.h"
#include "softverbs/cm/steps.h"
#include "softverbs/nic/nic.h"

namespace softverbs::cm {

void PeerSocket::Start() {
  const LockGuard guard(port_mutex_);
  Watch();
}

void PeerSocket::Watch() {
  watch_ = Loop::Get().Add(fd_.get(), EPOLLIN,
                           [self = shared_from_this()](uint32_t) { self->OnReadable(); });
}

bool PeerSocket::Send(const Message& message) {
  const LockGuard guard(port_mutex_);
  if (!WaitsForPort() && waiting_.empty()) return SendNow(message);
  waiting_.push_back(message);
  if (waiting_.size() == 1) SendWithPort();
  return true;
}

void PeerSocket::SendWithPort() {
  Nic::Get()->ports().WhenUp(*port_, [self = shared_from_this()] { self->SendWaiting(); });
}

void PeerSocket::SendWaiting() {
  const LockGuard guard(port_mutex_);
  if (!fd_) return;  // it was closed after kAnswerTimeoutNs
  if (WaitsForPort()) return SendWithPort();
  for (const Message& message : std::exchange(waiting_, {})) SendNow(message);
}

bool PeerSocket::SendNow(const Message& message) {
  for (;;) {
    const ssize_t sent = send(fd_.get(), &message, sizeof(message), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent == static_cast<ssize_t>(sizeof(message));
    if (errno != EINTR) return false;
  }
}

void PeerSocket::Close() {
  Loop::Watch watch = 0;
  bool waits = false;
  {
    const LockGuard guard(port_mutex_);
    is_closed_ = true;
    watch = std::exchange(watch_, 0);
    waits = WaitsForPort() || !waiting_.empty();
  }
  Loop::Get().Remove(watch);
  if (!waits) return fd_.Reset();
  CloseWithPort();
  Loop::Get().RunAt(MonotonicNs() + kAnswerTimeoutNs, [self = shared_from_this()] {
    const LockGuard guard(self->port_mutex_);
    self->fd_.Reset();
  });
}

// What waits to be sent is sent first, as it asked for the port before.
void PeerSocket::CloseWithPort() {
  Nic::Get()->ports().WhenUp(*port_, [self = shared_from_this()] {
    if (self->WaitsForPort()) return self->CloseWithPort();
    const LockGuard guard(self->port_mutex_);
    self->fd_.Reset();
  });
}

bool PeerSocket::StopAtPort() {
  if (!WaitsForPort()) return false;
  const LockGuard guard(port_mutex_);
  if (is_closed_) return true;
  Loop::Get().Remove(std::exchange(watch_, 0));  // in its own handler: does not wait
  Nic::Get()->ports().WhenUp(*port_, [self = shared_from_this()] {
    const LockGuard guard(self->port_mutex_);
    if (!self->is_closed_) self->Watch();
  });
  return true;
}

bool PeerSocket::PeerIsTrusted(int fd) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == geteuid()) {
    return true;
  }
  Report("refused a connection with process %d of user %u: same user only", peer.pid, peer.uid);
  return false;
}

ssize_t PeerSocket::ReadRecord(Message* message) {
  iovec data{message, sizeof(*message)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  // MSG_TRUNC returns the length of what was sent, so that an oversized message is recognised.
  const ssize_t got = recvmsg(fd_.get(), &header, MSG_DONTWAIT | MSG_TRUNC | MSG_CMSG_CLOEXEC);
  const cmsghdr* part = got < 0 ? nullptr : CMSG_FIRSTHDR(&header);
  if (part != nullptr && part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS) {
    int fd;
    memcpy(&fd, CMSG_DATA(part), sizeof(fd));
    passed_ = UniqueFd(fd);
  }
  return got;
}

ssize_t PeerSocket::ReadStream(Message* message) {
  auto* bytes = reinterpret_cast<uint8_t*>(&partial_);
  const ssize_t got =
      recv(fd_.get(), bytes + partial_bytes_, sizeof(partial_) - partial_bytes_, MSG_DONTWAIT);
  if (got <= 0) return got;
  partial_bytes_ += static_cast<size_t>(got);
  if (partial_bytes_ < sizeof(partial_)) {
    errno = EINTR;  // there may be more
    return -1;
  }
  partial_bytes_ = 0;
  *message = partial_;
  return sizeof(*message);
}

bool PeerSocket::Receive(Message* message, size_t* size) {
  for (;;) {
    const ssize_t got = host_ ? ReadStream(message) : ReadRecord(message);
    if (got >= 0) {
      *size = static_cast<size_t>(got);
      return true;
    }
    if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
    // A reset means that the peer closed before it read all our messages. It is reported once,
    // before the peer's last messages and the end of file.
    if (errno != ECONNRESET && errno != EINTR) {
      *size = 0;
      return true;
    }
  }
}

void PeerSocket::OnReadable() {
  Message message;
  size_t size = 0;
  while (!StopAtPort() && Receive(&message, &size)) {
    const LockGuard lock(state_mutex);
    if (size != 0 && !Valid(message, size)) {
      Report("dropped a connection: malformed message of %zu bytes", size);
      size = 0;
    }
    if (size == 0) return End();
    if (owner != nullptr) owner->OnMessage(shared_from_this(), message);
  }
}

void PeerSocket::End() {
  {
    // In the handler, Remove does not wait, so the mutexes may be held.
    const LockGuard guard(port_mutex_);
    Loop::Get().Remove(std::exchange(watch_, 0));
  }
  if (owner != nullptr) owner->OnEnd(shared_from_this());
}

}  // namespace softverbs::cm
