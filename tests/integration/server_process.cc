#include "tests/integration/server_process.h"

#include <signal.h>

#include <cstdio>
#include <regex>

#include "common/base/check.h"
#include "tests/rdma/test_device.h"

namespace gannet {

ReadyLine ParseReadyLine(const std::string& line) {
  static const std::regex pattern(
      R"(READY (\S+:\d+) device=(\S+) kind=(hardware|kernel-software|softverbs))");
  std::smatch match;
  if (!std::regex_match(line, match, pattern)) return {};
  return {match[1], match[2], match[3]};
}

ServerProcess::ServerProcess(std::vector<std::string> flags) : flags_(std::move(flags)) {
  if (!TestServer().empty()) {
    endpoint_ = TestServer();
  } else {
    Start(TestListenAddress());
  }
}

ChildProcess& ServerProcess::process() {
  GANNET_CHECK(process_ != nullptr, "this test needs a server of its own");
  return *process_;
}

void ServerProcess::Start(const std::string& listen) {
  std::vector<std::string> argv = {ProgramPath("kvserver"), "--listen=" + listen,
                                   "--device=" + TestDevice().name, "--memory=64M",
                                   "--busy_poll_us=0"};
  argv.insert(argv.end(), flags_.begin(), flags_.end());
  process_ = std::make_unique<ChildProcess>(ChildProcess::Options{.argv = argv});
  const std::optional<std::string> line = process_->ReadLine();
  ready_line_ = line.value_or("");
  endpoint_ = ParseReadyLine(ready_line_).endpoint;
  if (endpoint_.empty()) {
    std::fprintf(stderr, "kvserver said \"%s\" and\n%s\n", ready_line_.c_str(),
                 process_->Stderr().c_str());
  }
  GANNET_CHECK(!endpoint_.empty(), "kvserver did not become ready");
}

void ServerProcess::Kill() {
  process().Signal(SIGKILL);
  process().Wait();
}

void ServerProcess::Restart() {
  GANNET_CHECK(process_ != nullptr, "this test needs a server of its own");
  Start(endpoint_);
}

}  // namespace gannet
