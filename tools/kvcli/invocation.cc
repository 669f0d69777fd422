#include "tools/kvcli/invocation.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/server_list.h"
#include "common/base/status_macros.h"
#include "tools/kvcli/command.h"
#include "tools/kvcli/nearest.h"
#include "tools/kvcli/verb_words.h"

namespace gannet::kvcli {
namespace {

constexpr int64_t kDeadlineMsMax = 3'600'000;

struct Flag {
  std::string_view name;
  bool Invocation::*target;  // null: the flag takes a value
};
constexpr std::array<Flag, 9> kFlags = {{{"server", nullptr},
                                         {"device", nullptr},
                                         {"auth_file", nullptr},
                                         {"deadline_ms", nullptr},
                                         {"json", &Invocation::json},
                                         {"verbose", &Invocation::verbose},
                                         {"quiet", &Invocation::quiet},
                                         {"help", &Invocation::help},
                                         {"version", &Invocation::version}}};

const Flag* FindFlag(std::string_view name) {
  const auto found = std::ranges::find(kFlags, name, &Flag::name);
  return found == kFlags.end() ? nullptr : &*found;
}

// Returns "server" for "--server=a:1".
std::string_view NameIn(std::string_view argument) {
  return argument.starts_with("--") ? argument.substr(2, argument.find('=') - 2) : "";
}

absl::Status NoFlag(std::string_view argument) {
  std::vector<std::string> known;
  for (const Flag& flag : kFlags) known.emplace_back(flag.name);
  const std::string nearest = Nearest(NameIn(argument), known);
  return absl::InvalidArgumentError(
      absl::StrCat("no flag ", std::string(argument),
                   nearest.empty() ? "" : absl::StrCat("; did you mean --", nearest, "?")));
}

absl::Status SetDeadline(std::string_view text, Invocation* invocation) {
  int64_t ms = 0;
  if (!ParseNumber(text, &ms) || ms < 1 || ms > kDeadlineMsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--deadline_ms=", std::string(text), ": a number from 1 to ", kDeadlineMsMax));
  }
  invocation->deadline = std::chrono::milliseconds(ms);
  return absl::OkStatus();
}

absl::Status SetServers(std::string_view text, Invocation* invocation) {
  invocation->servers = SplitServerList(text);
  if (!invocation->servers.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("--server needs HOST:PORT");
}

absl::Status SetValue(std::string_view name, std::string_view value, Invocation* invocation) {
  if (name == "server") return SetServers(value, invocation);
  if (name == "deadline_ms") return SetDeadline(value, invocation);
  (name == "device" ? invocation->device : invocation->auth_file) = value;
  if (!value.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", std::string(name), " needs a value"));
}

// Takes the flag `arguments[*at]`, and the argument behind it if that is its value.
absl::Status TakeFlag(const Flag& flag, std::span<const std::string> arguments, size_t* at,
                      Invocation* invocation) {
  const std::string_view argument = arguments[*at];
  const size_t equals = argument.find('=');
  if (flag.target != nullptr) {
    if (equals != std::string_view::npos) return NoFlag(argument);
    invocation->*flag.target = true;
    return absl::OkStatus();
  }
  if (equals != std::string_view::npos) {
    return SetValue(flag.name, argument.substr(equals + 1), invocation);
  }
  if (*at + 1 < arguments.size()) return SetValue(flag.name, arguments[++*at], invocation);
  return absl::InvalidArgumentError(absl::StrCat(std::string(argument), " needs a value"));
}

// Returns whether `argument` is help's short form, and not a value or a key.
bool IsShortHelp(std::string_view argument, const Invocation& invocation) {
  return argument == "-h" && invocation.words.size() <= 1;
}

}  // namespace

bool IsFlag(std::string_view name) { return FindFlag(name) != nullptr; }

bool AsksForJson(std::span<const std::string> arguments) {
  const auto end = std::ranges::find(arguments, "--");
  return std::find(arguments.begin(), end, "--json") != end;
}

absl::StatusOr<Invocation> ParseInvocation(std::span<const std::string> arguments,
                                           const char* default_servers) {
  Invocation invocation;
  if (default_servers != nullptr && *default_servers != '\0') {
    GANNET_RETURN_IF_ERROR(SetServers(default_servers, &invocation));
  }
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const bool at_command = !invocation.words.empty();
    if (argument == "--") {
      const size_t from = at_command ? i : i + 1;
      invocation.words.insert(invocation.words.end(),
                              arguments.begin() + static_cast<std::ptrdiff_t>(from),
                              arguments.end());
      break;
    }
    if (const Flag* flag = FindFlag(NameIn(argument)); flag != nullptr) {
      GANNET_RETURN_IF_ERROR(TakeFlag(*flag, arguments, &i, &invocation));
    } else if (IsShortHelp(argument, invocation)) {
      invocation.help = true;
    } else if (!at_command && argument.starts_with('-') && argument != "-") {
      return NoFlag(argument);
    } else {
      invocation.words.push_back(argument);
    }
  }
  return invocation;
}

std::string UsageText() {
  return absl::StrCat(
      "usage: kvcli [FLAGS] [COMMAND ARGS...]\n\n",
      "Without a command, opens a prompt. If stdin is not a terminal, reads one command per "
      "line.\n"
      "Flags may stand before the command, in it and behind it.\n\n"
      "Examples:\n"
      "    kvcli put color blue --ttl=1h\n"
      "    kvcli --server=10.0.0.1:7471 --json scan 'user:*' --limit=20\n"
      "    kvcli lock job --lease=10m -- ./nightly-job\n\n"
      "Flags:\n",
      "  --server=HOST:PORT  the server, or several separated by commas (default $GANNET_SERVER,\n",
      "                      or 127.0.0.1:7471); a group is cluster:HOST:PORT,HOST:PORT\n",
      "  --device=DEVICE     auto, soft (the user-space device), or an RDMA device's name\n",
      "  --auth_file=FILE    the first key of this file is shown to the server: ID HEXKEY [read]\n",
      "                      (default $GANNET_AUTH_FILE, or no key)\n",
      "  --deadline_ms=N     deadline of connecting and of every command (default 3000)\n",
      "  --json              print each answer as a line of JSON, errors too; values also as "
      "base64\n",
      "  --verbose           print the device that is used on stderr\n",
      "  --quiet             print only errors on stderr, not what was not found\n",
      "  -h, --help, --version\n", "\n", HelpText(),
      "\nkvcli help COMMAND shows a command's words and options, kvcli help what else it may be\n"
      "called: SET, add, keys and other names of Redis and memcached are taken, too.\n"
      "In a line, '...' is literal, and \"...\" may contain \\n \\t \\r \\0 \\\\ \\\" \\xHH.\n"
      "A line that begins with # is a comment.\n",
      "Exit code: 0 done, 1 not found or condition failed, 2 wrong usage, 3 error. lock KEY --\n"
      "COMMAND exits with the command's code, or with 75 if another client holds the lock.\n");
}

}  // namespace gannet::kvcli
