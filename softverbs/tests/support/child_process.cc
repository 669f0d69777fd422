#include "softverbs/tests/support/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <utility>

extern char** environ;

namespace test_support {
namespace {

using Clock = std::chrono::steady_clock;

void Check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "%s: %s\n", what, std::strerror(errno));
  std::abort();
}

void Close(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

int MillisecondsUntil(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

bool WaitReadable(int fd, Clock::time_point deadline) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, MillisecondsUntil(deadline)) > 0;
}

int MemoryFile(std::string_view content = "") {
  const int fd = memfd_create("child", MFD_CLOEXEC);
  Check(fd >= 0, "no file in memory");
  Check(write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()),
        "cannot write to a file in memory");
  lseek(fd, 0, SEEK_SET);
  return fd;
}

// What several processes write to the file must not overwrite each other.
int CaptureFile() {
  const int fd = MemoryFile();
  fcntl(fd, F_SETFL, O_APPEND);
  return fd;
}

std::string Content(int fd) {
  if (fd < 0) return "";
  std::string text(static_cast<size_t>(lseek(fd, 0, SEEK_END)), '\0');
  const ssize_t n = pread(fd, text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

std::string NameOf(const std::string& assignment) {
  return assignment.substr(0, assignment.find('='));
}

std::vector<std::string> Environment(const std::vector<std::string>& changes) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    bool changed = false;
    for (const std::string& change : changes) changed |= NameOf(*entry) == NameOf(change);
    if (!changed) environment.push_back(*entry);
  }
  for (const std::string& change : changes) {
    if (change.find('=') != std::string::npos) environment.push_back(change);
  }
  return environment;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

// The child's ends of its streams. -1: the test's own.
struct ChildProcess::ChildStreams {
  int in = -1;
  int out = -1;
  int err = -1;
  std::string terminal = {};  // the path of the terminal that it opens instead

  void AddTo(posix_spawn_file_actions_t* actions) const {
    if (!terminal.empty()) {
      // A session leader that opens a terminal makes it its controlling one.
      posix_spawn_file_actions_addopen(actions, STDIN_FILENO, terminal.c_str(), O_RDWR, 0);
      posix_spawn_file_actions_adddup2(actions, STDIN_FILENO, STDOUT_FILENO);
      posix_spawn_file_actions_adddup2(actions, STDIN_FILENO, STDERR_FILENO);
    }
    if (in >= 0) posix_spawn_file_actions_adddup2(actions, in, STDIN_FILENO);
    if (out >= 0) posix_spawn_file_actions_adddup2(actions, out, STDOUT_FILENO);
    if (err >= 0) posix_spawn_file_actions_adddup2(actions, err, STDERR_FILENO);
  }
};

ChildProcess::ChildStreams ChildProcess::OpenPipes() {
  int in[2], out[2];
  Check(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "no pipe");
  to_child_ = in[1];
  from_child_ = out[0];
  stderr_file_ = CaptureFile();
  // A dead child must not kill the test.
  signal(SIGPIPE, SIG_IGN);
  return {.in = in[0], .out = out[1], .err = stderr_file_};
}

ChildProcess::ChildStreams ChildProcess::OpenTerminal() {
  from_child_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  Check(from_child_ >= 0 && grantpt(from_child_) == 0 && unlockpt(from_child_) == 0, "no terminal");
  to_child_ = fcntl(from_child_, F_DUPFD_CLOEXEC, 0);
  return {.terminal = ptsname(from_child_)};
}

ChildProcess::ChildStreams ChildProcess::Open(const Options& options) {
  switch (options.streams) {
    case Streams::kPipes:
      return OpenPipes();
    case Streams::kCaptured:
      stdout_file_ = CaptureFile();
      stderr_file_ = CaptureFile();
      return {.in = MemoryFile(options.input), .out = stdout_file_, .err = stderr_file_};
    case Streams::kTerminal:
      return OpenTerminal();
    case Streams::kInherited:
      break;
  }
  return {};
}

void ChildProcess::Start(const Options& options, const ChildStreams& streams) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  streams.AddTo(&actions);
  if (options.passed >= 0) {
    posix_spawn_file_actions_adddup2(&actions, options.passed, kPassedDescriptor);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  // A session leader leads a process group, too.
  const int leads = streams.terminal.empty() ? POSIX_SPAWN_SETPGROUP : POSIX_SPAWN_SETSID;
  posix_spawnattr_setflags(&attributes, static_cast<short>(POSIX_SPAWN_SETSIGDEF | leads));
  // setpriv executes the program so that the kernel kills it when this test ends in any way: a test
  // that aborts runs no destructor.
  std::vector<std::string> argv = {"/usr/bin/setpriv", "--pdeathsig", "KILL", "--"};
  argv.insert(argv.end(), options.argv.begin(), options.argv.end());
  std::vector<std::string> environment = Environment(options.environment);
  errno = posix_spawn(&pid_, argv[0].c_str(), &actions, &attributes, Pointers(argv).data(),
                      Pointers(environment).data());
  Check(errno == 0, argv[0].c_str());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
}

ChildProcess::ChildProcess(const Options& options) {
  ChildStreams streams = Open(options);
  Start(options, streams);
  Close(streams.in);
  if (streams.out != stdout_file_) Close(streams.out);
  // By its number, because this C library has no wrapper.
  pidfd_ = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
}

ChildProcess::~ChildProcess() {
  Kill();
  for (int* fd : {&to_child_, &from_child_, &stdout_file_, &stderr_file_}) Close(*fd);
}

bool ChildProcess::Write(std::string_view text) {
  return write(to_child_, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

// Returns false at the end of stdout, which is an error (EIO) on a terminal, or at the deadline.
bool ChildProcess::ReadMore(Deadline deadline) {
  if (!WaitReadable(from_child_, deadline)) return false;
  char bytes[4096];
  const ssize_t n = read(from_child_, bytes, sizeof(bytes));
  if (n > 0) unread_.append(bytes, static_cast<size_t>(n));
  return n > 0;
}

std::optional<std::string> ChildProcess::ReadLine(std::chrono::milliseconds timeout) {
  const Deadline deadline = Clock::now() + timeout;
  size_t end;
  while ((end = unread_.find('\n')) == std::string::npos) {
    if (!ReadMore(deadline)) return std::nullopt;
  }
  std::string line = unread_.substr(0, end);
  unread_.erase(0, end + 1);
  return line;
}

bool ChildProcess::ReadUntil(std::string_view text, std::chrono::milliseconds timeout) {
  const Deadline deadline = Clock::now() + timeout;
  size_t at;
  while ((at = unread_.find(text)) == std::string::npos) {
    if (!ReadMore(deadline)) return false;
  }
  unread_.erase(0, at + text.size());
  return true;
}

std::string ChildProcess::ReadAll(std::chrono::milliseconds timeout) {
  const Deadline deadline = Clock::now() + timeout;
  while (ReadMore(deadline)) {
  }
  return std::exchange(unread_, "");
}

std::string ChildProcess::Stdout() const { return Content(stdout_file_); }
std::string ChildProcess::Stderr() const { return Content(stderr_file_); }

bool ChildProcess::AwaitStderr(std::string_view text, std::chrono::milliseconds timeout) {
  constexpr std::chrono::milliseconds kStep{5};
  const Deadline deadline = Clock::now() + timeout;
  for (;;) {
    const bool last = Wait(kStep).has_value() || Clock::now() >= deadline;
    if (Stderr().find(text) != std::string::npos) return true;
    if (last) return false;
  }
}

// Sends the signal only to a child that was not reaped, because only then its number cannot be
// another process's.
void ChildProcess::Signal(int signal) {
  if (!result_.has_value()) kill(pid_, signal);
}

void ChildProcess::Stop() {
  Signal(SIGSTOP);
  siginfo_t info;
  Check(waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT) == 0,
        "cannot stop a child");
}

void ChildProcess::Kill() {
  if (result_.has_value()) return;
  kill(-pid_, SIGKILL);
  siginfo_t info;
  waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT);
  TryReap();
}

std::optional<int> ChildProcess::TryReap() {
  if (result_.has_value()) return result_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  result_ = WIFEXITED(status) ? WEXITSTATUS(status) : KilledBy(WTERMSIG(status));
  Close(pidfd_);
  return result_;
}

std::optional<int> ChildProcess::Wait(std::chrono::milliseconds timeout) {
  const Deadline deadline = Clock::now() + timeout;
  if (pidfd_ >= 0) WaitReadable(pidfd_, deadline);
  while (pidfd_ < 0 && !TryReap().has_value() && Clock::now() < deadline) poll(nullptr, 0, 1);
  return TryReap();
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

std::string OwnPath() {
  char path[PATH_MAX] = "";
  Check(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0, "/proc/self/exe");
  return path;
}

std::string TestProgramPath(std::string_view name) {
  return std::filesystem::path(OwnPath()).replace_filename(name);
}

std::string ProgramPath(std::string_view name) {
  return std::filesystem::path(OwnPath()).parent_path().parent_path() / "bin" / name;
}

}  // namespace test_support
