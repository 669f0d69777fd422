#include "tests/support/server_process.h"

#include <cstdio>
#include <regex>

#include "common/base/check.h"

namespace gannet {
namespace {

using test_support::ChildProcess;

ServerPlace server_place;

}  // namespace

void SetServerPlace(const ServerPlace& place) { server_place = place; }

ReadyLine ParseReadyLine(const std::string& line) {
  static const std::regex pattern(
      R"(READY (\S+:\d+) device=(\S+) kind=(hardware|kernel-software|softverbs)(?: .*)?)");
  std::smatch match;
  if (!std::regex_match(line, match, pattern)) return {};
  return {match[1], match[2], match[3]};
}

ServerProcess::ServerProcess(std::vector<std::string> flags) : flags_(std::move(flags)) {
  if (!server_place.running.empty()) {
    endpoint_ = server_place.running;
  } else {
    Start(server_place.listen);
    AwaitReady();
  }
}

ChildProcess& ServerProcess::process() {
  GANNET_CHECK(process_ != nullptr, "this test needs a server of its own");
  return *process_;
}

void ServerProcess::Start(const std::string& listen) {
  std::vector<std::string> argv = {test_support::ProgramPath("kvserver"), "--listen=" + listen,
                                   "--device=" + server_place.device, "--memory=64M",
                                   "--busy_poll_us=0"};
  argv.insert(argv.end(), flags_.begin(), flags_.end());
  process_ = std::make_unique<ChildProcess>(ChildProcess::Options{.argv = argv});
}

void ServerProcess::AwaitReady() {
  const std::optional<std::string> line = process_->ReadLine();
  ready_line_ = line.value_or("");
  endpoint_ = ParseReadyLine(ready_line_).endpoint;
  if (endpoint_.empty()) {
    std::fprintf(stderr, "kvserver said \"%s\" and\n%s\n", ready_line_.c_str(),
                 process_->Stderr().c_str());
  }
  GANNET_CHECK(!endpoint_.empty(), "kvserver did not become ready");
}

void ServerProcess::Kill() { process().Kill(); }

void ServerProcess::StartAgain() {
  GANNET_CHECK(process_ != nullptr, "this test needs a server of its own");
  Start(endpoint_);
}

std::string ShownAt(const std::string& log) {
  constexpr std::string_view kBefore = "shows itself at ";
  const size_t before = log.rfind(kBefore);
  GANNET_CHECK(before != std::string::npos, "the server does not show itself, or not yet");
  const size_t begin = before + kBefore.size();
  return log.substr(begin, log.find('\n', begin) - begin);
}

}  // namespace gannet
