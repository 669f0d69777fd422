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
#include "common/rdma/device_choice.h"
#include "tools/build_stamp/build_stamp.h"
#include "tools/kvcli/answers.h"
#include "tools/kvcli/child.h"
#include "tools/kvcli/command.h"
#include "tools/kvcli/gen_key.h"
#include "tools/kvcli/invocation.h"
#include "tools/kvcli/pipeline.h"
#include "tools/kvcli/prompt.h"
#include "tools/kvcli/run_cluster.h"
#include "tools/kvcli/run_discover.h"
#include "tools/kvcli/run_doctor.h"
#include "tools/kvcli/shell.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {
namespace {

// Says on stderr what is wrong, and with --json on stdout, too, where a program looks for the
// answer.
int Fail(int code, const absl::Status& status, bool json) {
  const std::string message(status.message());
  std::fprintf(stderr, "kvcli: %s\n", message.c_str());
  const std::string name = code == kExitUsage ? "Usage" : absl::StatusCodeToString(status.code());
  if (json) std::printf("%s\n", Dump(ErrorJson(name, message)).c_str());
  return code;
}

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

// Only the new version of kvserver knows what it takes.
int RunUpgradeCheck(const Command& command, bool json) {
  std::vector<std::string> words = {command.kvserver, "--upgrade_check=" + command.path};
  if (json) words.emplace_back("--json");
  const int code = RunChild(words);
  const bool did_not_run = code == kExitCannotRun || code == kExitNoProgram;
  if (json && did_not_run) {
    Say(Dump(ErrorJson("Unavailable", "cannot run " + command.kvserver)) + "\n");
  }
  return code;
}

int RunCommandLine(const Invocation& invocation, char** argv) {
  const bool json = invocation.json;
  const auto command = CommandOf(invocation);
  if (!command.ok() && !FindVerb(invocation.words[0])) return PointToHelp(command.status(), json);
  if (!command.ok()) return Fail(kExitUsage, command.status(), json);
  if (*command && (*command)->verb == Verb::kGenKey) {
    Say(KeyText(**command, json));
    return kExitDone;
  }
  if (*command && (*command)->verb == Verb::kCluster) {
    RunClusterFrom from = {.connect = ClientOptions(invocation)};
    if ((*command)->cluster.goes_to_servers()) {
      from.device = UseDevice(invocation.device, argv, SoftverbsNotice::kNotSaid).status();
    }
    if ((*command)->cluster.measures() && !from.device.ok()) {
      return Fail(kExitError, from.device, json);
    }
    return RunCluster(**command, from, json);
  }
  if (*command && (*command)->verb == Verb::kUpgradeCheck) {
    return RunUpgradeCheck(**command, json);
  }
  const bool says_device = invocation.verbose || (AtPrompt(invocation) && !invocation.quiet);
  const auto device = UseDevice(invocation.device, argv,
                                says_device ? SoftverbsNotice::kSaid : SoftverbsNotice::kNotSaid);
  if (*command && (*command)->verb == Verb::kDoctor) {
    return RunDoctor(invocation.servers, ClientOptions(invocation), device.status(), json);
  }
  if (!device.ok()) return Fail(kExitError, device.status(), json);
  if (*command && (*command)->verb == Verb::kDiscover) {
    const absl::StatusOr<int> code = RunDiscover(**command, json);
    return code.ok() ? *code : Fail(kExitError, code.status(), json);
  }
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
