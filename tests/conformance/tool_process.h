#ifndef GANNET_TESTS_CONFORMANCE_TOOL_PROCESS_H_
#define GANNET_TESTS_CONFORMANCE_TOOL_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <string>

namespace conformance {

// A program under softverbs-run, with its output captured. Destruction kills it and everything that
// it started. Not thread safe.
class ToolProcess {
 public:
  // Starts `command`, words separated by blanks; the first is looked up in PATH.
  explicit ToolProcess(const std::string& command);
  ~ToolProcess();
  ToolProcess(const ToolProcess&) = delete;
  ToolProcess& operator=(const ToolProcess&) = delete;

  // Returns true if it ended within `limit`.
  bool WaitForEnd(std::chrono::seconds limit);
  bool Ended() { return WaitForEnd(std::chrono::seconds(0)); }
  void Kill();

  // Returns its exit code, or 128 + the signal that ended it. REQUIRES: it ended.
  int exit_code() const { return exit_code_; }
  bool crashed() const { return crashed_; }
  // Returns what it wrote so far: its standard output, and then its standard error, which would
  // otherwise split lines of the former.
  std::string Output() const;

 private:
  int output_ = -1;  // files in memory
  int errors_ = -1;
  pid_t pid_ = -1;
  int exit_code_ = -1;
  bool crashed_ = false;  // ended by a signal
};

// Returns a TCP port that nobody uses at this moment.
int FreePort();

// Return whether a TCP socket, or an id of softverbs' connection manager, listens on the port.
bool TcpListens(int port);
bool RdmaListens(int port);

// Return a multicast address made from a port, and whether anybody is in its group.
std::string GroupOf(int port);
bool GroupHasMember(int port);

// Returns whether a program of this name is in PATH, or at this absolute path.
bool Installed(const std::string& program);

}  // namespace conformance

#endif  // GANNET_TESTS_CONFORMANCE_TOOL_PROCESS_H_
