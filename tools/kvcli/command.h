#ifndef GANNET_TOOLS_KVCLI_COMMAND_H_
#define GANNET_TOOLS_KVCLI_COMMAND_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/kvcli/cluster_command.h"

namespace gannet::kvcli {

enum class Verb : uint8_t {
  kPut,
  kGet,
  kMultiGet,
  kExists,
  kTtl,
  kDelete,
  kCompareAndSet,
  kMultiPut,
  kAppend,
  kPrepend,
  kIncr,
  kDecr,
  kTouch,
  kGetAndTouch,
  kFlush,
  kLock,
  kUnlock,
  kLocks,
  kSnapshot,
  kStats,
  kInfo,
  kPing,
  kClients,
  kSlowLog,
  kScan,
  kBigKeys,
  kHotKeys,
  kMemory,
  kWatch,
  kTop,
  kLatency,
  kDoctor,
  kCluster,
  kDiscover,
  kUpgradeCheck,
  kGenKey,
  kHelp,
  kQuit,
};

// One command, parsed, and checked as far as possible without a server. Fields that a verb does not
// use keep their defaults.
struct Command {
  Verb verb = Verb::kHelp;
  std::vector<std::string>
      keys;  // mget, mput, exists, del: any number; others: one if the verb takes a key
  std::string value;
  std::vector<std::string> values;  // mput: one for each key
  int64_t number = 1;               // incr, decr
  int64_t initial = 0;              // incr, decr: what an absent key counts from
  bool value_from_stdin = false;    // the value was given as "-"
  bool meta = false;                // get: show the item's metadata, not its value
  bool if_absent = false;
  bool if_present = false;
  bool yes = false;                    // flush: do not ask
  std::optional<uint64_t> if_version;  // 0 = absent
  uint32_t flags = 0;
  std::chrono::milliseconds ttl{0};                // 0 = for ever
  std::optional<std::chrono::milliseconds> wait;   // lock; if not given, the deadline
  std::optional<std::chrono::milliseconds> lease;  // lock
  bool force = false;                              // unlock: break it, whoever holds it
  std::vector<std::string> child;                  // lock: the command to run while holding it
  std::string file;                                // put: where the value is
  std::string out;                                 // get: where to write the value to
  std::string prefix;                              // of keys to show
  std::string match;                               // a glob for keys to show
  std::optional<uint64_t> count;  // scan, bigkeys, hotkeys: of keys; watch: of changes; latency;
                                  // discover: of servers
  std::optional<uint32_t> reads_per_second;  // of a walk; 0 = no limit; nullopt: by load
  uint64_t hot_keys = 0;                     // top: so many of each server
  bool show_keys = false;                    // slowlog
  bool show_values = false;                  // scan
  std::chrono::milliseconds every{100};      // watch
  std::chrono::milliseconds interval{1000};  // top
  std::optional<uint32_t> id;                // genkey; random if not given
  bool read_only = false;                    // genkey
  ClusterCommand cluster;                    // cluster
  std::string announce = "239.71.71.71";     // discover: the servers' --announce
  std::string path;                          // upgrade-check
  std::string kvserver = "kvserver";         // upgrade-check: the program, found along PATH
  bool replica = false;                      // genkey
  std::string topic;                         // help: for this command; empty: for all
};

// Parses a command. `line` begins with the verb, in upper or lower case, or with the name that
// another store has for it. An option is --name=value, or --name and the value as the next word.
// InvalidArgument: the text has the command's usage.
absl::StatusOr<Command> ParseCommand(std::span<const std::string> line);

// Splits a line of the prompt or of a script into words:
//   - Blanks separate words. A line whose first character is # is a comment (no words).
//   - '...' is literal.
//   - In "...", \n \t \r \0 \\ \" and \xHH (a byte in hexadecimal) mean the same as in C.
//   - \c outside quotes is the character c itself.
//
// InvalidArgument: a quote is not closed, or an escape is unknown.
absl::StatusOr<std::vector<std::string>> SplitLine(std::string_view line);

// Parses "10" or "10s", "500ms", "5m", "2h", "7d". InvalidArgument for others, and for more than
// 100 years.
absl::StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text);

// Returns InvalidArgument for a command that makes no sense as the only one of a command line: a
// lock that nobody holds afterwards.
absl::Status CheckOneShot(const Command& command);

// Returns the help for all commands, by purpose, or for one. Ends with a newline. NotFound: no such
// command.
absl::StatusOr<std::string> HelpText(std::string_view topic);
std::string HelpText();
// The verbs, for completion at the prompt.
std::vector<std::string> VerbNames();
std::optional<Verb> FindVerb(std::string_view name);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_COMMAND_H_
