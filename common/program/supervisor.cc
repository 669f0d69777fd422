#include "common/program/supervisor.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"

namespace gannet {
namespace {

// Returns the number that a variable of the environment holds, or 0.
int64_t NumberFrom(const char* variable) {
  int64_t number = 0;
  const char* text = std::getenv(variable);
  return text != nullptr && absl::SimpleAtoi(text, &number) ? std::max<int64_t>(number, 0) : 0;
}

// Returns half of the watchdog's time, or 0 if there is none for this process.
int64_t BeatNs() {
  const int64_t process = NumberFrom("WATCHDOG_PID");
  if (process != 0 && process != getpid()) return 0;
  constexpr int64_t kUsMost = int64_t{1} << 40;  // twelve days: far from an overflow
  return std::min(NumberFrom("WATCHDOG_USEC"), kUsMost) * kNsPerUs / 2;
}

}  // namespace

Supervisor Supervisor::FromEnvironment() {
  Supervisor supervisor;
  const char* address = std::getenv("NOTIFY_SOCKET");
  // A path, or a name in the abstract namespace behind an '@'.
  if (address == nullptr || (*address != '/' && *address != '@')) return supervisor;
  if (std::strlen(address) >= sizeof(sockaddr_un::sun_path)) return supervisor;
  supervisor.fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (supervisor.fd_ < 0) return supervisor;
  supervisor.address_ = address;
  if (*address == '@') supervisor.address_[0] = '\0';
  supervisor.beat_ns_ = BeatNs();
  return supervisor;
}

Supervisor::Supervisor(Supervisor&& other) noexcept
    : address_(std::move(other.address_)),
      fd_(std::exchange(other.fd_, -1)),
      beat_ns_(std::exchange(other.beat_ns_, 0)) {}

Supervisor::~Supervisor() {
  if (fd_ >= 0) close(fd_);
}

void Supervisor::Ready(std::string_view status) const {
  if (fd_ >= 0) Send(absl::StrCat("READY=1\nSTATUS=", std::string(status)));
}

void Supervisor::NeedsTime(std::string_view status, int64_t ns) const {
  if (fd_ < 0) return;
  Send(absl::StrCat("EXTEND_TIMEOUT_USEC=", ns / kNsPerUs, "\nSTATUS=", std::string(status)));
}

void Supervisor::Stopping() const { Send("STOPPING=1"); }

void Supervisor::Alive() const { Send("WATCHDOG=1"); }

void Supervisor::Send(std::string_view message) const {
  if (fd_ < 0) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  // With the NUL behind a path, without one behind an abstract name, whose length counts.
  const size_t size = offsetof(sockaddr_un, sun_path) + address_.size() + (to.sun_path[0] != '\0');
  // Not waiting for a supervisor that reads nothing: the thread that beats also accepts clients.
  [[maybe_unused]] const ssize_t sent =
      sendto(fd_, message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
             reinterpret_cast<const sockaddr*>(&to), static_cast<socklen_t>(size));
}

}  // namespace gannet
