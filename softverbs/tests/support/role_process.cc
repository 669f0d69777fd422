#include "softverbs/tests/support/role_process.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <string_view>

namespace test_support {
namespace {

constexpr std::string_view kFlag = "--role=";

std::map<std::string, Role, std::less<>>& Roles() {
  static std::map<std::string, Role, std::less<>> roles;
  return roles;
}

}  // namespace

RegisterRole::RegisterRole(const char* name, Role role) { Roles()[name] = role; }

std::string RoleArgument(const std::string& role) { return std::string(kFlag) + role; }

std::optional<int> RunRole(int argc, char** argv) {
  if (argc != 2 || !std::string_view(argv[1]).starts_with(kFlag)) return std::nullopt;
  const auto found = Roles().find(std::string_view(argv[1]).substr(kFlag.size()));
  if (found == Roles().end()) return std::nullopt;
  return found->second(ChildProcess::kPassedDescriptor);
}

void SendBytes(int socket, const void* data, size_t size) {
  EXPECT_EQ(send(socket, data, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
}

bool ReceiveBytes(int socket, void* data, size_t size) {
  const ssize_t received = recv(socket, data, size, MSG_WAITALL);
  EXPECT_TRUE(received == 0 || received == static_cast<ssize_t>(size));
  return received == static_cast<ssize_t>(size);
}

RoleProcess::Sockets::Sockets() {
  int pair[2] = {-1, -1};
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  ours = pair[0];
  its = pair[1];
}

RoleProcess::RoleProcess(const std::string& role)
    : process_({.argv = {OwnPath(), RoleArgument(role)},
                .streams = ChildProcess::Streams::kInherited,
                .passed = sockets_.its}) {
  close(sockets_.its);
}

RoleProcess::~RoleProcess() {
  process_.Kill();
  if (sockets_.ours >= 0) close(sockets_.ours);
}

std::optional<int> RoleProcess::Finish() {
  close(sockets_.ours);
  sockets_.ours = -1;
  return process_.Wait();
}

}  // namespace test_support
