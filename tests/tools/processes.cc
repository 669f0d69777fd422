#include "tests/tools/processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cstdlib>
#include <utility>

extern char** environ;

namespace gannet {
namespace {

constexpr int kTimeLimitMs = 30'000;
constexpr int kStopLimitMs = 10'000;

// A file descriptor that is closed at the end of its scope.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) { EXPECT_GE(fd, 0); }
  ~Fd() { close(fd_); }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

int MemoryFile(std::string_view content = "") {
  const int fd = memfd_create("test", MFD_CLOEXEC);
  EXPECT_EQ(write(fd, content.data(), content.size()), static_cast<ssize_t>(content.size()));
  lseek(fd, 0, SEEK_SET);
  return fd;
}

std::string Content(int fd) {
  std::string content(static_cast<size_t>(lseek(fd, 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(fd, content.data(), content.size(), 0), static_cast<ssize_t>(content.size()));
  return content;
}

pid_t Spawn(const std::vector<std::string>& words, int in, int out, int err) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  EXPECT_EQ(error, 0) << words[0];
  return error == 0 ? pid : -1;
}

// Returns its exit code as in Finished. Kills it if it still runs after the limit.
int WaitFor(pid_t pid, int limit_ms) {
  if (pid < 0) return -1;
  const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  pollfd ended{pidfd.get(), POLLIN, 0};
  const bool in_time = poll(&ended, 1, limit_ms) == 1;
  if (!in_time) kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  if (!in_time) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

std::string ReadLine(int fd, int limit_ms) {
  std::string line;
  char c = 0;
  pollfd readable{fd, POLLIN, 0};
  while (poll(&readable, 1, limit_ms) == 1 && read(fd, &c, 1) == 1 && c != '\n') line += c;
  return line;
}

sockaddr_in Loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// Returns a port that nobody listens on now. Another process may take it before the caller does;
// then try another.
uint16_t FreePort() {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  EXPECT_EQ(bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  EXPECT_EQ(getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  return ntohs(address.sin_port);
}

bool Accepts(uint16_t port) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = Loopback(port);
  return connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
}

// Waits until it accepts connections. Returns false if it ended instead, or takes too long.
bool AwaitAccepting(pid_t pid, uint16_t port) {
  constexpr int kStepMs = 10;
  const Fd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  pollfd ended{pidfd.get(), POLLIN, 0};
  for (int waited = 0; waited < kTimeLimitMs; waited += kStepMs) {
    if (poll(&ended, 1, kStepMs) == 1) return false;
    if (Accepts(port)) return true;
  }
  return false;
}

}  // namespace

std::string ProgramPath(std::string_view name) {
  return std::string(GANNET_BIN_DIR) + "/" + std::string(name);
}

Finished RunProgram(const std::vector<std::string>& words, std::string_view input) {
  const Fd in(MemoryFile(input));
  const Fd out(MemoryFile());
  const Fd err(MemoryFile());
  Finished finished;
  finished.exit_code = WaitFor(Spawn(words, in.get(), out.get(), err.get()), kTimeLimitMs);
  finished.out = Content(out.get());
  finished.err = Content(err.get());
  return finished;
}

Finished RunOnTerminal(const std::vector<std::string>& words, std::string_view input) {
  const Fd outer(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  EXPECT_EQ(grantpt(outer.get()) | unlockpt(outer.get()), 0);
  Finished finished;
  pid_t pid = -1;
  {
    const Fd inner(open(ptsname(outer.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
    pid = Spawn(words, inner.get(), inner.get(), inner.get());
  }
  EXPECT_EQ(write(outer.get(), input.data(), input.size()), static_cast<ssize_t>(input.size()));
  // Ends, with EIO, once the program has closed its side.
  char block[4096];
  pollfd readable{outer.get(), POLLIN, 0};
  while (poll(&readable, 1, kTimeLimitMs) == 1) {
    const ssize_t n = read(outer.get(), block, sizeof(block));
    if (n <= 0) break;
    finished.out.append(block, static_cast<size_t>(n));
  }
  finished.exit_code = WaitFor(pid, kStopLimitMs);
  return finished;
}

// The terminal must be the program's controlling one, or Ctrl-C signals nobody.
TerminalProgram::TerminalProgram(const std::vector<std::string>& words) {
  terminal_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_EQ(grantpt(terminal_) | unlockpt(terminal_), 0);
  const Fd inner(open(ptsname(terminal_), O_RDWR | O_NOCTTY | O_CLOEXEC));
  std::vector<std::string> with_terminal = {"setsid", "--ctty"};
  with_terminal.insert(with_terminal.end(), words.begin(), words.end());
  pid_ = Spawn(with_terminal, inner.get(), inner.get(), inner.get());
}

TerminalProgram::~TerminalProgram() {
  if (pid_ >= 0) WaitFor(pid_, 0);
  close(terminal_);
}

void TerminalProgram::Type(std::string_view text) const {
  EXPECT_EQ(write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

bool TerminalProgram::Await(std::string_view text, int limit_ms) {
  char block[4096];
  pollfd readable{terminal_, POLLIN, 0};
  for (;;) {
    const size_t at = shown_.find(text);
    if (at != std::string::npos) {
      shown_.erase(0, at + text.size());
      return true;
    }
    if (poll(&readable, 1, limit_ms) != 1) return false;
    const ssize_t n = read(terminal_, block, sizeof(block));
    if (n <= 0) return false;
    shown_.append(block, static_cast<size_t>(n));
  }
}

int TerminalProgram::Wait() {
  while (Await("\n", kStopLimitMs)) {
  }
  return WaitFor(std::exchange(pid_, -1), kStopLimitMs);
}

BackgroundProgram::BackgroundProgram(const std::vector<std::string>& words)
    : out_(MemoryFile()), err_(MemoryFile()) {
  const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  pid_ = Spawn(words, null.get(), out_, err_);
}

BackgroundProgram::~BackgroundProgram() {
  if (pid_ >= 0) WaitFor(pid_, 0);
  close(out_);
  close(err_);
}

bool BackgroundProgram::AwaitStderr(std::string_view text) const {
  constexpr int kStepMs = 10;
  for (int waited = 0; waited < kTimeLimitMs; waited += kStepMs) {
    if (Content(err_).find(text) != std::string::npos) return true;
    poll(nullptr, 0, kStepMs);
  }
  return false;
}

void BackgroundProgram::Signal(int number) const { kill(pid_, number); }

Finished BackgroundProgram::Wait() {
  Finished finished;
  finished.exit_code = WaitFor(std::exchange(pid_, -1), kTimeLimitMs);
  finished.out = Content(out_);
  finished.err = Content(err_);
  return finished;
}

std::unique_ptr<ServerProcess> ServerProcess::Start(std::vector<std::string> flags) {
  std::vector<std::string> words = {ProgramPath("kvserver"), "--listen=127.0.0.1:0",
                                    "--device=soft", "--memory=128M"};
  words.insert(words.end(), flags.begin(), flags.end());
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return nullptr;
  const Fd out(ends[0]);
  std::unique_ptr<ServerProcess> server(new ServerProcess());
  {
    const Fd in(ends[1]);
    const Fd null(open("/dev/null", O_RDONLY | O_CLOEXEC));
    server->pid_ = Spawn(words, null.get(), in.get(), STDERR_FILENO);
  }
  const std::string line = ReadLine(out.get(), kTimeLimitMs);
  const std::string_view ready = "READY ";
  if (!line.starts_with(ready)) {
    ADD_FAILURE() << "kvserver did not start: '" << line << "'";
    return nullptr;
  }
  server->address_ = line.substr(ready.size(), line.find(' ', ready.size()) - ready.size());
  return server;
}

void ServerProcess::Signal(int number) const { kill(pid_, number); }

ServerProcess::~ServerProcess() {
  if (pid_ < 0) return;
  kill(pid_, SIGCONT);
  kill(pid_, SIGTERM);
  WaitFor(pid_, kStopLimitMs);
}

std::unique_ptr<TcpServerProcess> TcpServerProcess::Start(
    const std::function<std::vector<std::string>(const std::string& port)>& command) {
  constexpr int kPortsTried = 5;
  const Fd null(open("/dev/null", O_RDWR | O_CLOEXEC));
  for (int i = 0; i < kPortsTried; ++i) {
    const uint16_t port = FreePort();
    std::unique_ptr<TcpServerProcess> server(new TcpServerProcess());
    server->pid_ = Spawn(command(std::to_string(port)), null.get(), null.get(), STDERR_FILENO);
    server->address_ = "127.0.0.1:" + std::to_string(port);
    if (server->pid_ >= 0 && AwaitAccepting(server->pid_, port)) return server;
  }
  ADD_FAILURE() << command("PORT")[0] << " did not start";
  return nullptr;
}

TcpServerProcess::~TcpServerProcess() {
  if (pid_ < 0) return;
  kill(pid_, SIGTERM);
  WaitFor(pid_, kStopLimitMs);
}

}  // namespace gannet
