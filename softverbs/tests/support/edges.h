#ifndef SOFTVERBS_TESTS_SUPPORT_EDGES_H_
#define SOFTVERBS_TESTS_SUPPORT_EDGES_H_

#include <sys/epoll.h>
#include <unistd.h>

#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {

// Waits for a descriptor as an application does that uses EPOLLET.
class Edges {
 public:
  explicit Edges(int fd) : epoll_(epoll_create1(EPOLL_CLOEXEC)) {
    epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.fd = fd}};
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
  }
  ~Edges() { close(epoll_); }
  Edges(const Edges&) = delete;
  Edges& operator=(const Edges&) = delete;

  // Returns false if no edge comes in time.
  bool Next() const {
    epoll_event event;
    return epoll_wait(epoll_, &event, 1, static_cast<int>(kTimeoutNs / 1'000'000)) == 1;
  }

 private:
  const int epoll_;
};

}  // namespace softverbs

#endif  // SOFTVERBS_TESTS_SUPPORT_EDGES_H_
