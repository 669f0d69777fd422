#include "tests/softverbs/support/child.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

extern char** environ;

namespace softverbs {
namespace {

constexpr int kChildSocket = 3;
constexpr char kFlag[] = "--role=";

std::map<std::string, Role>& Roles() {
  static std::map<std::string, Role> roles;
  return roles;
}

}  // namespace

RegisterRole::RegisterRole(const char* name, Role role) { Roles()[name] = role; }

int RunRole(const char* argument) {
  if (strncmp(argument, kFlag, strlen(kFlag)) != 0) return -1;
  return Roles().at(argument + strlen(kFlag))(kChildSocket);
}

void SendBytes(int socket, const void* data, size_t size) {
  EXPECT_EQ(send(socket, data, size, MSG_NOSIGNAL), static_cast<ssize_t>(size));
}

bool ReceiveBytes(int socket, void* data, size_t size) {
  const ssize_t received = recv(socket, data, size, MSG_WAITALL);
  EXPECT_TRUE(received == 0 || received == static_cast<ssize_t>(size));
  return received == static_cast<ssize_t>(size);
}

Child::Child(const std::string& role) {
  int pair[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const std::string flag = kFlag + role;
  char name[] = "child";
  char* argv[] = {name, const_cast<char*>(flag.c_str()), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // dup2 onto itself clears close-on-exec there, too.
  posix_spawn_file_actions_adddup2(&actions, pair[1], kChildSocket);
  EXPECT_EQ(posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv, environ), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(pair[1]);
  socket_ = pair[0];
}

Child::~Child() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (socket_ >= 0) close(socket_);
}

void Child::Signal(int signal) {
  ASSERT_EQ(kill(pid_, signal), 0);
  if (signal != SIGSTOP) return;
  int status = 0;
  ASSERT_EQ(waitpid(pid_, &status, WUNTRACED), pid_);
  ASSERT_TRUE(WIFSTOPPED(status));
}

int Child::Finish() {
  close(socket_);
  socket_ = -1;
  int status = 0;
  EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

}  // namespace softverbs
