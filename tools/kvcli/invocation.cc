#include "tools/kvcli/invocation.h"

#include <charconv>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "tools/kvcli/command.h"

namespace gannet::kvcli {
namespace {

constexpr int64_t kDeadlineMsMax = 3'600'000;

absl::Status SetDeadline(std::string_view text, Invocation* invocation) {
  int64_t ms = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, ms);
  if (error != std::errc() || stopped != end || ms < 1 || ms > kDeadlineMsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--deadline_ms=", std::string(text), ": a number from 1 to ", kDeadlineMsMax));
  }
  invocation->deadline = std::chrono::milliseconds(ms);
  return absl::OkStatus();
}

absl::Status SetServers(std::string_view text, Invocation* invocation) {
  invocation->servers = absl::StrSplit(std::string(text), ',', absl::SkipEmpty());
  if (!invocation->servers.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("--server needs HOST:PORT");
}

// Returns false if `name` takes a value.
bool SetSwitch(std::string_view name, Invocation* invocation) {
  bool* target = name == "json"      ? &invocation->json
                 : name == "verbose" ? &invocation->verbose
                 : name == "quiet"   ? &invocation->quiet
                 : name == "help"    ? &invocation->help
                 : name == "version" ? &invocation->version
                                     : nullptr;
  if (target == nullptr) return false;
  *target = true;
  return true;
}

absl::Status SetValue(std::string_view name, std::string_view value, Invocation* invocation) {
  if (name == "server") return SetServers(value, invocation);
  if (name == "deadline_ms") return SetDeadline(value, invocation);
  if (name == "auth_file") {
    invocation->auth_file = value;
    return value.empty() ? absl::InvalidArgumentError("--auth_file needs a file")
                         : absl::OkStatus();
  }
  invocation->device = value;
  return value.empty() ? absl::InvalidArgumentError("--device needs a name") : absl::OkStatus();
}

bool TakesValue(std::string_view name) {
  return name == "server" || name == "device" || name == "deadline_ms" || name == "auth_file";
}

}  // namespace

absl::StatusOr<Invocation> ParseInvocation(std::span<const std::string> arguments,
                                           const char* default_servers) {
  Invocation invocation;
  if (default_servers != nullptr && *default_servers != '\0') {
    GANNET_RETURN_IF_ERROR(SetServers(default_servers, &invocation));
  }
  size_t i = 0;
  for (; i < arguments.size() && arguments[i].starts_with('-') && arguments[i] != "-"; ++i) {
    if (arguments[i] == "-h") {
      invocation.help = true;
      continue;
    }
    if (!arguments[i].starts_with("--")) {
      return absl::InvalidArgumentError(absl::StrCat("no flag ", arguments[i]));
    }
    std::string_view name = std::string_view(arguments[i]).substr(2);
    if (name.empty()) {
      ++i;
      break;
    }
    if (SetSwitch(name, &invocation)) continue;
    const size_t equals = name.find('=');
    std::optional<std::string_view> value;
    if (equals != std::string_view::npos) value = name.substr(equals + 1);
    name = name.substr(0, equals);
    if (!TakesValue(name)) {
      return absl::InvalidArgumentError(absl::StrCat("no flag ", arguments[i]));
    }
    if (!value && i + 1 < arguments.size()) value = arguments[++i];
    if (!value) return absl::InvalidArgumentError(absl::StrCat(arguments[i], " needs a value"));
    GANNET_RETURN_IF_ERROR(SetValue(name, *value, &invocation));
  }
  invocation.words.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
  return invocation;
}

std::string UsageText() {
  return absl::StrCat(
      "usage: kvcli [FLAGS] [COMMAND ARGS...]\n\n",
      "Without a command, opens a prompt. If stdin is not a terminal, reads one command per "
      "line.\n\n",
      "  --server=HOST:PORT  the server, or several separated by commas (default $GANNET_SERVER,\n",
      "                      or 127.0.0.1:7471)\n",
      "  --device=DEVICE     auto, soft (the user-space device), or an RDMA device's name\n",
      "  --auth_file=FILE    the first key of this file is shown to the server: ID HEXKEY [read]\n",
      "  --deadline_ms=N     deadline of connecting and of every command (default 3000)\n",
      "  --json              print each answer as a line of JSON; values also as base64\n",
      "  --verbose           print the device that is used on stderr\n",
      "  --quiet             print only errors on stderr, not what was not found\n",
      "  -h, --help, --version\n", "\n", HelpText(),
      "\nIn a line, '...' is literal, and \"...\" may contain \\n \\t \\r \\0 \\\\ \\\" \\xHH.\n"
      "A line that begins with # is a comment.\n",
      "Exit code: 0 done, 1 not found or condition failed, 2 wrong usage, 3 error. lock KEY --\n"
      "COMMAND exits with the command's code, or with 75 if another client holds the lock.\n");
}

}  // namespace gannet::kvcli
