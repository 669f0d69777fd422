#ifndef GANNET_TOOLS_KVCLI_VERBS_H_
#define GANNET_TOOLS_KVCLI_VERBS_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tools/kvcli/command.h"

namespace gannet::kvcli {

class Shell;
struct Invocation;

// One verb, or one action of "cluster". Parsing, help, hints and completion all read this row, so
// none of them can differ from the help. What the words of `usage` mean is in verb_words.h:
//
//   KEY            a word                         [GLOB]        a word that may be left out
//   KEY...         one or more; of several words  [GLOB]...     any number of the last word
//                  they repeat in turn
//   --group=G      an option that must be given   [--yes]       an option
//   -- COMMAND...  the words behind a --          [--ttl=TIME]  an option with a value
//   @etcd, @terms  options that actions share
struct VerbWords {
  Verb verb;
  const char* name;
  const char* usage;
  const char* summary;                               // one line; of an action: its whole text
  int (*run)(Shell& shell, const Command& command);  // null: not at prompts; actions: cluster's
};
struct VerbMore {
  const char* details = "";   // further lines of the help. @actions: those of the actions
  const char* examples = "";  // lines
  // What users of Redis, memcached and the shell type. "add:--if_absent" comes with an option.
  const char* aliases = "";
  // From the command line, where there is no client yet. Null: connects one, and calls `run`.
  int (*alone)(const Command& command, const Invocation& invocation, char** argv) = nullptr;
  const char* purpose = "";                           // of the first of those help shows together
  std::optional<ClusterCommand::Action> action = {};  // the rows of cluster's actions
};
struct VerbRow : VerbWords, VerbMore {};

// All rows, as help shows them. Those of cluster's actions follow cluster's.
std::span<const VerbRow> VerbRows();
const VerbRow& RowOf(Verb verb);
// Returns nullptr if there is no such action.
const VerbRow* FindAction(std::string_view name);

// Returns the row that a line is about, and how many words name it: 2 for "cluster status".
// nullptr: the first word names no verb. REQUIRES: `line` is not empty.
struct NamedRow {
  const VerbRow* row = nullptr;
  size_t words = 1;
};
NamedRow FindRow(std::span<const std::string> line);

struct UsageOption {
  std::string name;   // "ttl"
  std::string value;  // "TIME"; empty: it takes none
  bool must = false;

  std::string Text() const;  // "--ttl=TIME"
};
// A usage, taken apart.
struct Usage {
  std::string text;                  // with the options that actions share
  std::vector<std::string> places;   // "KEY", "[GLOB]", "KEY..."; not what is behind a "--"
  std::vector<UsageOption> options;  // in the order of the usage
  size_t words_min = 0;
  size_t words_max = 0;

  // Returns nullptr if there is no such option.
  const UsageOption* FindOption(std::string_view name) const;
  // Returns what the nth word is: "KEY". Empty: there is no such word.
  std::string_view PlaceAt(size_t n) const;
};
const Usage& UsageOf(const VerbRow& row);

// "put", or "cluster init".
std::string FullName(const VerbRow& row);
// Returns InvalidArgument: the problem, and the usage.
absl::Status UsageError(const VerbRow& row, std::string_view problem);
// Returns the verb, and options that come with it, that this name stands for: put for PUT, and
// put --if_absent for setnx. nullopt: there is no such command.
std::optional<std::vector<std::string>> WordsOfName(std::string_view name);
// Returns "no command 'gte'; did you mean get?"
std::string NoCommand(std::string_view name);
std::vector<std::string> ActionNames();

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_VERBS_H_
