#include "tests/integration/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "common/base/check.h"

namespace gannet {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kLibraryPath = "LD_LIBRARY_PATH=";

int MillisecondsUntil(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

bool WaitReadable(int fd, Clock::time_point deadline) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, MillisecondsUntil(deadline)) > 0;
}

struct Pipe {
  Pipe() { GANNET_CHECK(pipe2(ends, O_CLOEXEC) == 0, "no pipe"); }
  int ends[2];
};

std::vector<char*> Environment(bool inherit_library_path) {
  std::vector<char*> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool library_path = std::string_view(*entry).starts_with(kLibraryPath);
    if (inherit_library_path || !library_path) environment.push_back(*entry);
  }
  environment.push_back(nullptr);
  return environment;
}

pid_t Spawn(const ChildProcess::Options& options, int in, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err, STDERR_FILENO);
  // setpriv executes the program so that it is killed when this test ends in any way: a test that
  // aborts runs no destructor.
  std::string setpriv[] = {"/usr/bin/setpriv", "--pdeathsig", "KILL", "--"};
  std::vector<char*> argv;
  for (std::string& argument : setpriv) argv.push_back(argument.data());
  for (const std::string& argument : options.argv) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  // The test ignores SIGPIPE, but its children should have the usual behaviour.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, argv[0], &actions, &attributes, argv.data(),
                                Environment(options.inherit_library_path).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) std::fprintf(stderr, "cannot start %s\n", options.argv[0].c_str());
  GANNET_CHECK(error == 0, "posix_spawn failed");
  return pid;
}

}  // namespace

ChildProcess::ChildProcess(const Options& options) {
  const Pipe in, out;
  stderr_ = memfd_create("child stderr", MFD_CLOEXEC);
  GANNET_CHECK(stderr_ >= 0, "no memfd");
  pid_ = Spawn(options, in.ends[0], out.ends[1], stderr_);
  // Calls pidfd_open by its number, because this C library has no wrapper. Under valgrind there is
  // no such call at all.
  pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  close(in.ends[0]);
  close(out.ends[1]);
  stdin_ = in.ends[1];
  stdout_ = out.ends[0];
  // A dead child must not kill the test.
  signal(SIGPIPE, SIG_IGN);
}

ChildProcess::~ChildProcess() {
  if (!result_.has_value()) {
    Signal(SIGKILL);
    Wait();
  }
  for (const int fd : {stdin_, stdout_, stderr_}) close(fd);
  if (pidfd_ >= 0) close(pidfd_);
}

std::optional<std::string> ChildProcess::ReadLine(std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  for (;;) {
    if (const size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    if (!WaitReadable(stdout_, deadline)) return std::nullopt;
    char bytes[4096];
    const ssize_t n = read(stdout_, bytes, sizeof(bytes));
    if (n <= 0) return std::nullopt;
    unread_.append(bytes, static_cast<size_t>(n));
  }
}

bool ChildProcess::WriteLine(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  return write(stdin_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Sends the signal only to a child that was not reaped, because only then its number cannot be
// another process's.
void ChildProcess::Signal(int signal) {
  if (!result_.has_value()) kill(pid_, signal);
}

std::optional<int> ChildProcess::TryReap() {
  if (result_.has_value()) return result_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  result_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result_;
}

std::optional<int> ChildProcess::Wait(std::chrono::milliseconds timeout) {
  const Clock::time_point deadline = Clock::now() + timeout;
  if (pidfd_ >= 0 && !result_.has_value()) WaitReadable(pidfd_, deadline);
  while (pidfd_ < 0 && !TryReap().has_value() && Clock::now() < deadline) poll(nullptr, 0, 1);
  return TryReap();
}

std::string ChildProcess::Stderr() const {
  std::string text(static_cast<size_t>(lseek(stderr_, 0, SEEK_END)), '\0');
  const ssize_t n = pread(stderr_, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

std::chrono::nanoseconds ChildProcess::CpuTime() const {
  const std::string tasks = "/proc/" + std::to_string(pid_) + "/task";
  std::chrono::nanoseconds sum{0};
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    int64_t ran_ns = 0;  // the first number: time on a CPU
    std::ifstream(task.path() / "schedstat") >> ran_ns;
    sum += std::chrono::nanoseconds(ran_ns);
  }
  return sum;
}

std::string ProgramPath(std::string_view name) {
  return std::string(GANNET_PROGRAM_DIR "/") + std::string(name);
}

std::string TestProgramPath(std::string_view name) {
  return std::string(GANNET_TEST_PROGRAM_DIR "/") + std::string(name);
}

}  // namespace gannet
