#include "tests/conformance/tool_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

extern char** environ;

namespace conformance {
namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(5);

// Returns the path of softverbs-run in build/<preset>/bin. This program is in build/<preset>/tests.
std::string Launcher() {
  char path[PATH_MAX] = "";
  if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0) return "";
  const std::string self = path;
  return self.substr(0, self.rfind('/')) + "/../bin/softverbs-run";
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, separator);) {
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

std::string ReadAll(int file) {
  std::string text;
  char chunk[4096];
  for (off_t at = 0;;) {
    const ssize_t got = pread(file, chunk, sizeof(chunk), at);
    if (got <= 0) return text;
    text.append(chunk, static_cast<size_t>(got));
    at += got;
  }
}

}  // namespace

ToolProcess::ToolProcess(const std::string& command)
    : output_(memfd_create("output", MFD_CLOEXEC)), errors_(memfd_create("errors", MFD_CLOEXEC)) {
  fcntl(output_, F_SETFL, O_APPEND);
  fcntl(errors_, F_SETFL, O_APPEND);
  std::vector<std::string> words = Split(command, ' ');
  words.insert(words.begin(), Launcher());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output_, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, errors_, STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // a group of its own, to kill
  EXPECT_EQ(posix_spawn(&pid_, argv[0], &actions, &attributes, argv.data(), environ), 0) << argv[0];
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
}

ToolProcess::~ToolProcess() {
  Kill();
  close(output_);
  close(errors_);
}

bool ToolProcess::WaitForEnd(std::chrono::seconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (pid_ > 0) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      crashed_ = WIFSIGNALED(status);
      exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      pid_ = -1;
    } else if (std::chrono::steady_clock::now() >= deadline) {
      return false;
    } else {
      std::this_thread::sleep_for(kPollInterval);
    }
  }
  return true;
}

void ToolProcess::Kill() {
  if (pid_ <= 0) return;
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

std::string ToolProcess::Output() const { return ReadAll(output_) + ReadAll(errors_); }

int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size), 0);
  close(fd);
  return ntohs(address.sin_port);
}

bool TcpListens(int port) {
  constexpr unsigned kListen = 0x0a;
  for (const char* list : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream in(list);
    for (std::string line; std::getline(in, line);) {
      unsigned local_port = 0, state = 0;
      if (sscanf(line.c_str(), "%*s %*[^:]:%x %*s %x", &local_port, &state) == 2 &&
          state == kListen && local_port == static_cast<unsigned>(port)) {
        return true;
      }
    }
  }
  return false;
}

bool RdmaListens(int port) {
  constexpr unsigned kAcceptsConnections = 0x10000;
  const std::string slash_port = "/" + std::to_string(port);
  std::ifstream in("/proc/net/unix");
  for (std::string line; std::getline(in, line);) {
    unsigned flags = 0;
    if (line.find("@softverbs/cm/") == std::string::npos) continue;
    if (!line.ends_with(slash_port) && !line.ends_with(slash_port + "/v6only")) continue;
    if (sscanf(line.c_str(), "%*s %*s %*s %x", &flags) == 1 && (flags & kAcceptsConnections)) {
      return true;
    }
  }
  return false;
}

std::string GroupOf(int port) {
  return "239.77." + std::to_string(port >> 8) + "." + std::to_string(port & 0xff);
}

bool GroupHasMember(int port) {
  char name[64];
  snprintf(name, sizeof(name), "@softverbs/mcast/00000000000000000000ffffef4d%04x/", port);
  std::ifstream in("/proc/net/unix");
  for (std::string line; std::getline(in, line);) {
    if (line.find(name) != std::string::npos) return true;
  }
  return false;
}

bool Installed(const std::string& program) {
  if (program.starts_with("/")) return access(program.c_str(), X_OK) == 0;
  const char* path = getenv("PATH");
  for (const std::string& folder : Split(path == nullptr ? "" : path, ':')) {
    if (access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

}  // namespace conformance
