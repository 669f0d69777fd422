#include "proxy/net/event_loop.h"

#include <glog/logging.h>
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "proxy/jobs/client_list.h"

namespace gannet::proxy {
namespace {

constexpr int kEventsMax = 64;
constexpr int kAcceptsMax = 16;  // in one round
constexpr int kSleepMsMax = 1000;
// Other threads may give memory back, and they do not wake this one.
constexpr int kSleepMsWhileShort = 10;
constexpr int64_t kShortageMsMax = 1000;
constexpr int64_t kServersToldMs = 250;
// Without descriptors it accepts nobody for so long, or until a connection ends.
constexpr int64_t kNoAcceptMs = 100;
constexpr int64_t kNoAcceptToldMs = 60'000;

int64_t NowMs() {
  using std::chrono::steady_clock;
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             steady_clock::now().time_since_epoch())
      .count();
}

void Watch(int epoll, int fd, uint32_t events, void* data) {
  epoll_event event{.events = events, .data = {.ptr = data}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

std::string AddressText(const sockaddr_storage& address, socklen_t bytes) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), bytes, host, sizeof(host), port,
                  sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return "?";
  }
  return address.ss_family == AF_INET6 ? absl::StrCat("[", host, "]:", port)
                                       : absl::StrCat(host, ":", port);
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create(std::unique_ptr<AsyncClient> client,
                                                             const Options& options) {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<WalkInbox> walks, WalkInbox::Create());
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<WakeUp> stop, WakeUp::Create());
  std::unique_ptr<EventLoop> loop(
      new EventLoop(std::move(client), options, std::move(walks), std::move(stop)));
  loop->epoll_ = epoll_create1(EPOLL_CLOEXEC);
  if (loop->epoll_ < 0) {
    return absl::ResourceExhaustedError(absl::StrCat("epoll: ", std::strerror(errno)));
  }
  Watch(loop->epoll_, loop->stop_->fd(), EPOLLIN, &loop->stopping_);
  Watch(loop->epoll_, loop->walk_inbox_->fd(), EPOLLIN, loop->walk_inbox_.get());
  Watch(loop->epoll_, loop->client_->fd(), EPOLLIN, loop->client_.get());
  loop->WatchListeners();
  loop->now_ms_ = NowMs();
  loop->Publish();
  return loop;
}

EventLoop::EventLoop(std::unique_ptr<AsyncClient> client, const Options& options,
                     std::unique_ptr<WalkInbox> walks, std::unique_ptr<WakeUp> stop)
    : options_(options),
      client_(std::move(client)),
      walk_inbox_(std::move(walks)),
      stop_(std::move(stop)),
      memory_(*options.memory),
      orphans_(&memory_),
      store_(*client_, *options.walks, *walk_inbox_) {}

// Waits for the jobs whose buffers the store may still use.
EventLoop::~EventLoop() {
  connections_.clear();
  while (!store_.idle()) {
    PollStore();
    Sleep();
  }
  if (epoll_ >= 0) close(epoll_);
}

void EventLoop::WatchListeners() {
  no_accept_until_ms_ = 0;
  for (const ApplicationListener* listener : options_.listeners) {
    // Wakes only one of the threads that sleep.
    Watch(epoll_, listener->fd(), EPOLLIN | EPOLLEXCLUSIVE,
          const_cast<ApplicationListener*>(listener));
  }
}

// The connection that cannot be accepted would wake this thread at once, again and again.
void EventLoop::PauseAccepting(int error) {
  for (const ApplicationListener* listener : options_.listeners) {
    epoll_ctl(epoll_, EPOLL_CTL_DEL, listener->fd(), nullptr);
  }
  no_accept_until_ms_ = now_ms_ + kNoAcceptMs;
  if (no_accept_told_ms_ != 0 && now_ms_ - no_accept_told_ms_ < kNoAcceptToldMs) return;
  no_accept_told_ms_ = now_ms_;
  LOG(ERROR) << "no connection can be accepted: " << std::strerror(error) << ", with "
             << options_.service->Sum(&Counters::connections)
             << " connections. Raise the limit of open files (ulimit -n, LimitNOFILE=)";
}

void EventLoop::Stop() {
  stopping_.store(true, std::memory_order_relaxed);
  stop_->Ask();
}

void EventLoop::Run() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    rounds_.Add();
    PollStore();
    now_ms_ = NowMs();
    Publish();
    if (no_accept_until_ms_ != 0 && now_ms_ >= no_accept_until_ms_) WatchListeners();
    AdvanceDirty();
    FeedHungry();
    WatchShortage();
    if (store_.has_begun() || !dirty_.empty()) continue;
    Sleep();
  }
}

void EventLoop::Publish() {
  status_.round_ms.Set(static_cast<uint64_t>(now_ms_));
  status_.in_flight.Set(client_->in_flight());
  status_.queued.Set(store_.queued_operations());
  status_.for_memory.Set(store_.short_operations());
  if (!options_.is_watched || now_ms_ - servers_told_ms_ < kServersToldMs) return;
  servers_told_ms_ = now_ms_;
  status_.SetServers(client_->Info());
}

void EventLoop::PollStore() {
  store_.Poll(&finished_);
  TakeFinished();
}

void EventLoop::TakeFinished() {
  for (Job* job : finished_) {
    auto* connection = static_cast<ApplicationConnection*>(job->owner);
    if (connection == nullptr) {
      pool_.Give(job);
      continue;
    }
    connection->OnFinished(*job);
    MarkDirty(connection);
  }
  finished_.clear();
}

void EventLoop::MarkDirty(ApplicationConnection* connection) {
  if (std::exchange(connection->dirty, true)) return;
  dirty_.push_back(connection);
}

void EventLoop::AdvanceDirty() {
  for (ApplicationConnection* connection : dirty_) {
    connection->dirty = false;
    if (!connection->Advance(now_ms_)) {
      Close(connection);
    } else if (connection->hungry() && !std::exchange(connection->in_line, true)) {
      hungry_.push_back(connection);
    }
  }
  dirty_.clear();
}

void EventLoop::Close(ApplicationConnection* connection) {
  std::erase(hungry_, connection);
  connections_.erase(connection);
  options_.counters->connections.Subtract();
  if (no_accept_until_ms_ != 0) no_accept_until_ms_ = now_ms_;
}

// --- memory ---

// Who wants much is fed in the order of asking. Who wants little overtakes them.
void EventLoop::FeedHungry() {
  bool much_waits = false;
  for (size_t n = hungry_.size(); n > 0; --n) {
    ApplicationConnection* connection = hungry_.front();
    hungry_.pop_front();
    const bool wants_much = connection->wants_much();
    const bool tries = !(wants_much && much_waits);
    if (!tries || (!connection->Feed() && connection->hungry())) {
      much_waits = much_waits || wants_much;
      hungry_.push_back(connection);
      continue;
    }
    connection->in_line = false;
    ++grants_;
    MarkDirty(connection);
  }
}

void EventLoop::WatchShortage() {
  MemoryLimit& limit = *options_.memory;
  const bool is_short = store_.is_short() || !hungry_.empty();
  const uint64_t grants = store_.grants() + grants_;
  const bool gets_on = grants != std::exchange(grants_seen_, grants);
  if (is_short && (gets_on || limit.short_since_ms() == 0)) limit.SetShortSince(now_ms_);
  if (!is_short && is_short_) limit.SetShortSince(0);
  is_short_ = is_short;
  const int64_t since_ms = limit.short_since_ms();
  if (since_ms == 0 || now_ms_ - since_ms < kShortageMsMax) return;
  if (!CloseIdle() && is_short_) CloseLargest();
  if (is_short_) limit.SetShortSince(now_ms_);
}

bool EventLoop::CloseIdle() {
  bool any = false;
  for (const auto& [connection, owned] : connections_) {
    if (!connection->IsIdle(now_ms_, kShortageMsMax)) continue;
    CloseForMemory(connection, "idle");
    any = true;
  }
  return any;
}

// If only the largest one waits, it waits for its own replies to be read, which goes on.
void EventLoop::CloseLargest() {
  ApplicationConnection* largest = nullptr;
  for (const auto& [connection, owned] : connections_) {
    if (largest == nullptr || connection->holder().held() > largest->holder().held()) {
      largest = connection;
    }
  }
  if (largest == nullptr || largest->holder().held() == 0) return;
  const bool others_wait =
      store_.IsShortFor(largest->holder()) ||
      std::any_of(hungry_.begin(), hungry_.end(), [&](auto* one) { return one != largest; });
  if (others_wait) CloseForMemory(largest, "the largest");
}

void EventLoop::CloseForMemory(ApplicationConnection* connection, const char* which) {
  LOG(WARNING) << "--buffers is used up: closing a connection (" << which << ", id "
               << connection->id() << ") that holds " << connection->holder().held() << " bytes";
  connection->Break();
  MarkDirty(connection);
}

void EventLoop::Sleep() {
  if (memory_.HasShrunk()) malloc_trim(0);
  if (client_->Arm()) return;
  std::array<epoll_event, kEventsMax> events;
  const int sleep_ms = is_short_                  ? kSleepMsWhileShort
                       : no_accept_until_ms_ != 0 ? static_cast<int>(kNoAcceptMs)
                                                  : kSleepMsMax;
  const int n = epoll_wait(epoll_, events.data(), kEventsMax, sleep_ms);
  for (int i = 0; i < n; ++i) {
    void* const what = events[static_cast<size_t>(i)].data.ptr;
    if (what == &stopping_ || what == client_.get()) continue;
    if (what == walk_inbox_.get()) {
      store_.TakeWalks(&finished_);
      TakeFinished();
      continue;
    }
    bool is_listener = false;
    for (const ApplicationListener* listener : options_.listeners) {
      if (what != listener) continue;
      is_listener = true;
      Accept(*listener);
    }
    if (is_listener) continue;
    auto* connection = static_cast<ApplicationConnection*>(what);
    const uint32_t seen = events[static_cast<size_t>(i)].events;
    if ((seen & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) connection->Read(now_ms_);
    if ((seen & (EPOLLHUP | EPOLLERR)) != 0) connection->Break();
    MarkDirty(connection);
  }
}

bool EventLoop::HasRoom() const {
  return options_.service->Sum(&Counters::connections) < options_.connections_max;
}

void EventLoop::Accept(const ApplicationListener& listener) {
  for (int i = 0; i < kAcceptsMax && !stopping_.load(std::memory_order_relaxed); ++i) {
    sockaddr_storage peer{};
    socklen_t peer_bytes = sizeof(peer);
    const int fd = accept4(listener.fd(), reinterpret_cast<sockaddr*>(&peer), &peer_bytes,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      const bool is_short =
          errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
      return is_short ? PauseAccepting(errno) : void();
    }
    if (!HasRoom()) {
      constexpr std::string_view kFull = "-ERR max number of clients reached\r\n";
      [[maybe_unused]] const ssize_t n = send(fd, kFull.data(), kFull.size(), MSG_NOSIGNAL);
      close(fd);
      continue;
    }
    const int on = 1;
    if (listener.is_tcp()) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    // Relaxed: only the numbers must differ.
    const uint64_t id = options_.next_id->fetch_add(1, std::memory_order_relaxed);
    options_.service->clients->Add(
        id, listener.is_tcp() ? AddressText(peer, peer_bytes) : listener.address() + ":0", fd);
    auto connection = std::make_unique<ApplicationConnection>(
        fd, id, options_.protocol,
        ApplicationConnection::Place{&store_, &memory_, &orphans_, &pool_, options_.service,
                                     options_.counters, epoll_});
    ApplicationConnection* const key = connection.get();
    connections_.emplace(key, std::move(connection));
    options_.counters->connections.Add();
    options_.counters->connections_made.Add();
  }
}

}  // namespace gannet::proxy
