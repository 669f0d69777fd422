// The verbs that need no client: of what a shell has, they use little or nothing.

#include <cstdio>
#include <string>
#include <vector>

#include "common/rdma/device_choice.h"
#include "tools/kvcli/child.h"
#include "tools/kvcli/gen_key.h"
#include "tools/kvcli/invocation.h"
#include "tools/kvcli/run_cluster.h"
#include "tools/kvcli/run_discover.h"
#include "tools/kvcli/run_doctor.h"
#include "tools/kvcli/run_verbs.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {
namespace {

SoftverbsNotice NoticeFor(const Invocation& invocation) {
  return invocation.verbose ? SoftverbsNotice::kSaid : SoftverbsNotice::kNotSaid;
}

}  // namespace

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

int RunClusterAction(Shell& shell, const Command& command) {
  return RunCluster(command, {.connect = shell.options().connect, .device = absl::OkStatus()},
                    shell.options().json);
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

int RunClusterAlone(const Command& command, const Invocation& invocation, char** argv) {
  RunClusterFrom from = {.connect = ClientOptions(invocation)};
  if (command.cluster.goes_to_servers()) {
    from.device = UseDevice(invocation.device, argv, SoftverbsNotice::kNotSaid).status();
  }
  if (command.cluster.measures() && !from.device.ok()) {
    return Fail(kExitError, from.device, invocation.json);
  }
  return RunCluster(command, from, invocation.json);
}

// Only the new version of kvserver knows what it takes.
int RunUpgradeCheckAlone(const Command& command, const Invocation& invocation, char**) {
  std::vector<std::string> words = {command.kvserver, "--upgrade_check=" + command.path};
  if (invocation.json) words.emplace_back("--json");
  const int code = RunChild(words);
  const bool did_not_run = code == kExitCannotRun || code == kExitNoProgram;
  if (invocation.json && did_not_run) {
    Say(Dump(ErrorJson("Unavailable", "cannot run " + command.kvserver)) + "\n");
  }
  return code;
}

int RunDoctorAlone(const Command&, const Invocation& invocation, char** argv) {
  const auto device = UseDevice(invocation.device, argv, NoticeFor(invocation));
  return RunDoctor(invocation.servers, ClientOptions(invocation), device.status(), invocation.json);
}

int RunDiscoverAlone(const Command& command, const Invocation& invocation, char** argv) {
  const auto device = UseDevice(invocation.device, argv, NoticeFor(invocation));
  if (!device.ok()) return Fail(kExitError, device.status(), invocation.json);
  const absl::StatusOr<int> code = RunDiscover(command, invocation.json);
  return code.ok() ? *code : Fail(kExitError, code.status(), invocation.json);
}

}  // namespace gannet::kvcli
