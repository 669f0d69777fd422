#ifndef GANNET_PROXY_NET_APPLICATION_LISTENER_H_
#define GANNET_PROXY_NET_APPLICATION_LISTENER_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace gannet::proxy {

// A socket that accepts applications: TCP, or a UNIX socket with a path. Destruction closes it, and
// removes the path.
class ApplicationListener {
 public:
  struct Options {
    // "HOST:PORT", "[IPV6]:PORT", or "unix:PATH".
    std::string address;
    // Whether to allow addresses other than loopback. Applications are not authenticated.
    bool allow_remote = false;
    mode_t socket_mode = 0700;  // of a UNIX socket
  };
  // Replaces a UNIX socket that nobody listens on any more. InvalidArgument: the address is wrong,
  // or reachable from other hosts. Unavailable: it is in use, or cannot be had.
  static absl::StatusOr<std::unique_ptr<ApplicationListener>> Create(const Options& options);
  ~ApplicationListener();
  ApplicationListener(const ApplicationListener&) = delete;
  ApplicationListener& operator=(const ApplicationListener&) = delete;

  int fd() const { return fd_; }
  bool is_tcp() const { return path_.empty(); }
  // As in Options, with the port that was chosen if it was 0.
  const std::string& address() const { return address_; }

 private:
  ApplicationListener() = default;
  absl::Status ListenTcp(const Options& options);
  absl::Status ListenUnix(const Options& options);

  int fd_ = -1;
  std::string path_;
  std::string address_;
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_NET_APPLICATION_LISTENER_H_
