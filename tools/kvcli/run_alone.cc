// The verbs that need no client: of what a shell has, they use little or nothing.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/auth/new_auth_key.h"
#include "common/rdma/device_choice.h"
#include "tools/kvcli/child.h"
#include "tools/kvcli/invocation.h"
#include "tools/kvcli/run_verbs.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {
namespace {

// Returns a new line of an auth file, or an object of JSON with its parts.
std::string KeyText(const Command& command, bool json) {
  const AuthKey key = NewAuthKey(command.id, command.read_only, command.replica);
  if (!json) return absl::StrCat(LineOf(key), "\n");
  const Json parts = {
      {"id", key.id}, {"key", HexOf(key)}, {"read_only", key.read_only}, {"replica", key.replica}};
  return parts.dump() + "\n";
}

}  // namespace

absl::Status ChooseDevice(const Invocation& invocation, bool says, char** argv) {
  return UseDevice(invocation.device, argv,
                   says ? SoftverbsNotice::kSaid : SoftverbsNotice::kNotSaid)
      .status();
}

int Fail(int code, const absl::Status& status, bool json) {
  const std::string message(status.message());
  std::fprintf(stderr, "kvcli: %s\n", message.c_str());
  const std::string name = code == kExitUsage ? "Usage" : absl::StatusCodeToString(status.code());
  if (json) std::printf("%s\n", Dump(ErrorJson(name, message)).c_str());
  return code;
}

gannet::Options ClientOptions(const Invocation& invocation) {
  gannet::Options options;
  options.device = invocation.device;
  options.auth_file = invocation.auth_file;
  options.connect_timeout = invocation.deadline;
  options.deadline = invocation.deadline;
  return options;
}

int RunGenKey(Shell& shell, const Command& command) {
  Say(KeyText(command, shell.options().json));
  return kExitDone;
}

int RunHelp(Shell& shell, const Command& command) {
  const auto text = HelpText(command.topic);
  if (!text.ok()) return shell.ReportUsage(text.status());
  Say(*text);
  return kExitDone;
}

int RunQuit(Shell&, const Command&) { return kExitDone; }

int RunGenKeyAlone(const Command& command, const Invocation& invocation, char**) {
  Say(KeyText(command, invocation.json));
  return kExitDone;
}

// Only the new version of kvserver knows what it takes.
int RunUpgradeCheck(const Command& command, const Invocation& invocation, char**) {
  std::vector<std::string> words = {command.kvserver, "--upgrade_check=" + command.path};
  if (invocation.json) words.emplace_back("--json");
  const int code = RunChild(words);
  const bool did_not_run = code == kExitCannotRun || code == kExitNoProgram;
  if (invocation.json && did_not_run) {
    Say(Dump(ErrorJson("Unavailable", "cannot run " + command.kvserver)) + "\n");
  }
  return code;
}

}  // namespace gannet::kvcli
