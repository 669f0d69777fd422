#include "proxy/net/application_listener.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace gannet::proxy {
namespace {

constexpr int kBacklog = 511;

absl::Status Errno(const std::string& what) {
  return absl::UnavailableError(absl::StrCat(what, ": ", std::strerror(errno)));
}

bool IsLoopback(const sockaddr* address) {
  if (address->sa_family == AF_INET) {
    const auto* ip = reinterpret_cast<const sockaddr_in*>(address);
    return ntohl(ip->sin_addr.s_addr) >> 24 == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

absl::StatusOr<Addresses> Resolve(const std::string& address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen=", address, ": HOST:PORT or unix:PATH"));
  }
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                                address.substr(colon + 1).c_str(), &hints, &found);
  if (error != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen=", address, ": ", gai_strerror(error)));
  }
  return Addresses(found);
}

// Returns whether somebody accepts connections at the path.
bool IsServed(const sockaddr_un& address) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool served =
      connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return served;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ApplicationListener>> ApplicationListener::Create(
    const Options& options) {
  std::unique_ptr<ApplicationListener> listener(new ApplicationListener);
  GANNET_RETURN_IF_ERROR(options.address.starts_with("unix:") ? listener->ListenUnix(options)
                                                              : listener->ListenTcp(options));
  return listener;
}

ApplicationListener::~ApplicationListener() {
  if (fd_ >= 0) close(fd_);
  if (fd_ >= 0 && !path_.empty()) unlink(path_.c_str());
}

absl::Status ApplicationListener::ListenTcp(const Options& options) {
  GANNET_ASSIGN_OR_RETURN(const Addresses found, Resolve(options.address));
  if (!options.allow_remote && !IsLoopback(found->ai_addr)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen=", options.address,
        ": other hosts could reach this address, and nobody is authenticated here. Listen on "
        "127.0.0.1 or unix:PATH, or say --allow_remote"));
  }
  fd_ = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return Errno("socket");
  const int on = 1;
  setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(fd_, found->ai_addr, found->ai_addrlen) != 0 || listen(fd_, kBacklog) != 0) {
    return Errno(absl::StrCat("cannot listen on ", options.address));
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &size);
  const uint16_t port =
      ntohs(bound.ss_family == AF_INET ? reinterpret_cast<const sockaddr_in&>(bound).sin_port
                                       : reinterpret_cast<const sockaddr_in6&>(bound).sin6_port);
  address_ = absl::StrCat(options.address.substr(0, options.address.rfind(':')), ":", port);
  return absl::OkStatus();
}

absl::Status ApplicationListener::ListenUnix(const Options& options) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = options.address.substr(std::strlen("unix:"));
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--listen=", options.address, ": a path of 1 to ", sizeof(address.sun_path) - 1, " bytes"));
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  struct stat status {};
  if (lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
    if (IsServed(address)) {
      return absl::UnavailableError(absl::StrCat(path, ": another process listens there"));
    }
    unlink(path.c_str());
  }
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return Errno("socket");
  // Nobody can connect before the mode is set, because nothing listens until then.
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      chmod(path.c_str(), options.socket_mode) != 0 || listen(fd, kBacklog) != 0) {
    const absl::Status status_of_bind = Errno(absl::StrCat("cannot listen on ", path));
    close(fd);
    return status_of_bind;
  }
  fd_ = fd;
  path_ = path;
  address_ = options.address;
  return absl::OkStatus();
}

}  // namespace gannet::proxy
