#ifndef GANNET_TOOLS_KVCLI_INVOCATION_H_
#define GANNET_TOOLS_KVCLI_INVOCATION_H_

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gannet::kvcli {

// How the program was called: flags in front of the command, then the command's own words. Not
// gflags: it would take a value that begins with a dash, or an option of the command that runs
// under a lock, for a flag of ours.
struct Invocation {
  std::vector<std::string> servers = {"127.0.0.1:7471"};
  std::string device = "auto";
  std::chrono::milliseconds deadline{3000};
  bool json = false;
  bool verbose = false;  // says on which device it runs
  bool quiet = false;    // says on stderr only what is an error
  bool help = false;
  bool version = false;
  std::vector<std::string> words;  // empty: a prompt, or a script on stdin
};

// `arguments` is without the program's name. Flags are --name=value or --name value. The first word
// that is no flag, or the one behind a "--", begins the command. `default_servers` is what --server
// is when nobody says; empty or null: this host. InvalidArgument: an unknown flag, or a value
// missing or wrong.
absl::StatusOr<Invocation> ParseInvocation(std::span<const std::string> arguments,
                                           const char* default_servers = nullptr);

inline constexpr char kServerVariable[] = "GANNET_SERVER";

std::string UsageText();

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_INVOCATION_H_
