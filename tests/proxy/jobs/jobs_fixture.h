#ifndef GANNET_TESTS_PROXY_JOBS_JOBS_FIXTURE_H_
#define GANNET_TESTS_PROXY_JOBS_JOBS_FIXTURE_H_

#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "proxy/jobs/redis_commands.h"
#include "proxy/jobs/scripts.h"
#include "proxy/jobs/store_queue.h"
#include "proxy/protocol/resp_parser.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace gannet::proxy {

class NoWalks : public Walks {
 public:
  void Begin(Operation*, WalkInbox*) override { FAIL() << "nobody asked for a walk"; }
};

// Runs jobs at a real server. A test polls for them, so it knows where in a job another client is.
class JobsFixture : public testing::Test {
 protected:
  // Begins a command: a line whose words may be quoted.
  Job& Begin(const std::string& line) {
    const std::string bytes = line + "\r\n";
    ParsedCommand command;
    EXPECT_EQ(ParseResp(bytes, &command).outcome, Parsed::Outcome::kCommand);
    Job& job = *jobs_.emplace_back(std::make_unique<Job>());
    job.Reset(command.rewritten.empty() ? bytes : command.rewritten, command);
    job.client = &state_;
    job.service = &service_;
    job.counters = &service_.threads[0];
    PrepareRedis(job);
    store_.Run(job);
    return job;
  }
  const std::string& End(Job& job) {
    while (!job.finished) store_.Poll(&finished_);
    return job.reply;
  }
  std::string Do(const std::string& line) { return End(Begin(line)); }

  std::string Value(const std::string& key) {
    const auto value = other_->Get(key);
    return !value.ok() ? value.status().ToString() : *value ? (*value)->data : "absent";
  }

  ServerProcess server_;
  std::unique_ptr<Client> other_ = Client::Connect({server_.endpoint()}, PatientOptions()).value();
  std::unique_ptr<AsyncClient> client_ =
      AsyncClient::Connect({server_.endpoint()}, PatientOptions()).value();
  NoWalks walks_;
  const std::unique_ptr<WalkInbox> inbox_ = *WalkInbox::Create();
  StoreQueue store_{*client_, walks_, *inbox_};
  LoadedScripts scripts_;
  // A busy machine, or a sanitizer, makes scripts slow.
  Service service_{
      .threads = std::deque<Counters>(1), .script_cpu_ms = 60'000, .scripts = &scripts_};
  ClientState state_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Job*> finished_;
};

}  // namespace gannet::proxy

#endif  // GANNET_TESTS_PROXY_JOBS_JOBS_FIXTURE_H_
