// kvcli: a shell for Gannet servers. One command, a script on stdin, or a prompt.
//
// Exit code: 0 done, 1 not found or condition failed, 2 wrong usage, 3 error; with lock KEY --
// COMMAND, the command's.

#include <gannet/client.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/rdma/device_choice.h"
#include "tools/build_stamp/build_stamp.h"
#include "tools/kvcli/command.h"
#include "tools/kvcli/invocation.h"
#include "tools/kvcli/pipeline.h"
#include "tools/kvcli/prompt.h"
#include "tools/kvcli/run_doctor.h"
#include "tools/kvcli/shell.h"

namespace gannet::kvcli {
namespace {

int Fail(int code, const absl::Status& status) {
  std::fprintf(stderr, "kvcli: %s\n", std::string(status.message()).c_str());
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

void SayDevices(const Client& client) {
  for (const ServerInfo& info : client.Info()) {
    if (!info.connected) {
      std::fprintf(stderr, "kvcli: not connected: %s\n", info.why_not.c_str());
      continue;
    }
    std::fprintf(stderr, "kvcli: %s device=%s kind=%s\n", info.endpoint.c_str(),
                 info.device.c_str(), info.kind.c_str());
  }
}

bool AtPrompt(const Invocation& invocation) {
  return invocation.words.empty() && isatty(STDIN_FILENO) != 0;
}

int RunOn(Client& client, const Invocation& invocation, const Command* command) {
  Shell shell(client, {.json = invocation.json,
                       .quiet = invocation.quiet,
                       .one_shot = command != nullptr,
                       .raw = command != nullptr && isatty(STDOUT_FILENO) == 0,
                       .deadline = invocation.deadline,
                       .servers = invocation.servers,
                       .connect = ClientOptions(invocation)});
  if (command != nullptr) return shell.Execute(*command);
  if (AtPrompt(invocation)) return RunPrompt(shell, invocation.servers.front());
  Pipeline pipeline(shell, client, invocation.servers, ClientOptions(invocation));
  return RunScript(shell, pipeline);
}

// The error stays in sight: the help has more lines than most terminals.
int PointToHelp(const absl::Status& status) {
  Fail(kExitUsage, status);
  std::fputs("see kvcli --help\n", stderr);
  return kExitUsage;
}

int RunCommandLine(const Invocation& invocation, char** argv) {
  std::optional<Command> command;
  if (!invocation.words.empty()) {
    auto parsed = ParseCommand(invocation.words);
    if (!parsed.ok() && !FindVerb(invocation.words[0])) {
      return PointToHelp(parsed.status());
    }
    if (!parsed.ok()) return Fail(kExitUsage, parsed.status());
    const absl::Status sensible = CheckOneShot(*parsed);
    if (!sensible.ok()) return Fail(kExitUsage, sensible);
    command = *std::move(parsed);
  }
  const bool says_device = invocation.verbose || (AtPrompt(invocation) && !invocation.quiet);
  const auto device = UseDevice(invocation.device, argv,
                                says_device ? SoftverbsNotice::kSaid : SoftverbsNotice::kNotSaid);
  if (command && command->verb == Verb::kDoctor) {
    return RunDoctor(invocation.servers, ClientOptions(invocation), device.status(),
                     invocation.json);
  }
  if (!device.ok()) return Fail(kExitError, device.status());
  const auto client = Client::Connect(invocation.servers, ClientOptions(invocation));
  if (!client.ok()) return Fail(kExitError, client.status());
  if (says_device) SayDevices(**client);
  return RunOn(**client, invocation, command ? &*command : nullptr);
}

// Prints help, which needs no server.
int ShowHelp(std::string_view topic) {
  const auto text = HelpText(topic);
  if (!text.ok()) return Fail(kExitUsage, text.status());
  std::fputs(topic.empty() ? UsageText().c_str() : text->c_str(), stdout);
  return kExitDone;
}

int Main(const std::vector<std::string>& arguments, char** argv) {
  const auto invocation = ParseInvocation(arguments, std::getenv(kServerVariable));
  if (!invocation.ok()) return PointToHelp(invocation.status());
  const std::vector<std::string>& words = invocation->words;
  if (invocation->help) return ShowHelp(words.empty() ? "" : words[0]);
  if (invocation->version) {
    std::printf("kvcli %s (%s, %s)\n", BuildVersion(), BuildCommit(), BuildKind());
    return kExitDone;
  }
  if (!words.empty() && words[0] == "help") return ShowHelp(words.size() > 1 ? words[1] : "");
  return RunCommandLine(*invocation, argv);
}

}  // namespace
}  // namespace gannet::kvcli

int main(int argc, char** argv) {
  return gannet::kvcli::Main(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), argv);
}
