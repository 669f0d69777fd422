#ifndef GANNET_TOOLS_KVCLI_SPEC_H_
#define GANNET_TOOLS_KVCLI_SPEC_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "tools/kvcli/command.h"

namespace gannet::kvcli {

// What a command is called, and the words that it takes. Parsing, help, hints and completion all
// read `usage`, so that none of them can differ from the help:
//
//   KEY            a word                    [GLOB]        a word that may be left out
//   KEY...         one or more words         [--yes]       an option
//   -- COMMAND...  the words behind a --     [--ttl=TIME]  an option with a value
struct Spec {
  Verb verb;
  const char* name;
  const char* usage;
  const char* summary;  // one line
  const char* details;  // further lines of the command's help; may be empty
};

const Spec& SpecOf(Verb verb);
// Returns InvalidArgument: the problem, and the command's usage.
absl::Status UsageError(const Spec& spec, std::string_view problem);

struct UsageOption {
  std::string name;  // "ttl"
  bool takes_value = false;
};
// A usage, taken apart.
struct Usage {
  std::vector<std::string> places;   // "KEY", "[GLOB]", "KEY..."; not what is behind a "--"
  std::vector<UsageOption> options;  // in the order of the usage
  size_t words_min = 0;
  size_t words_max = 0;
};

const Usage& UsagePartsOf(Verb verb);
// Returns nullptr if the command has no such option.
const UsageOption* FindOption(Verb verb, std::string_view name);

// Returns the verb, and options that come with it, that this name stands for: put for PUT, and
// put --if_absent for setnx. nullopt: there is no such command.
std::optional<std::vector<std::string>> WordsOfName(std::string_view name);
// Returns "no command 'gte'; did you mean get?"
std::string NoCommand(std::string_view name);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_SPEC_H_
