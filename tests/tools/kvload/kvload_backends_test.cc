// kvload against the servers that Gannet is compared with: the same workloads and the same checks.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/tools/kvload/tcp_server.h"

namespace gannet {
namespace {

using Json = nlohmann::json;
using test_support::ChildProcess;
using test_support::Finished;
using test_support::ProgramPath;
using test_support::RunProgram;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

Words CommandOf(const std::string& backend, const std::string& port) {
  if (backend == "redis") {
    return {"redis-server", "--port", port,           "--bind", "127.0.0.1",
            "--save",       "",       "--appendonly", "no"};
  }
  Words words = {"memcached", "-l", "127.0.0.1", "-p", port};
  // memcached does not run as root unless told to.
  if (geteuid() == 0) words.insert(words.end(), {"-u", "root"});
  return words;
}

class KvloadBackendsTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    server_ = TcpServer::Start([](const std::string& port) { return CommandOf(GetParam(), port); });
    ASSERT_NE(server_, nullptr);
  }

  // Runs kvload, expects success, and returns what it wrote as JSON.
  Json Measure(const Words& flags) {
    const std::string path = ::testing::TempDir() + "kvload_backends." + std::to_string(getpid());
    Words words = {ProgramPath("kvload"), "--backend=" + GetParam(),
                   "--server=" + server_->address(), "--json=" + path};
    words.insert(words.end(), flags.begin(), flags.end());
    const Finished done = RunProgram(words);
    EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
    std::ifstream in(path);
    Json json = Json::parse(in, nullptr, false);
    EXPECT_TRUE(json.is_object()) << done.out;
    std::remove(path.c_str());
    return json;
  }

  std::unique_ptr<TcpServer> server_;
};

INSTANTIATE_TEST_SUITE_P(All, KvloadBackendsTest, ::testing::Values("redis", "memcached"),
                         [](const auto& info) { return info.param; });

TEST_P(KvloadBackendsTest, FindsEveryValueRight) {
  for (const std::string workload : {"a", "b", "c", "d", "f"}) {
    for (const std::string depth : {"1", "16"}) {
      SCOPED_TRACE(workload + " at depth " + depth);
      const Json json = Measure(
          {"--workload=" + workload, "--records=500", "--operations=2000", "--depth=" + depth});
      EXPECT_EQ(json.at("backend"), GetParam());
      EXPECT_EQ(json.at("kind"), "kernel-tcp");
      EXPECT_EQ(json.at("operations"), 2000);
      EXPECT_EQ(json.at("wrong_values"), 0);
      EXPECT_EQ(json.at("ops").at("get").at("not_found"), 0);
    }
  }
}

TEST_P(KvloadBackendsTest, CountsRequestsAndCpuOfBothSides) {
  const Json json = Measure({"--workload=c", "--records=100", "--operations=5000", "--depth=8"});
  EXPECT_EQ(json.at("server_rpcs"), 5000);
  EXPECT_GT(json.at("server_cpu_us"), 0);
  EXPECT_GT(json.at("client_cpu_us"), 0);
  EXPECT_TRUE(json.at("verbs").empty());
  EXPECT_TRUE(json.at("index_fill").is_null());
  EXPECT_TRUE(json.at("location_cache").is_null());
}

TEST_P(KvloadBackendsTest, SeveralThreadsAndLargeValues) {
  const Json json = Measure({"--workload=a", "--records=200", "--operations=2000", "--threads=2",
                             "--depth=8", "--value_size=20000", "--warm_up"});
  EXPECT_EQ(json.at("operations"), 2000);
  EXPECT_EQ(json.at("wrong_values"), 0);
}

TEST(KvloadRedisTest, SeveralConnectionsOfAThreadFindEveryValueRight) {
  const auto server =
      TcpServer::Start([](const std::string& port) { return CommandOf("redis", port); });
  ASSERT_NE(server, nullptr);
  const Finished done = RunProgram(
      {ProgramPath("kvload"), "--backend=redis", "--server=" + server->address(), "--workload=a",
       "--records=500", "--operations=20000", "--depth=30", "--connections=4", "--threads=2"});
  EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
  EXPECT_EQ(RunProgram({ProgramPath("kvload"), "--connections=2"}).exit_code, 2);
}

TEST(KvloadRedisTest, AServerThatDiesEndsTheRunWithWords) {
  auto server = TcpServer::Start([](const std::string& port) { return CommandOf("redis", port); });
  ASSERT_NE(server, nullptr);
  ChildProcess run({.argv = {ProgramPath("kvload"), "--backend=redis",
                             "--server=" + server->address(), "--operations=1000000000"},
                    .streams = ChildProcess::Streams::kCaptured});
  ASSERT_TRUE(run.AwaitStderr("backend=redis"));
  server.reset();
  const Finished done = Finish(run);
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_NE(done.err, "");
}

TEST_P(KvloadBackendsTest, MissesOfWhatWasNeverLoadedAreOnlyCounted) {
  const Json json =
      Measure({"--phase=run", "--workload=c", "--records=100", "--operations=1000", "--depth=16"});
  EXPECT_EQ(json.at("ops").at("get").at("not_found"), 1000);
}

TEST(KvloadBackendsUsageTest, NoServerNamesTheAddressAndHowToStartOne) {
  for (const std::string backend : {"redis", "memcached"}) {
    const Finished done =
        RunProgram({ProgramPath("kvload"), "--backend=" + backend, "--server=127.0.0.1:1"});
    EXPECT_EQ(done.exit_code, 1);
    EXPECT_THAT(done.err, HasSubstr("127.0.0.1:1"));
    EXPECT_THAT(done.err, HasSubstr("start one with: " + backend));
  }
}

TEST(KvloadBackendsUsageTest, WrongFlagsAreRefused) {
  const std::string kvload = ProgramPath("kvload");
  EXPECT_THAT(RunProgram({kvload, "--backend=sqlite"}).err,
              HasSubstr("gannet, redis or memcached"));
  EXPECT_EQ(RunProgram({kvload, "--backend=redis", "--workload=raw_read"}).exit_code, 2);
  EXPECT_EQ(RunProgram({kvload, "--backend=redis", "--server=a:1,b:2"}).exit_code, 2);
  for (const std::string flag : {"--device=soft", "--location_cache=1000"}) {
    for (const std::string backend : {"redis", "memcached"}) {
      const Finished done = RunProgram({kvload, "--backend=" + backend, flag});
      EXPECT_EQ(done.exit_code, 2);
      EXPECT_THAT(done.err, HasSubstr("has no effect with --backend=" + backend));
    }
  }
  EXPECT_THAT(RunProgram({kvload, "--raw_items"}).err, HasSubstr("--workload=raw_read"));
  EXPECT_THAT(RunProgram({kvload, "--backend=memcached", "--server=here"}).err,
              HasSubstr("HOST:PORT"));
}

}  // namespace
}  // namespace gannet
