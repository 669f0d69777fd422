#ifndef GANNET_TOOLS_KVCLI_SHELL_H_
#define GANNET_TOOLS_KVCLI_SHELL_H_

#include <gannet/client.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/kvcli/command.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {

enum ExitCode : int {
  kExitDone = 0,
  kExitNotFound = 1,  // or a condition that failed
  kExitUsage = 2,
  kExitError = 3,
  kExitHeld = 75,  // EX_TEMPFAIL: another holds the lock, so the command under it did not run
};

// No value is longer. Reading one from a file or from stdin stops behind this.
inline constexpr size_t kValueBytesMax = 64u << 20;

// What verbs (run_verbs.h) work in: a client, the way to show answers on stdout and problems on
// stderr, and locks. Holds locks
// that were taken without a command until they are unlocked or the shell ends. One thread.
class Shell {
 public:
  struct Options {
    bool json = false;
    bool quiet = false;     // stderr has no line for a miss or a failed condition
    bool one_shot = false;  // the command line has the only command: stdin is for values
    bool raw = false;       // values get no newline behind them
    std::chrono::milliseconds deadline{3000};
    // For commands that make a connection of their own.
    std::vector<std::string> servers;
    gannet::Options connect;
  };
  // `client` must outlive the shell.
  Shell(Client& client, const Options& options) : client_(client), options_(options) {}
  ~Shell();
  Shell(const Shell&) = delete;
  Shell& operator=(const Shell&) = delete;

  // Returns an ExitCode, or the exit code of a command under a lock. The caller handles kQuit.
  int Execute(const Command& command);
  // Reports a line that could not be parsed.
  int ReportUsage(const absl::Status& status);
  // Show an answer as Execute does, for a caller who asked the server itself.
  int ShowPut(const Command& command, const absl::StatusOr<uint64_t>& version);
  int ShowGet(const Command& command, const absl::StatusOr<std::optional<Value>>& value);
  int ShowDelete(const Command& command, const absl::StatusOr<bool>& deleted);
  bool holds(const std::string& key) const { return locks_.contains(key); }

  // Ends a wait for a lock early, as if its time were over. A signal handler may call it.
  void Interrupt() { interrupted_.store(true, std::memory_order_relaxed); }

  // For verbs. -----------------------------------------------------------------------------------

  Client& client() { return client_; }
  const Options& options() const { return options_; }
  // Those that were taken without a command.
  std::map<std::string, Lock>& locks() { return locks_; }
  // An Interrupt before this call does not count.
  void BeginWait() { interrupted_.store(false, std::memory_order_relaxed); }
  bool interrupted() const { return interrupted_.load(std::memory_order_relaxed); }
  // Sleeps, in slices, so that Interrupt works. Returns false if it was interrupted.
  bool Pause(std::chrono::milliseconds time) const;

  void ShowItem(std::string_view key, const Value& value, bool meta);
  void ShowJson(const Json& json);
  int NotFound(std::string_view key);
  void SayUnlessQuiet(std::string_view text) const;
  // Reports a status that is not OK: as wrong usage or an error, depending on its code ...
  int Report(const absl::Status& status);
  // ... or as that of one key of many: what was `told` already is not said again ...
  int ReportOfKey(const std::string& key, const absl::Status& status, std::set<std::string>& told);
  // ... or as a condition that failed.
  int ReportRefused(const absl::Status& status);

 private:
  Client& client_;
  const Options options_;
  std::map<std::string, Lock> locks_;
  // Relaxed: nothing is published with it.
  std::atomic<bool> interrupted_{false};
};

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_SHELL_H_
