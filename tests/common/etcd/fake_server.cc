#include "tests/common/etcd/fake_server.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gannet {
namespace {

// Returns the length of the first request in `text`, or 0 if it has not come as a whole.
size_t RequestBytes(const std::string& text) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  constexpr std::string_view kLength = "Content-Length: ";
  const size_t end = text.find(kEnd);
  const size_t length = text.find(kLength);
  if (end == std::string::npos || length == std::string::npos) return 0;
  const size_t bytes =
      end + kEnd.size() + std::strtoull(text.c_str() + length + kLength.size(), nullptr, 10);
  return bytes <= text.size() ? bytes : 0;
}

bool SendAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

}  // namespace

FakeServer::FakeServer(Script script) : script_(std::move(script)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(listener_, SOMAXCONN), 0);
  EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
  port_ = ntohs(address.sin_port);
  EXPECT_EQ(pipe(stop_), 0);
  thread_ = std::thread([this] { Run(); });
}

FakeServer::~FakeServer() {
  close(stop_[1]);
  thread_.join();
  close(stop_[0]);
  close(listener_);
}

std::string FakeServer::Url() const { return absl::StrCat("http://127.0.0.1:", port_); }

std::string FakeServer::Http(const std::string& body, const std::string& status) {
  return absl::StrCat("HTTP/1.1 ", status, "\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
}

void FakeServer::Run() {
  std::vector<Connection> connections;
  for (;;) {
    std::vector<pollfd> waiting = {{.fd = stop_[0], .events = POLLIN},
                                   {.fd = listener_, .events = POLLIN}};
    for (const Connection& it : connections) waiting.push_back({.fd = it.fd, .events = POLLIN});
    poll(waiting.data(), waiting.size(), -1);
    if (waiting[0].revents != 0) break;
    for (size_t i = connections.size(); i-- > 0;) {
      if (waiting[i + 2].revents == 0 || Serve(&connections[i])) continue;
      close(connections[i].fd);
      connections.erase(connections.begin() + static_cast<ptrdiff_t>(i));
    }
    if (waiting[1].revents != 0) {
      connections.push_back({.fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC)});
    }
  }
  for (const Connection& it : connections) close(it.fd);
}

bool FakeServer::Serve(Connection* connection) {
  char piece[4096];
  const ssize_t n = recv(connection->fd, piece, sizeof(piece), 0);
  if (n <= 0) return false;
  connection->received.append(piece, static_cast<size_t>(n));
  while (const size_t bytes = RequestBytes(connection->received)) {
    requests_.fetch_add(1, std::memory_order_relaxed);
    const Answer answer = script_(connection->received.substr(0, bytes));
    connection->received.erase(0, bytes);
    for (uint64_t i = 0; i < answer.times; ++i) {
      if (!SendAll(connection->fd, answer.bytes)) return false;
    }
    if (answer.close) return false;
  }
  return true;
}

}  // namespace gannet
