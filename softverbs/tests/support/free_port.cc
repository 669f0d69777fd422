#include "softverbs/tests/support/free_port.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>

namespace test_support {
namespace {

// Below those that the system and softverbs give to connections. With one of theirs, somebody who
// connects could get it while a server that a test has killed is away, or even be connected to
// itself.
constexpr uint16_t kFirstPort = 10'000;
constexpr uint16_t kLastPort = 32'767;

// An abstract name stands for the port, so that no other test gets it while nobody listens there.
// Gannet's local_cluster.py takes ports by the same names, and from the same range. It goes with
// this process. Returns false if another process has it.
bool Reserve(uint16_t port) {
  const std::string name = "gannet/port/" + std::to_string(port);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::ranges::copy(name, address.sun_path + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0) return true;
  close(fd);
  return false;
}

bool NobodyListens(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  const bool free = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return free;
}

}  // namespace

uint16_t FreePort() {
  std::random_device random;
  std::uniform_int_distribution<uint16_t> any(kFirstPort, kLastPort);
  for (int tries = 0; tries < 10'000; ++tries) {
    const uint16_t port = any(random);
    if (NobodyListens(port) && Reserve(port)) return port;
  }
  ADD_FAILURE() << "no port is free";
  return 0;
}

}  // namespace test_support
