#ifndef SOFTVERBS_TESTS_SUPPORT_CHILD_PROCESS_H_
#define SOFTVERBS_TESTS_SUPPORT_CHILD_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What tests of different parts share. Depends on nothing else in the tree.
namespace test_support {

// No step of a test takes so long, however slow the machine is. Only a hang does.
inline constexpr std::chrono::seconds kStepTimeout{60};

// A program that a test runs. The program leads a process group of its own. Destruction kills the
// group if the program still runs, and the kernel kills the program if the thread that started it
// ends in any other way. So no program outlives a failing test. Not thread safe.
class ChildProcess {
 public:
  // What the program's stdin, stdout and stderr are.
  enum class Streams {
    kPipes,      // pipes to and from the test; stderr is captured
    kCaptured,   // stdin is `input`; stdout and stderr are captured
    kTerminal,   // all three are a new terminal, the program's controlling one
    kInherited,  // the test's own
  };
  struct Options {
    std::vector<std::string> argv;  // argv[0] is a path, or a name that is searched in PATH
    Streams streams = Streams::kPipes;
    std::string input = {};                     // only with kCaptured
    std::vector<std::string> environment = {};  // "NAME=value" sets, "NAME" removes
    int passed = -1;  // a descriptor that the program gets as kPassedDescriptor; the test keeps it
  };
  static constexpr int kPassedDescriptor = 3;

  // Ends the test program if it cannot start a process. A program that does not exist exits with
  // 127.
  explicit ChildProcess(const Options& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }

  // Returns false if the program does not read any more. REQUIRES: kPipes or kTerminal, as for all
  // functions down to ReadAll.
  bool Write(std::string_view text);
  bool WriteLine(std::string_view line) { return Write(std::string(line) + "\n"); }
  // Returns the next line of stdout without its newline, or nullopt at the end of stdout or after
  // the timeout.
  std::optional<std::string> ReadLine(std::chrono::milliseconds timeout = kStepTimeout);
  // Reads stdout up to this text. Returns false if it did not come in time.
  bool ReadUntil(std::string_view text, std::chrono::milliseconds timeout = kStepTimeout);
  // Returns the rest of stdout, once the program has closed it or the timeout is over.
  std::string ReadAll(std::chrono::milliseconds timeout = kStepTimeout);

  // Return what the program wrote so far, if it is captured.
  std::string Stdout() const;
  std::string Stderr() const;
  // Waits until the program has written this to stderr. Returns false if it did not in time, or
  // ended before.
  bool AwaitStderr(std::string_view text, std::chrono::milliseconds timeout = kStepTimeout);

  // Does nothing if the program was waited for.
  void Signal(int signal);
  // Stops the program with SIGSTOP, and waits until all its threads have stopped. REQUIRES: it was
  // not waited for.
  void Stop();
  // Kills the program's process group, and waits until the program is gone.
  void Kill();
  // Returns the exit code, or KilledBy(signal), or nullopt if the program still runs after the
  // timeout.
  std::optional<int> Wait(std::chrono::milliseconds timeout = kStepTimeout);

  // Returns the CPU time of all threads of the program so far.
  std::chrono::nanoseconds CpuTime() const;

 private:
  using Deadline = std::chrono::steady_clock::time_point;
  struct ChildStreams;

  ChildStreams Open(const Options& options);
  ChildStreams OpenPipes();
  ChildStreams OpenTerminal();
  void Start(const Options& options, const ChildStreams& streams);
  bool ReadMore(Deadline deadline);
  std::optional<int> TryReap();

  pid_t pid_ = -1;
  int pidfd_ = -1;       // readable when the program has ended; -1: no such call, as under valgrind
  int to_child_ = -1;    // for Write
  int from_child_ = -1;  // for the functions that read
  int stdout_file_ = -1;  // files in memory
  int stderr_file_ = -1;
  std::string unread_;
  std::optional<int> result_;
};

// The result of a program that a signal has ended, as a shell says it.
constexpr int KilledBy(int signal) { return 128 + signal; }

// Returns the path of this test program.
std::string OwnPath();
// Returns the path of a small program that belongs to the tests: build/<preset>/tests/<name>.
std::string TestProgramPath(std::string_view name);
// Returns the path of a program: build/<preset>/bin/<name>.
std::string ProgramPath(std::string_view name);

}  // namespace test_support

#endif  // SOFTVERBS_TESTS_SUPPORT_CHILD_PROCESS_H_
