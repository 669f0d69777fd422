#include "softverbs/cm/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "softverbs/base/clock.h"
#include "softverbs/base/gid.h"
#include "softverbs/base/log.h"
#include "softverbs/cm/address.h"
#include "softverbs/cm/state.h"
#include "softverbs/nic/net_exchange.h"

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

int Listener::Start() {
  if (listen(fd_.get(), kSocketBacklog) != 0) return errno;
  spare_ = SpareFd();
  watch_ = Loop::Get().Add(fd_.get(), EPOLLIN,
                           [self = shared_from_this()](uint32_t) { self->OnReadable(); });
  return 0;
}

void Listener::Close() {
  Loop::Watch watch = 0;
  std::unordered_set<std::shared_ptr<Link>> silent;
  {
    const LockGuard lock(state_mutex);
    closed_ = true;  // a paused listener does not come back
    watch = watch_;
    silent.swap(silent_);
    for (const auto& link : silent) link->owner = nullptr;
  }
  Loop::Get().Remove(watch);
  for (const auto& link : silent) link->Close();
  const LockGuard lock(state_mutex);
  fd_.Reset();
  spare_.Reset();
}

bool Listener::TakePlace() {
  if (backlog_ <= 0) return false;
  backlog_--;
  return true;
}

void Listener::OnReadable() {
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

void Listener::Adopt(UniqueFd fd) {
  if (!Link::PeerIsTrusted(fd.get())) return Refuse(fd.get(), RejectReason::kConsumer);
  if (silent_.size() >= kSilentMax) return Refuse(fd.get(), RejectReason::kNoResources);
  AdoptLink(std::make_shared<Link>(std::move(fd)));
}

void Listener::AdoptLink(std::shared_ptr<Link> link) {
  link->owner = this;
  silent_.insert(link);
  link->Start();
}

void Listener::AnswerRemote(UniqueFd fd) {
  const auto decide = [self = shared_from_this()](const NetCaller& caller) {
    const LockGuard lock(state_mutex);
    const bool place = self->silent_.size() < kSilentMax;
    const bool asked = caller.opening.kind == NetKind::kService;
    Welcome welcome;
    if (!place) welcome.status = NetStatus::kBusy;
    if (self->closed_ || !asked) welcome.status = NetStatus::kNobody;
    return welcome;
  };
  AnswerCaller(std::move(fd), decide,
               [self = shared_from_this()](UniqueFd socket, const NetCaller& caller) {
                 const LockGuard lock(state_mutex);
                 if (self->closed_) return;
                 self->AdoptLink(std::make_shared<Link>(std::move(socket), caller.gid));
               });
}

void Listener::RefuseOne() {
  Report("out of descriptors: refusing connections");
  spare_.Reset();
  const UniqueFd fd(accept4(fd_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (fd) Refuse(fd.get(), RejectReason::kNoResources);
  // Without a pause the loop thread would spin on a connection that it cannot accept.
  Pause();
}

void Listener::Pause() {
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

void Listener::OnMessage(std::shared_ptr<Link> link, const Message& message) {
  silent_.erase(link);
  link->owner = nullptr;
  if (static_cast<MessageKind>(message.kind) == MessageKind::kHandOver) {
    UniqueFd passed = link->TakePassed();
    link->Close();  // from its own handler
    if (passed) AnswerRemote(std::move(passed));
    return;
  }
  const auto source = Address::From(message.source);
  if (link->host() && !(source && Equal(source->ToGid(), *link->host()))) {
    Report("dropped a connection of another host that gives a false address");
    return link->Close();  // from its own handler
  }
  if (static_cast<MessageKind>(message.kind) != awaited_) {
    Report("dropped a connection that does not begin with a request");
    return link->Close();  // from its own handler
  }
  on_request_(std::move(link), message);
}

void Listener::OnEnd(const std::shared_ptr<Link>& link) {
  silent_.erase(link);
  link->owner = nullptr;
}

}  // namespace softverbs::cm
