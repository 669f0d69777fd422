#include "softverbs/nic/remote_links.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "softverbs/base/log.h"
#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/net_config.h"
#include "softverbs/nic/control_socket.h"
#include "softverbs/nic/net_key.h"
#include "softverbs/nic/nic.h"

namespace softverbs {
namespace {

// How long to dial again, while nobody answers or the other side dials itself. Queue pairs may give
// up before.
constexpr int64_t kDialNs = 16'000'000'000;
constexpr int64_t kDialAgainNs = 50'000'000;
// How many connections are accepted in one turn of the loop. Those that came before have their turn
// between, so a flood does not keep them from proving the key.
constexpr int kAcceptsMax = 64;
// How long nobody is accepted after there was no descriptor left.
constexpr int64_t kPauseNs = 10'000'000;
// The kernel keeps no more unsent bytes of a link than this, so that packets do not grow old there.
constexpr int kUnsentMax = 128 * 1024;

std::atomic<RemoteLinks::ServiceHandler> service_handler{nullptr};

size_t DescriptorsMax() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return static_cast<size_t>(limit.rlim_cur);
}

void SetOption(int socket, int level, int option, int value) {
  setsockopt(socket, level, option, &value, sizeof(value));
}

UniqueFd Listen(const ibv_gid& gid, uint16_t port) {
  sockaddr_storage address;
  const socklen_t size = ToSocketAddress(gid, port, &address);
  UniqueFd fd(socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fd;
  SetOption(fd.get(), SOL_SOCKET, SO_REUSEADDR, 1);
  SetOption(fd.get(), SOL_SOCKET, SO_REUSEPORT, 1);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    const int error = errno;
    fd.Reset();
    errno = error;
  }
  return fd;
}

// Returns a connection that is its own other end: what is written to it is read from it. Returns an
// invalid descriptor and sets errno if that fails.
UniqueFd ConnectToItself(const ibv_gid& gid) {
  sockaddr_storage address;
  socklen_t size = ToSocketAddress(gid, 0, &address);
  auto* const own = reinterpret_cast<sockaddr*>(&address);
  UniqueFd fd(socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  SetOption(fd.get(), IPPROTO_TCP, TCP_NODELAY, 1);
  // TCP lets a socket connect to its own port (RFC 9293, simultaneous open).
  const bool connected = fd && bind(fd.get(), own, size) == 0 &&
                         getsockname(fd.get(), own, &size) == 0 &&
                         connect(fd.get(), own, size) == 0;
  if (!connected) {
    const int error = errno;
    fd.Reset();
    errno = error;
  }
  return fd;
}

// Returns what recv does. The process that the NetOpening asks for reads it itself.
ssize_t PeekOpening(int socket, NetOpening* opening) {
  return recv(socket, opening, sizeof(*opening), MSG_PEEK | MSG_DONTWAIT);
}

// Says on stderr why there is no listener, once for each cause: programs try again and again. Keeps
// errno. REQUIRES: no other thread is in it. Nic creates one adapter at a time.
void ExplainNoListener(const NetConfig& net) {
  const int error = errno;
  static auto* const said = new std::set<int>;
  const bool is_new = said->insert(error).second;
  errno = error;
  if (!is_new) return;
  fprintf(stderr, "softverbs[%d]: SOFTVERBS_NET: cannot listen at TCP port %u: %s%s\n", getpid(),
          net.port, strerror(error),
          error == EADDRINUSE ? ". A process that is not softverbs has it, or one of another user: "
                                "name another port, SOFTVERBS_NET=ADDRESS:PORT, at all hosts"
          : error == EADDRNOTAVAIL ? ". The address is none of this host"
                                   : "");
  errno = error;
}

// An adapter would have sent what its program posted, and acknowledged what it received, before the
// program ended. Runs after the program's own handlers.
void FlushAtExit() {
  if (Nic* nic = Nic::Existing()) nic->remote_links().FlushAll();
}

}  // namespace

RemoteLinks::RemoteLinks(Nic* nic) : nic_(nic), strangers_(DescriptorsMax()) {}

void RemoteLinks::FlushAll() {
  const LockGuard guard(mutex_);
  for (const auto& [peer, entry] : entries_) {
    if (entry.link->state() == Link::State::kUp) entry.link->pump()->Flush();
  }
}

bool RemoteLinks::Start() {
  const NetConfig* net = Net();
  if (net == nullptr || Loop::Get().Simulated()) return true;
  LoadNetKey();
  if (getrandom(&incarnation_, sizeof(incarnation_), 0) != sizeof(incarnation_)) return false;
  for (const ibv_gid& gid : net->gids) {
    listeners_.push_back({.socket = Listen(gid, net->port)});
    if (listeners_.back().socket) continue;
    ExplainNoListener(*net);
    listeners_.clear();
    return false;
  }
  Loop::Get().Post([this] {
    for (Listener& listener : listeners_) WatchListener(listener);
  });
  atexit(FlushAtExit);
  return true;
}

void RemoteLinks::SetServiceHandler(ServiceHandler handler) {
  service_handler.store(handler, std::memory_order_release);
}

RemoteLinks::Host RemoteLinks::ToHost(const ibv_gid& gid) {
  Host host;
  std::ranges::copy(gid.raw, host.begin());
  return host;
}

ibv_gid RemoteLinks::ToGid(const Host& host) {
  ibv_gid gid;
  std::ranges::copy(host, std::begin(gid.raw));
  return gid;
}

bool RemoteLinks::IsLower(const Peer& peer) const {
  return std::pair(peer.own, nic_->slot()) < std::pair(peer.host, peer.slot);
}

NetOpening RemoteLinks::NewOpening(NetKind kind, uint32_t target, uint32_t space) {
  NetOpening opening;
  opening.kind = kind;
  opening.target = target;
  opening.space = space;
  opening.slot = nic_->slot();
  opening.incarnation = incarnation_;
  const LockGuard guard(mutex_);
  opening.dial = ++dials_;
  return opening;
}

std::shared_ptr<Link> RemoteLinks::Get(const ibv_gid& own, const ibv_gid& gid, uint32_t slot) {
  const Peer peer{ToHost(own), ToHost(gid), slot};
  std::shared_ptr<Link> link;
  {
    const LockGuard guard(mutex_);
    Entry& entry = entries_[peer];
    if (entry.link && entry.link->state() != Link::State::kDown) return entry.link;
    link = std::make_shared<Link>(slot, /*remote=*/true);
    entry = {.link = link, .give_up_ns = MonotonicNs() + kDialNs};
  }
  if (listeners_.empty()) {
    link->GoDown();
    return link;
  }
  nic_->engine().AddLink(link);
  // On the loop thread, where nobody answers the peer's own connection meanwhile.
  Loop::Get().Post([this, peer, link] { Dial(peer, link); });
  return link;
}

bool RemoteLinks::BeginDial(const Peer& peer, const std::shared_ptr<Link>& link,
                            NetOpening* opening, int* dials) {
  *opening = NewOpening(NetKind::kLink, peer.slot, 0);
  const LockGuard guard(mutex_);
  const auto found = entries_.find(peer);
  if (found == entries_.end() || found->second.link != link) return false;
  if (link->state() != Link::State::kConnecting) return false;
  found->second.dial = opening->dial;
  *dials = found->second.unanswered;
  return true;
}

void RemoteLinks::Dial(const Peer& peer, const std::shared_ptr<Link>& link) {
  if (peer.own == peer.host && peer.slot == nic_->slot()) return LinkToSelf(peer, link);
  NetOpening opening;
  int dials;
  if (!BeginDial(peer, link, &opening, &dials)) return;
  DialHost(ToGid(peer.own), ToGid(peer.host), opening, dials,
           [this, peer, link, dial = opening.dial](DialResult result) {
             OnDialed(peer, link, dial, std::move(result));
           });
}

void RemoteLinks::LinkToSelf(const Peer& peer, const std::shared_ptr<Link>& link) {
  UniqueFd socket = ConnectToItself(ToGid(peer.own));
  if (socket && TakeUp(link, std::move(socket))) return;
  Report("no link to this process by TCP: %s", strerror(errno));
  End(link);
}

void RemoteLinks::DialLater(const Peer& peer, const std::shared_ptr<Link>& link) {
  Loop::Get().RunAt(MonotonicNs() + kDialAgainNs, [this, peer, link] { Dial(peer, link); });
}

void RemoteLinks::OnDialed(const Peer& peer, const std::shared_ptr<Link>& link, uint64_t dial,
                           DialResult result) {
  bool again = false;
  {
    const LockGuard guard(mutex_);
    const auto found = entries_.find(peer);
    if (found == entries_.end() || found->second.link != link) return;
    Entry& entry = found->second;
    if (entry.dial != dial || link->state() != Link::State::kConnecting) return;
    entry.dial = 0;
    entry.incarnation = result.welcome.incarnation;
    entry.dialed = result.welcome.dialed;
    entry.unanswered += result.error == ETIMEDOUT ? 1 : 0;
    const bool may_come =
        result.error == EAGAIN || result.error == ETIMEDOUT || result.error == ECONNRESET;
    again = may_come && MonotonicNs() < entry.give_up_ns;
  }
  if (again) return DialLater(peer, link);
  if (result.error == 0 && TakeUp(link, std::move(result.socket))) return;
  Report("no link to process slot %u of another host: %s", peer.slot, strerror(result.error));
  End(link);
}

void RemoteLinks::WatchListener(Listener& listener) {
  listener.watch = Loop::Get().Add(listener.socket.get(), EPOLLIN,
                                   [this, &listener](uint32_t) { OnListener(listener); });
}

void RemoteLinks::OnListener(Listener& listener) {
  for (int accepted = 0; accepted < kAcceptsMax; ++accepted) {
    UniqueFd socket(accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket) {
      Greet(std::move(socket));
    } else if (errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS) {
      return;
    } else if (!strangers_.DropOne()) {
      return PauseListener(listener);
    }
  }
}

// Without a pause the loop thread would spin on a connection that it cannot accept.
void RemoteLinks::PauseListener(Listener& listener) {
  Report("out of descriptors: other hosts wait");
  Loop::Get().Remove(listener.watch);  // from its own handler: does not wait
  Loop::Get().RunAt(MonotonicNs() + kPauseNs, [this, &listener] { WatchListener(listener); });
}

// Takes a new connection on. One whose NetOpening is there already need not wait.
void RemoteLinks::Greet(UniqueFd socket) {
  NetOpening opening;
  const ssize_t size = PeekOpening(socket.get(), &opening);
  if (size == static_cast<ssize_t>(sizeof(opening))) return Judge(std::move(socket), size, opening);
  const auto from = PeerGid(socket.get());
  if (size == 0 || !from) return;  // it has hung up
  // The loop sees the socket readable when the whole NetOpening is there.
  SetOption(socket.get(), SOL_SOCKET, SO_RCVLOWAT, sizeof(NetOpening));
  const int fd = socket.get();
  Newcomer newcomer;
  newcomer.socket = std::move(socket);
  newcomer.stranger = strangers_.Add(*from, MonotonicNs(), [this, fd] {
    const Newcomer leaving = TakeNewcomer(fd);
    RefuseCaller(fd, NetStatus::kBusy);  // a dialer that has the key tries again
  });
  if (newcomer.stranger == 0) return RefuseCaller(fd, NetStatus::kBusy);
  newcomer.watch = Loop::Get().Add(fd, EPOLLIN, [this, fd](uint32_t) { OnNewcomer(fd); });
  newcomer.timer = Loop::Get().RunAt(MonotonicNs() + kExchangeNs, [this, fd] { OnNewcomer(fd); });
  newcomers_[fd] = std::move(newcomer);
}

// REQUIRES: `fd` is that of a newcomer.
RemoteLinks::Newcomer RemoteLinks::TakeNewcomer(int fd) {
  const auto found = newcomers_.find(fd);
  Newcomer newcomer = std::move(found->second);
  newcomers_.erase(found);
  strangers_.Remove(newcomer.stranger);
  Loop::Get().Remove(newcomer.watch);
  Loop::Get().Cancel(newcomer.timer);
  return newcomer;
}

// Called when the NetOpening has come, or too late.
void RemoteLinks::OnNewcomer(int fd) {
  if (!newcomers_.contains(fd)) return;
  Newcomer newcomer = TakeNewcomer(fd);
  NetOpening opening;
  const ssize_t size = PeekOpening(fd, &opening);
  Judge(std::move(newcomer.socket), size, opening);
}

// `size` bytes of the opening are there.
void RemoteLinks::Judge(UniqueFd socket, ssize_t size, const NetOpening& opening) {
  const NetVerdict verdict =
      size == static_cast<ssize_t>(sizeof(opening)) ? Check(opening) : NetVerdict::kForeign;
  if (verdict == NetVerdict::kGood) return HandOver(std::move(socket), opening);
  Report("refused a connection of another host: %s",
         verdict == NetVerdict::kForeign ? "it is none of softverbs" : "it has another version");
  if (verdict == NetVerdict::kOtherVersion) RefuseCaller(socket.get(), NetStatus::kVersion);
}

void RemoteLinks::HandOver(UniqueFd socket, const NetOpening& opening) {
  SetOption(socket.get(), SOL_SOCKET, SO_RCVLOWAT, 1);
  if (opening.kind == NetKind::kService) {
    const ServiceHandler handler = service_handler.load(std::memory_order_acquire);
    if (handler == nullptr) return RefuseCaller(socket.get(), NetStatus::kNobody);
    return handler(opening.space, static_cast<uint16_t>(opening.target), std::move(socket));
  }
  if (opening.target == nic_->slot()) return Answer(std::move(socket));
  const UniqueFd owner = ConnectToSlot(opening.target);
  const ControlMessage caller{.type = ControlType::kCaller};
  if (!owner || !SendControl(owner.get(), caller, {socket.get()})) {
    RefuseCaller(socket.get(), NetStatus::kNobody);
  }
}

void RemoteLinks::Answer(UniqueFd socket) {
  if (listeners_.empty()) return RefuseCaller(socket.get(), NetStatus::kNobody);
  AnswerCaller(
      strangers_, std::move(socket), [this](const NetCaller& caller) { return DecideOn(caller); },
      [this](UniqueFd welcomed, const NetCaller& caller) {
        Welcomed(std::move(welcomed), caller);
      });
}

Welcome RemoteLinks::DecideOn(const NetCaller& caller) {
  const Peer peer{ToHost(caller.own), ToHost(caller.gid), caller.opening.slot};
  Welcome welcome;
  welcome.incarnation = incarnation_;
  const LockGuard guard(mutex_);
  welcome.dialed = dials_;
  if (caller.opening.kind != NetKind::kLink || caller.opening.target != nic_->slot()) {
    welcome.status = NetStatus::kNobody;
    return welcome;
  }
  const auto found = entries_.find(peer);
  if (found == entries_.end()) return welcome;
  const Entry& entry = found->second;
  const Link::State state = entry.link->state();
  if (state == Link::State::kUp && entry.incarnation == caller.opening.incarnation &&
      caller.opening.dial <= entry.dialed) {
    welcome.status = NetStatus::kStale;
  } else if (state == Link::State::kConnecting && entry.dial != 0 && IsLower(peer)) {
    welcome.status = NetStatus::kBusy;
  }
  return welcome;
}

void RemoteLinks::Welcomed(UniqueFd socket, const NetCaller& caller) {
  const NetOpening& opening = caller.opening;
  std::shared_ptr<Link> link, old;
  bool is_new = false;
  {
    const LockGuard guard(mutex_);
    Entry& entry = entries_[{ToHost(caller.own), ToHost(caller.gid), opening.slot}];
    if (entry.link && entry.link->state() == Link::State::kUp) old = std::exchange(entry.link, {});
    is_new = !entry.link || entry.link->state() == Link::State::kDown;
    link = is_new ? std::make_shared<Link>(opening.slot, /*remote=*/true) : entry.link;
    entry = {.link = link, .incarnation = opening.incarnation, .dialed = opening.dial};
  }
  if (old) {
    Abort(*old);
    End(old);
  }
  if (is_new) nic_->engine().AddLink(link);
  if (!TakeUp(link, std::move(socket))) End(link);
}

bool RemoteLinks::TakeUp(const std::shared_ptr<Link>& link, UniqueFd socket) {
  const int fd = socket.get();
  SetOption(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, kUnsentMax);
  SetOption(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  if (!link->AttachRemote(std::move(socket))) return false;
  link->SetWatch(Loop::Get().Add(fd, EPOLLIN, [this, link](uint32_t events) {
    if ((events & EPOLLOUT) != 0) link->pump()->Flush();
    nic_->engine().OnDoorbell();
  }));
  link->pump()->SetWatch(link->watch());
  link->pump()->Flush();
  // Queue pairs may wait for the link.
  nic_->engine().OnDoorbell();
  return true;
}

std::shared_ptr<Link> RemoteLinks::FindLink(const Link& link) {
  const LockGuard guard(mutex_);
  for (const auto& [peer, entry] : entries_) {
    if (entry.link.get() == &link) return entry.link;
  }
  return nullptr;
}

void RemoteLinks::Abort(Link& link) {
  if (link.GoDown() == Link::State::kUp) link.pump()->Abort();
  Drop(link);
}

void RemoteLinks::Drop(Link& link) {
  if (std::shared_ptr<Link> found = FindLink(link)) {
    Loop::Get().Post([this, found] {
      if (FindLink(*found)) End(found);
    });
  }
}

void RemoteLinks::End(const std::shared_ptr<Link>& link) {
  const std::shared_ptr<Link> keep = link;  // `link` may belong to the handler that Remove destroys
  {
    const LockGuard guard(mutex_);
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const auto& each) { return each.second.link == keep; });
    if (found != entries_.end()) entries_.erase(found);
  }
  Loop::Get().Remove(keep->watch());
  keep->SetWatch(0);
  Report("link to process slot %u of another host ended", keep->peer_slot());
  nic_->engine().RemoveLink(keep);
}

}  // namespace softverbs
