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

#include "common/base/lost_outputs.h"
#include "common/base/status_macros.h"
#include "tools/build_stamp/build_stamp.h"
#include "tools/kvcli/answers.h"
#include "tools/kvcli/command.h"
#include "tools/kvcli/invocation.h"
#include "tools/kvcli/pipeline.h"
#include "tools/kvcli/prompt.h"
#include "tools/kvcli/run_verbs.h"
#include "tools/kvcli/shell.h"
#include "tools/kvcli/text.h"
#include "tools/kvcli/verbs.h"

namespace gannet::kvcli {
namespace {

// Returns the exit code: an answer that could not be written is an error, whatever it was. Of a
// reader that is gone, as in `kvcli scan | head`, nothing is said.
int EndOutput(int code) {
  if (FlushAnswers()) return code;
  if (!ReaderIsGone()) {
    const std::string why = WhyNotWritten();
    std::fprintf(stderr, "kvcli: cannot write the whole answer to stdout%s%s\n",
                 why.empty() ? "" : ": ", why.c_str());
  }
  return code == kExitDone || code == kExitNotFound ? int{kExitError} : code;
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
int PointToHelp(const absl::Status& status, bool json) {
  Fail(kExitUsage, status, json);
  std::fputs("see kvcli --help\n", stderr);
  return kExitUsage;
}

// Returns the command of the command line, or nullopt if it has none.
absl::StatusOr<std::optional<Command>> CommandOf(const Invocation& invocation) {
  if (invocation.words.empty()) return std::nullopt;
  GANNET_ASSIGN_OR_RETURN(Command command, ParseCommand(invocation.words));
  GANNET_RETURN_IF_ERROR(CheckOneShot(command));
  return command;
}

int RunCommandLine(const Invocation& invocation, char** argv) {
  const bool json = invocation.json;
  const auto command = CommandOf(invocation);
  if (!command.ok() && !FindVerb(invocation.words[0])) return PointToHelp(command.status(), json);
  if (!command.ok()) return Fail(kExitUsage, command.status(), json);
  if (const auto alone = *command ? RowOf((*command)->verb).alone : nullptr; alone != nullptr) {
    return alone(**command, invocation, argv);
  }
  const bool says_device = invocation.verbose || (AtPrompt(invocation) && !invocation.quiet);
  const absl::Status device = ChooseDevice(invocation, says_device, argv);
  if (!device.ok()) return Fail(kExitError, device, json);
  const auto client = Client::Connect(invocation.servers, ClientOptions(invocation));
  if (!client.ok()) return Fail(kExitError, client.status(), json);
  if (says_device) SayDevices(**client);
  return RunOn(**client, invocation, *command ? &**command : nullptr);
}

// Prints help, which needs no server.
int ShowHelp(std::string_view topic, std::string_view no_topic, bool json) {
  const auto text = HelpText(topic);
  if (!text.ok()) return Fail(kExitUsage, text.status(), json);
  std::fputs(topic.empty() ? std::string(no_topic).c_str() : text->c_str(), stdout);
  return kExitDone;
}

int Main(const std::vector<std::string>& arguments, char** argv) {
  const auto invocation = ParseInvocation(arguments, std::getenv(kServerVariable));
  if (!invocation.ok()) return PointToHelp(invocation.status(), AsksForJson(arguments));
  const std::vector<std::string>& words = invocation->words;
  const bool json = invocation->json;
  if (invocation->help) return ShowHelp(words.empty() ? "" : words[0], UsageText(), json);
  if (invocation->version) {
    std::printf("kvcli %s (%s, %s)\n", BuildVersion(), BuildCommit(), BuildKind());
    return kExitDone;
  }
  if (!words.empty() && FindVerb(words[0]) == Verb::kHelp) {
    return ShowHelp(words.size() > 1 ? words[1] : "", *HelpText(""), json);
  }
  return RunCommandLine(*invocation, argv);
}

}  // namespace
}  // namespace gannet::kvcli

int main(int argc, char** argv) {
  using namespace gannet::kvcli;
  gannet::SurviveLostOutputs();
  return EndOutput(Main(std::vector<std::string>(argv + std::min(argc, 1), argv + argc), argv));
}
