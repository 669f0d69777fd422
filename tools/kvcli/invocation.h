#ifndef GANNET_TOOLS_KVCLI_INVOCATION_H_
#define GANNET_TOOLS_KVCLI_INVOCATION_H_

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gannet::kvcli {

// How the program was called: its flags, and the command's own words. Does not use gflags, which
// would take for one of our flags a value that begins with a dash, or an option of the command that
// runs under a lock. Does not use CLI11, which splits a value [1,2] of mput into two, refuses a
// value -x, and takes a flag behind a "--".
struct Invocation {
  std::vector<std::string> servers = {"127.0.0.1:7471"};
  std::string device = "auto";
  std::string auth_file;  // of Options; empty: no key
  std::chrono::milliseconds deadline{3000};
  bool json = false;
  bool verbose = false;  // print the device on stderr
  bool quiet = false;    // print only errors on stderr
  bool help = false;
  bool version = false;
  std::vector<std::string> words;  // empty: a prompt, or a script on stdin
};

// Parses `arguments`, which are without the program's name. Flags are --name=value or --name value,
// and may stand anywhere before a "--". The command begins with the first word that is no flag, or
// with the word behind a "--". Its options are among its words.
// `default_servers` is the default of --server; if it is empty or null, this host is.
// InvalidArgument: an unknown flag, or a missing or wrong value.
absl::StatusOr<Invocation> ParseInvocation(std::span<const std::string> arguments,
                                           const char* default_servers = nullptr);

// Returns whether kvcli's command line has a flag of this name.
bool IsFlag(std::string_view name);
// Returns whether the arguments ask for JSON. Of use where they cannot be parsed.
bool AsksForJson(std::span<const std::string> arguments);

inline constexpr char kServerVariable[] = "GANNET_SERVER";

std::string UsageText();

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_INVOCATION_H_
