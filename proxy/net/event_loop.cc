#include "proxy/net/event_loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet::proxy {
namespace {

constexpr int kEventsMax = 64;
constexpr int kAcceptsMax = 16;  // in one round
constexpr int kSleepMsMax = 1000;

void Watch(int epoll, int fd, uint32_t events, void* data) {
  epoll_event event{.events = events, .data = {.ptr = data}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create(std::unique_ptr<AsyncClient> client,
                                                             const Options& options) {
  std::unique_ptr<EventLoop> loop(new EventLoop(std::move(client), options));
  loop->epoll_ = epoll_create1(EPOLL_CLOEXEC);
  loop->stop_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (loop->epoll_ < 0 || loop->stop_fd_ < 0) {
    return absl::ResourceExhaustedError(absl::StrCat("epoll: ", std::strerror(errno)));
  }
  Watch(loop->epoll_, loop->stop_fd_, EPOLLIN, &loop->stopping_);
  Watch(loop->epoll_, loop->client_->fd(), EPOLLIN, loop->client_.get());
  for (const Listener* listener : options.listeners) {
    // Of the threads that sleep, one is woken.
    Watch(loop->epoll_, listener->fd(), EPOLLIN | EPOLLEXCLUSIVE, const_cast<Listener*>(listener));
  }
  return loop;
}

EventLoop::EventLoop(std::unique_ptr<AsyncClient> client, const Options& options)
    : options_(options), client_(std::move(client)), store_(*client_) {}

// Waits for the jobs whose buffers the store may still use.
EventLoop::~EventLoop() {
  connections_.clear();
  while (!store_.idle()) {
    PollStore();
    Sleep();
  }
  if (epoll_ >= 0) close(epoll_);
  if (stop_fd_ >= 0) close(stop_fd_);
}

void EventLoop::Stop() {
  stopping_.store(true, std::memory_order_relaxed);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = write(stop_fd_, &one, sizeof(one));
}

void EventLoop::Run() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    rounds_.Add();
    PollStore();
    AdvanceDirty();
    if (store_.has_begun()) continue;
    Sleep();
  }
}

void EventLoop::PollStore() {
  store_.Poll(&finished_);
  for (Job* job : finished_) {
    auto* connection = static_cast<Connection*>(job->owner);
    if (connection == nullptr) {
      pool_.Give(job);
      continue;
    }
    connection->OnFinished(*job);
    MarkDirty(connection);
  }
  finished_.clear();
}

void EventLoop::MarkDirty(Connection* connection) {
  if (std::exchange(connection->dirty, true)) return;
  dirty_.push_back(connection);
}

void EventLoop::AdvanceDirty() {
  for (Connection* connection : dirty_) {
    connection->dirty = false;
    if (connection->Advance()) continue;
    connections_.erase(connection);
    options_.counters->connections.Subtract();
  }
  dirty_.clear();
}

void EventLoop::Sleep() {
  if (client_->Arm()) return;
  std::array<epoll_event, kEventsMax> events;
  const int n = epoll_wait(epoll_, events.data(), kEventsMax, kSleepMsMax);
  for (int i = 0; i < n; ++i) {
    void* const what = events[static_cast<size_t>(i)].data.ptr;
    if (what == &stopping_ || what == client_.get()) continue;
    bool is_listener = false;
    for (const Listener* listener : options_.listeners) {
      if (what != listener) continue;
      is_listener = true;
      Accept(*listener);
    }
    if (is_listener) continue;
    auto* connection = static_cast<Connection*>(what);
    const uint32_t seen = events[static_cast<size_t>(i)].events;
    if ((seen & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) connection->Read();
    if ((seen & (EPOLLHUP | EPOLLERR)) != 0) connection->Break();
    MarkDirty(connection);
  }
}

bool EventLoop::HasRoom() const {
  return options_.service->Sum(&Counters::connections) < options_.connections_max;
}

void EventLoop::Accept(const Listener& listener) {
  for (int i = 0; i < kAcceptsMax && !stopping_.load(std::memory_order_relaxed); ++i) {
    const int fd = accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
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
    auto connection = std::make_unique<Connection>(
        fd, id, options_.protocol,
        Connection::Place{&store_, &pool_, options_.service, options_.counters, epoll_});
    Connection* const key = connection.get();
    connections_.emplace(key, std::move(connection));
    options_.counters->connections.Add();
    options_.counters->connections_made.Add();
  }
}

}  // namespace gannet::proxy
