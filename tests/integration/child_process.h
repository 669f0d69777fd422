#ifndef GANNET_TESTS_INTEGRATION_CHILD_PROCESS_H_
#define GANNET_TESTS_INTEGRATION_CHILD_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gannet {

// However slow the machine is, no step of these tests takes so long; only a hang does.
inline constexpr std::chrono::seconds kStepTimeout{60};

// A program of ours under test: spoken to through its stdin and stdout, and hit with signals. Its
// stderr goes to a file, for failure messages. Killed and reaped when destroyed, and killed when
// the thread that started it ends. Not thread safe.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> argv;  // argv[0] is a path
    // Our tests run on softverbs by LD_LIBRARY_PATH. Without it the child must find its way itself.
    bool inherit_library_path = true;
  };
  // Ends the test program when even starting fails.
  explicit ChildProcess(const Options& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // The next line of its stdout, without the newline; nullopt at its end or after the time-out.
  std::optional<std::string> ReadLine(std::chrono::milliseconds timeout = kStepTimeout);
  // False: it does not read any more.
  bool WriteLine(std::string_view line);
  void Signal(int signal);

  // How it ended: its exit code, or 128 + the signal that killed it. nullopt: it still runs.
  std::optional<int> Wait(std::chrono::milliseconds timeout = kStepTimeout);
  // All it wrote to stderr so far.
  std::string Stderr() const;
  // CPU time of all its threads so far.
  std::chrono::nanoseconds CpuTime() const;

 private:
  std::optional<int> TryReap();

  pid_t pid_ = -1;
  int stdin_ = -1;
  int stdout_ = -1;
  int stderr_ = -1;
  int pidfd_ = -1;
  std::string unread_;
  std::optional<int> result_;
};

// A program of the build tree: build/<preset>/bin/<name>.
std::string ProgramPath(std::string_view name);
// A small program that belongs to these tests.
std::string TestProgramPath(std::string_view name);

}  // namespace gannet

#endif  // GANNET_TESTS_INTEGRATION_CHILD_PROCESS_H_
