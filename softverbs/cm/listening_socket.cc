#include "softverbs/cm/listening_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "softverbs/base/gid.h"
#include "softverbs/base/log.h"
#include "softverbs/base/monotonic_clock.h"
#include "softverbs/cm/cm_address.h"
#include "softverbs/cm/state.h"
#include "softverbs/nic/net_exchange.h"
#include "softverbs/nic/nic.h"

namespace softverbs::cm {
namespace {

// How many connections the kernel keeps until the loop thread accepts them. The kernel has its own
// cap.
constexpr int kSocketBacklog = 4096;
// How many connections may be silent. Ours send their first message in the call that connects.
constexpr size_t kSilentMax = 4096;
constexpr int64_t kPauseNs = 10'000'000;

UniqueFd SpareFd() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

void Refuse(int fd, RejectReason reason) {
  Message reject = MakeMessage(MessageKind::kReject);
  reject.reason = static_cast<uint32_t>(reason);
  // Best effort: closing the socket refuses the connection as well.
  (void)send(fd, &reject, sizeof(reject), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

int ListeningSocket::Start() {
  if (listen(fd_.get(), kSocketBacklog) != 0) return errno;
  spare_ = SpareFd();
  watch_ = Loop::Get().Add(fd_.get(), EPOLLIN,
                           [self = shared_from_this()](uint32_t) { self->OnReadable(); });
  return 0;
}

void ListeningSocket::Close() {
  Loop::Watch watch = 0;
  std::unordered_set<std::shared_ptr<PeerSocket>> silent;
  {
    const LockGuard lock(state_mutex);
    closed_ = true;  // a paused listener does not come back
    watch = watch_;
    silent.swap(silent_);
    for (const auto& peer : silent) peer->owner = nullptr;
  }
  Loop::Get().Remove(watch);
  for (const auto& peer : silent) peer->Close();
  const LockGuard lock(state_mutex);
  fd_.Reset();
  spare_.Reset();
}

bool ListeningSocket::TakePlace() {
  if (backlog_ <= 0) return false;
  backlog_--;
  return true;
}

void ListeningSocket::OnReadable() {
  for (;;) {
    const LockGuard lock(state_mutex);
    if (closed_) return;
    UniqueFd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (fd) {
      Adopt(std::move(fd));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
      return RefuseOne();
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return;
    }
  }
}

void ListeningSocket::Adopt(UniqueFd fd) {
  if (!PeerSocket::PeerIsTrusted(fd.get())) return Refuse(fd.get(), RejectReason::kConsumer);
  if (silent_.size() >= kSilentMax) return Refuse(fd.get(), RejectReason::kNoResources);
  AdoptPeer(std::make_shared<PeerSocket>(std::move(fd)));
}

void ListeningSocket::AdoptPeer(std::shared_ptr<PeerSocket> peer) {
  peer->owner = this;
  silent_.insert(peer);
  peer->Start();
}

void ListeningSocket::AnswerRemote(UniqueFd fd) {
  const auto decide = [self = shared_from_this()](const NetCaller& caller) {
    const LockGuard lock(state_mutex);
    const bool place = self->silent_.size() < kSilentMax;
    const bool asked = caller.opening.kind == NetKind::kService;
    Welcome welcome;
    if (!place) welcome.status = NetStatus::kBusy;
    if (self->closed_ || !asked) welcome.status = NetStatus::kNobody;
    return welcome;
  };
  AnswerCaller(Nic::Get()->remote_links().strangers(), std::move(fd), decide,
               [self = shared_from_this()](UniqueFd socket, const NetCaller& caller) {
                 const LockGuard lock(state_mutex);
                 if (self->closed_) return;
                 self->AdoptPeer(std::make_shared<PeerSocket>(std::move(socket), caller.gid));
               });
}

void ListeningSocket::RefuseOne() {
  Report("out of descriptors: refusing connections");
  spare_.Reset();
  const UniqueFd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) Refuse(fd.get(), RejectReason::kNoResources);
  // Without a pause the loop thread would spin on a connection that it cannot accept.
  Pause();
}

void ListeningSocket::Pause() {
  Loop& loop = Loop::Get();
  loop.Remove(watch_);  // from its own handler: does not wait
  watch_ = 0;
  loop.RunAt(MonotonicNs() + kPauseNs, [self = shared_from_this()] {
    const LockGuard lock(state_mutex);
    if (self->closed_) return;
    if (!self->spare_) self->spare_ = SpareFd();
    self->watch_ =
        Loop::Get().Add(self->fd_.get(), EPOLLIN, [self](uint32_t) { self->OnReadable(); });
  });
}

void ListeningSocket::OnMessage(std::shared_ptr<PeerSocket> peer, const Message& message) {
  silent_.erase(peer);
  peer->owner = nullptr;
  if (static_cast<MessageKind>(message.kind) == MessageKind::kHandOver) {
    UniqueFd passed = peer->TakePassed();
    peer->Close();  // from its own handler
    if (passed) AnswerRemote(std::move(passed));
    return;
  }
  const auto source = Address::From(message.source);
  if (peer->host() && !(source && Equal(source->ToGid(), *peer->host()))) {
    Report("dropped a connection of another host that gives a false address");
    return peer->Close();  // from its own handler
  }
  if (static_cast<MessageKind>(message.kind) != awaited_) {
    Report("dropped a connection that does not begin with a request");
    return peer->Close();  // from its own handler
  }
  on_request_(std::move(peer), message);
}

void ListeningSocket::OnEnd(const std::shared_ptr<PeerSocket>& peer) {
  silent_.erase(peer);
  peer->owner = nullptr;
}

}  // namespace softverbs::cm
