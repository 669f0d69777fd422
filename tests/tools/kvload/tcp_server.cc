#include "tests/tools/kvload/tcp_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "softverbs/tests/support/free_port.h"

namespace gannet {
namespace {

using test_support::ChildProcess;

bool Accepts(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int result = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  close(fd);
  return result == 0;
}

}  // namespace

TcpServer::TcpServer(const std::vector<std::string>& argv, uint16_t port)
    : process_({.argv = argv, .streams = ChildProcess::Streams::kCaptured}),
      address_("127.0.0.1:" + std::to_string(port)) {}

std::unique_ptr<TcpServer> TcpServer::Start(
    const std::function<std::vector<std::string>(const std::string& port)>& command) {
  constexpr int kPortsTried = 5;
  std::string said;
  for (int i = 0; i < kPortsTried; ++i) {
    const uint16_t port = test_support::FreePort();
    std::unique_ptr<TcpServer> server(new TcpServer(command(std::to_string(port)), port));
    if (server->AwaitAccepting(port)) return server;
    said = server->process_.Stdout() + server->process_.Stderr();
  }
  ADD_FAILURE() << command("PORT")[0] << " did not start:\n" << said;
  return nullptr;
}

// Returns false if it ended instead, or takes too long.
bool TcpServer::AwaitAccepting(uint16_t port) {
  constexpr std::chrono::milliseconds kStep{10};
  const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
  while (std::chrono::steady_clock::now() < give_up) {
    if (process_.Wait(kStep).has_value()) return false;
    if (Accepts(port)) return true;
  }
  return false;
}

TcpServer::~TcpServer() {
  process_.Signal(SIGTERM);
  process_.Wait();
}

}  // namespace gannet
