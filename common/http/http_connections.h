#ifndef GANNET_COMMON_HTTP_HTTP_CONNECTIONS_H_
#define GANNET_COMMON_HTTP_HTTP_CONNECTIONS_H_

#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <deque>

namespace gannet {

// The sockets of an HTTP server, the oldest first. If one more comes than there may be, the oldest
// is shut down. A request that is sent as a whole is answered at once and its socket closed, so
// the oldest ones are those that send nothing, or read nothing. So nobody can keep others from
// being answered by holding sockets, whatever their address. One thread.
class HttpConnections {
 public:
  static constexpr size_t kMax = 64;

  void Opened(int fd) {
    if (fds_.size() == kMax) {
      shutdown(fds_.front(), SHUT_RDWR);  // its owner reads the end, and closes it
      fds_.pop_front();
    }
    fds_.push_back(fd);
  }
  void Closed(int fd) { std::erase(fds_, fd); }

 private:
  std::deque<int> fds_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_HTTP_HTTP_CONNECTIONS_H_
