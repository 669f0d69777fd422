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

// No step of these tests takes so long, however slow the machine is. Only a hang does.
inline constexpr std::chrono::seconds kStepTimeout{60};

// One of our programs under test. The test talks to it through stdin and stdout, and sends it
// signals. Its stderr goes to a file, for failure messages. It is killed and reaped when this
// object is destroyed, and killed when the thread that started it ends. Not thread safe.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> argv;  // argv[0] is a path
    // Our tests run on softverbs by LD_LIBRARY_PATH. Without that, the child must find softverbs by
    // itself.
    bool inherit_library_path = true;
  };
  // Ends the test program if it cannot start the child.
  explicit ChildProcess(const Options& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  // Returns the next line of its stdout, without the newline, or nullopt at its end or after the
  // timeout.
  std::optional<std::string> ReadLine(std::chrono::milliseconds timeout = kStepTimeout);
  // Returns false if the child does not read any more.
  bool WriteLine(std::string_view line);
  void Signal(int signal);

  // Returns its exit code, or 128 + the signal that killed it, or nullopt if it still runs.
  std::optional<int> Wait(std::chrono::milliseconds timeout = kStepTimeout);
  // Returns everything that it wrote to stderr so far.
  std::string Stderr() const;
  // Returns the CPU time of all its threads so far.
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

// Returns the path of a program of the build tree: build/<preset>/bin/<name>.
std::string ProgramPath(std::string_view name);
// Returns the path of a small program that belongs to these tests.
std::string TestProgramPath(std::string_view name);

}  // namespace gannet

#endif  // GANNET_TESTS_INTEGRATION_CHILD_PROCESS_H_
