// What others do while EXEC runs, at a real server. The test runs the jobs itself, so it knows
// where in EXEC the others are.

#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "proxy/jobs/redis_commands.h"
#include "proxy/jobs/store_queue.h"
#include "proxy/protocol/resp_parser.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace gannet::proxy {
namespace {

using testing::StartsWith;

class NoWalks : public Walks {
 public:
  void Begin(Operation*, WalkInbox*) override { FAIL() << "nobody asked for a walk"; }
};

class TransactionTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(other_->Put("watched", "seen").ok());
    ASSERT_TRUE(other_->Put("else", "x").ok());
    EXPECT_EQ(Do("WATCH watched"), "+OK\r\n");
    EXPECT_EQ(Do("MULTI"), "+OK\r\n");
  }

  Job& Begin(const std::string& line) {
    const std::string bytes = line + "\r\n";
    ParsedCommand command;
    EXPECT_EQ(ParseResp(bytes, &command).outcome, Parsed::Outcome::kCommand);
    Job& job = *jobs_.emplace_back(std::make_unique<Job>());
    job.Reset(bytes, command);
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
  // Begins EXEC, and goes on until its check has passed and `commands` of its commands have begun.
  Job& BeginExec(size_t commands) {
    Job& exec = Begin("EXEC");
    while (!exec.finished && exec.execution->next < commands) store_.Poll(&finished_);
    EXPECT_FALSE(exec.finished);
    return exec;
  }

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
  Service service_{.threads = std::deque<Counters>(1)};
  ClientState state_;
  std::vector<std::unique_ptr<Job>> jobs_;
  std::vector<Job*> finished_;
};

TEST_F(TransactionTest, AWriteBetweenTheCheckAndTheFirstWriteOfAWatchedKeyIsNotLost) {
  Do("GET else");
  Do("SET watched mine");
  Job& exec = BeginExec(1);
  ASSERT_TRUE(other_->Put("watched", "theirs").ok());
  EXPECT_EQ(End(exec), "*-1\r\n");
  EXPECT_EQ(Value("watched"), "theirs");
}

TEST_F(TransactionTest, WhatWasAppliedBeforeSuchAWriteIsTold) {
  Do("SET else mine");
  Do("GET else");
  Do("SET watched mine");
  Do("SET last mine");
  Job& exec = BeginExec(2);
  ASSERT_TRUE(other_->Put("watched", "theirs").ok());
  EXPECT_THAT(End(exec), StartsWith("*4\r\n+OK\r\n$4\r\nmine\r\n-EXECABORT "));
  EXPECT_EQ(Value("else"), "mine");
  EXPECT_EQ(Value("watched"), "theirs");
  EXPECT_EQ(Value("last"), "absent");
}

// Only the first write is conditional: the transaction's own change the version.
TEST_F(TransactionTest, TheTransactionsOwnWritesAreNoConflict) {
  Do("SET watched mine");
  Do("GET watched");
  Do("SET watched more");
  EXPECT_EQ(Do("EXEC"), "*3\r\n+OK\r\n$4\r\nmine\r\n+OK\r\n");
}

}  // namespace
}  // namespace gannet::proxy
