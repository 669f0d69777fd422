#ifndef GANNET_TOOLS_KVCLI_INVOCATION_H_
#define GANNET_TOOLS_KVCLI_INVOCATION_H_

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gannet::kvcli {

// How the program was called: flags before the command, then the command's own words. Does not use
// gflags, which would take for one of our flags a value that begins with a dash, or an option of
// the command that runs under a lock.
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

// Parses `arguments`, which are without the program's name. Flags are --name=value or --name value.
// The command begins with the first word that is no flag, or with the word behind a "--".
// `default_servers` is the default of --server; if it is empty or null, this host is.
// InvalidArgument: an unknown flag, or a missing or wrong value.
absl::StatusOr<Invocation> ParseInvocation(std::span<const std::string> arguments,
                                           const char* default_servers = nullptr);

inline constexpr char kServerVariable[] = "GANNET_SERVER";

std::string UsageText();

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_INVOCATION_H_
