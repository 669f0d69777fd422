#ifndef GANNET_TESTS_TOOLS_PROCESSES_H_
#define GANNET_TESTS_TOOLS_PROCESSES_H_

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace gannet {

// Runs the real programs of this build, as a user would. All of them run on softverbs, and none
// outlives its test.

struct Finished {
  int exit_code = -1;  // 128 + N: killed by signal N; -1: still ran after the time limit
  std::string out;
  std::string err;
};

// Returns the path of a program in the build tree.
std::string ProgramPath(std::string_view name);

// Runs a program (a path, or a name along PATH) with `input` as its stdin, for at most 30 s.
Finished RunProgram(const std::vector<std::string>& words, std::string_view input = "");
// The same with a terminal as stdin, stdout and stderr; the output of both is in `out`.
Finished RunOnTerminal(const std::vector<std::string>& words, std::string_view input);

// A program that runs while the test goes on.
class BackgroundProgram {
 public:
  explicit BackgroundProgram(const std::vector<std::string>& words);
  ~BackgroundProgram();
  BackgroundProgram(const BackgroundProgram&) = delete;
  BackgroundProgram& operator=(const BackgroundProgram&) = delete;

  // Waits until it wrote this to stderr. Returns false if it did not within 30 s.
  bool AwaitStderr(std::string_view text) const;
  void Signal(int number) const;
  // Waits until it ends, for at most 30 s.
  Finished Wait();

 private:
  int out_ = -1;
  int err_ = -1;
  pid_t pid_ = -1;
};

// A program on its own terminal, to type at.
class TerminalProgram {
 public:
  explicit TerminalProgram(const std::vector<std::string>& words);
  ~TerminalProgram();
  TerminalProgram(const TerminalProgram&) = delete;
  TerminalProgram& operator=(const TerminalProgram&) = delete;

  void Type(std::string_view text) const;
  // Waits until it has shown this, after what was awaited before. Returns false if it did not in
  // time.
  bool Await(std::string_view text, int limit_ms = 30'000);
  // Returns its exit code, as in Finished.
  int Wait();

 private:
  int terminal_ = -1;
  pid_t pid_ = -1;
  std::string shown_;
};

// A kvserver on a port that it chose.
class ServerProcess {
 public:
  // Returns nullptr, with a failed expectation, if it does not say READY within 30 s.
  static std::unique_ptr<ServerProcess> Start(std::vector<std::string> flags = {});
  // Asks it to stop; after 10 s it is killed.
  ~ServerProcess();
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const std::string& address() const { return address_; }
  void Signal(int number) const;

 private:
  ServerProcess() = default;
  pid_t pid_ = -1;
  std::string address_;
};

// A third-party server on a TCP port on loopback.
class TcpServerProcess {
 public:
  // `command` returns the words that start it on a port. Returns nullptr, with a failed
  // expectation, if it does not accept connections within 30 s.
  static std::unique_ptr<TcpServerProcess> Start(
      const std::function<std::vector<std::string>(const std::string& port)>& command);
  // Asks it to stop; after 10 s it is killed.
  ~TcpServerProcess();
  TcpServerProcess(const TcpServerProcess&) = delete;
  TcpServerProcess& operator=(const TcpServerProcess&) = delete;

  const std::string& address() const { return address_; }

 private:
  TcpServerProcess() = default;
  pid_t pid_ = -1;
  std::string address_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_TOOLS_PROCESSES_H_
