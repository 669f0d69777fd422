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

namespace gannet::kvcli {

enum class Verb : uint8_t {
  kPut,
  kGet,
  kMultiGet,
  kDelete,
  kCompareAndSet,
  kLock,
  kUnlock,
  kLocks,
  kStats,
  kInfo,
  kPing,
  kHelp,
  kQuit,
};

// One command, parsed and checked as far as that goes without a server. Fields that a verb does not
// use keep their defaults.
struct Command {
  Verb verb = Verb::kHelp;
  std::vector<std::string> keys;  // mget: any number; others: one, where the verb takes a key
  std::string value;
  bool value_from_stdin = false;  // the value was given as "-"
  bool meta = false;              // get: show what is known of the item, not its value
  bool if_absent = false;
  std::optional<uint64_t> if_version;  // 0 = absent
  uint32_t flags = 0;
  std::chrono::milliseconds ttl{0};                // 0 = for ever
  std::optional<std::chrono::milliseconds> wait;   // lock; none: the deadline
  std::optional<std::chrono::milliseconds> lease;  // lock
  bool force = false;                              // unlock: whoever holds it
  std::vector<std::string> child;                  // lock: the command to run while holding it
  std::string topic;                               // help: of this command; empty: of all
};

// InvalidArgument, with the command's usage. `words` begins with the verb.
absl::StatusOr<Command> ParseCommand(std::span<const std::string> words);

// A line of the prompt or of a script, cut into words:
//   words are separated by blanks; a line whose first character is # is a comment (no words)
//   '...'   everything inside is meant literally
//   "..."   \n \t \r \0 \\ \" and \xHH (a byte in hexadecimal) mean what they do in C
//   \c      outside quotes: the character c itself
// InvalidArgument: a quote that is not closed, an escape that is not known.
absl::StatusOr<std::vector<std::string>> SplitLine(std::string_view line);

// "10" or "10s", "500ms", "5m", "2h", "7d". InvalidArgument for others, and for more than 100
// years.
absl::StatusOr<std::chrono::milliseconds> ParseDuration(std::string_view text);

// InvalidArgument for what makes no sense as the one command of a command line: a lock that is held
// by nobody afterwards.
absl::Status CheckOneShot(const Command& command);

// All commands, or one; ends with a newline. NotFound: no such command.
absl::StatusOr<std::string> HelpText(std::string_view topic);
std::string HelpText();
// For completion at the prompt.
std::vector<std::string> VerbNames();
std::optional<Verb> VerbOf(std::string_view name);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_COMMAND_H_
