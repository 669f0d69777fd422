// kvload as its users run it, against a real kvserver on softverbs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/server_process.h"
#include "tests/tools/kvload/kvload_run.h"

namespace gannet {
namespace {

using Json = nlohmann::json;
using test_support::ChildProcess;
using test_support::Finished;
using test_support::ProgramPath;
using test_support::RunProgram;
using ::testing::Contains;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;

std::vector<std::string> Lines(const std::string& path) {
  std::ifstream in(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_F(KvloadTest, AMixHasAllOperationsAndChecksThem) {
  const Json json = Measure(
      {"--records=200", "--operations=6000", "--threads=2", "--allow_misses",
       "--mix=get:4,put:1,rmw:1,cas:1,add:1,replace:1,delete:1,incr:2,decr:1,append:1,prepend:1,"
       "touch:1,gat:1"});
  ExpectCommonFields(json);
  for (const char* kind : {"get", "put", "rmw", "cas", "add", "replace", "delete", "incr", "decr",
                           "append", "prepend", "touch", "gat"}) {
    EXPECT_GT(json.at("ops").at(kind).at("count"), 100) << kind;
  }
  EXPECT_GT(json.at("hit_ratio"), 0.3);
  EXPECT_LT(json.at("hit_ratio"), 1);
}

TEST_F(KvloadTest, AClusterHasItsOwnSizesAndLives) {
  const Json json = Measure({"--records=200", "--operations=2000", "--cluster=23"});
  EXPECT_EQ(json.at("key_size"), 35);
  EXPECT_EQ(json.at("value_size"), 224);
  EXPECT_EQ(json.at("ttl_ms"), 120'000);
  EXPECT_GT(json.at("ops").at("incr").at("count"), 400);
  EXPECT_EQ(json.at("wrong_values"), 0);
  EXPECT_EQ(Run({"--cluster=1"}).exit_code, 2);
  EXPECT_EQ(Run({"--mix=fetch:1"}).exit_code, 2);
}

TEST_F(KvloadTest, AllWorkloadsFindEveryValueRight) {
  for (const std::string workload : {"a", "b", "c", "d", "f"}) {
    SCOPED_TRACE(workload);
    const Json json = Measure({"--workload=" + workload, "--records=2000", "--operations=10000"});
    ExpectCommonFields(json);
    EXPECT_EQ(json.at("workload"), workload);
    EXPECT_EQ(json.at("operations"), 10000);
    EXPECT_EQ(json.at("load").at("operations"), 2000);
    EXPECT_EQ(json.at("ops").at("get").at("not_found"), 0);
    EXPECT_EQ(json.at("distribution"), workload == "d" ? "latest" : "zipfian");
    EXPECT_GT(json.at("index_fill"), 0);
  }
}

TEST_F(KvloadTest, OneSidedGetsCostTheServerNothing) {
  const Json json = Measure({"--workload=c", "--records=1000", "--operations=20000"});
  EXPECT_EQ(json.at("server_rpcs"), 0);
  EXPECT_TRUE(json.at("server_cpu_us_per_get").is_number());
  const Json& verbs = json.at("verbs");
  EXPECT_EQ(verbs.at("get").at("sends_per_op"), 0);
  EXPECT_EQ(verbs.at("get_warm").at("reads_per_op"), 1);
  EXPECT_GE(verbs.at("get_cold").at("reads_per_op"), 2);
  EXPECT_LT(verbs.at("get").at("reads_per_op"), 2);
}

TEST_F(KvloadTest, WithoutALocationCacheEveryGetIsCold) {
  const Json json = Measure({"--workload=c", "--records=1000", "--operations=5000",
                             "--location_cache=0", "--distribution=uniform"});
  EXPECT_FALSE(json.at("verbs").contains("get_warm"));
  EXPECT_GE(json.at("verbs").at("get_cold").at("reads_per_op"), 2);
  EXPECT_LE(json.at("verbs").at("get_cold").at("reads_per_op"), 2.1);
  EXPECT_EQ(json.at("distribution"), "uniform");
}

TEST_F(KvloadTest, WritesAreRpcs) {
  const Json json = Measure({"--workload=a", "--records=1000", "--operations=5000"});
  EXPECT_EQ(json.at("server_rpcs"), json.at("ops").at("put").at("count"));
  EXPECT_TRUE(json.at("server_cpu_us_per_get").is_null());
  EXPECT_EQ(json.at("verbs").at("put").at("sends_per_op"), 1);
}

TEST_F(KvloadTest, SeveralThreadsAndLargeValues) {
  const Json json = Measure({"--workload=a", "--records=200", "--operations=2000", "--threads=2",
                             "--depth=8", "--value_size=20000", "--key_size=40"});
  ExpectCommonFields(json);
  EXPECT_EQ(json.at("threads"), 2);
  EXPECT_EQ(json.at("value_size"), 20000);
}

TEST_F(KvloadTest, OpenLoopStaysAtItsRate) {
  const Json json =
      Measure({"--workload=b", "--records=500", "--operations=1000", "--target_ops=2000"});
  EXPECT_GE(json.at("seconds"), 0.49);
  EXPECT_EQ(json.at("target_ops"), 2000);
}

// No machine reaches it.
TEST_F(KvloadTest, SaysThatARateWasMissed) {
  const ScratchFile json("missed.json");
  const Finished done = Run({"--workload=c", "--records=100", "--operations=2000", "--depth=1",
                             "--rate=500M", "--json=" + json.path()});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr(", rate 500M\n"));
  EXPECT_THAT(done.out,
              ContainsRegex("RATE MISSED: --rate=500M asked for (499999|500000)... operations/s"));
  std::ifstream in(json.path());
  EXPECT_LT(Json::parse(in, nullptr, false).at("rate_reached"), 0.9);
  EXPECT_THAT(Run({"--workload=c", "--records=100", "--operations=100"}).out,
              Not(HasSubstr("rate")));
}

// The run lasts as long as its ramp: 1,000 a second to 3,000 in 400 ms are 800 operations.
TEST_F(KvloadTest, ARampEndsTheRunAndASecondHasARow) {
  const ScratchFile csv("seconds.csv");
  const ScratchFile percentiles("percentiles.txt");
  const Json json =
      Measure({"--workload=c", "--records=500", "--rate=1000:3k:400ms", "--warmup_seconds=0.1",
               "--csv=" + csv.path(), "--percentiles=" + percentiles.path()});
  EXPECT_EQ(json.at("rate"), "1000:3k:400ms");
  EXPECT_EQ(json.at("target_ops"), 3000);
  EXPECT_GE(json.at("seconds"), 0.39);
  // A machine that stalls at its end is late by that, at the last rate.
  const double late_s = std::max(json.at("seconds").get<double>() - 0.4, 0.0);
  EXPECT_LE(json.at("operations"), 810 + 3000 * late_s);
  // Less than a second each, but more rows on a machine that stalls.
  const std::vector<std::string> rows = Lines(csv.path());
  ASSERT_GE(rows.size(), 3u);
  EXPECT_THAT(rows.front(), HasSubstr("run,phase,seconds"));
  EXPECT_THAT(rows[1], HasSubstr(",load,"));
  EXPECT_THAT(rows.back(), HasSubstr(",c,"));
  EXPECT_THAT(Lines(percentiles.path()), Contains(HasSubstr("1.000000000000")));
}

TEST_F(KvloadTest, ASweepEndsInATableAndAPicture) {
  const ScratchFile json("sweep.json");
  const ScratchFile svg("sweep.svg");
  const Finished done = Run({"--workload=c", "--records=500", "--operations=2000",
                             "--sweep=depth:1,8", "--json=" + json.path(), "--svg=" + svg.path()});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.out, HasSubstr("READs/GET\n1 "));
  std::ifstream in(json.path());
  const Json runs = Json::parse(in, nullptr, false).at("runs");
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_TRUE(runs[0].contains("load"));
  EXPECT_FALSE(runs[1].contains("load"));
  EXPECT_EQ(runs[1].at("depth"), 8);
  EXPECT_EQ(runs[1].at("ops").at("get").at("not_found"), 0);
  EXPECT_THAT(Lines(svg.path()), Contains(HasSubstr("<title>p99.9</title>")));
}

TEST_F(KvloadTest, WhoHasNoGnuplotHearsOfItBeforeTheRun) {
  const ScratchFile svg("none.svg");
  const Finished done = RunProgram({"/usr/bin/env", "PATH=/nowhere", ProgramPath("kvload"),
                                    "--sweep=depth:1,8", "--svg=" + svg.path()});
  EXPECT_EQ(done.exit_code, 1) << done.err;
  EXPECT_THAT(done.err, HasSubstr("--svg needs gnuplot: apt-get install gnuplot-nox"));
  EXPECT_THAT(done.out, IsEmpty());
}

TEST_F(KvloadTest, ProgressIsShownWhenAskedFor) {
  const Finished done = Run({"--phase=run", "--workload=c", "--records=500", "--seconds=1.3",
                             "--rate=2000", "--progress"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("c: 1 s of 1.3 s, "));
  EXPECT_THAT(done.err, HasSubstr(" READs/GET, ETA 1 s"));
}

TEST_F(KvloadTest, LoadAndRunMayBeApart) {
  const Json load = Measure({"--phase=load", "--records=1000", "--operations=1"});
  EXPECT_EQ(load.at("ops").at("insert").at("count"), 1000);
  EXPECT_FALSE(load.contains("load"));
  const Json run = Measure({"--phase=run", "--records=1000", "--operations=3000"});
  EXPECT_EQ(run.at("ops").at("get").at("not_found"), 0);
}

TEST_F(KvloadTest, RawReadsAreBare) {
  const Json json = Measure({"--workload=raw_read", "--value_size=64", "--operations=50000"});
  ExpectCommonFields(json);
  EXPECT_EQ(json.at("ops").at("raw_read").at("count"), 50000);
  EXPECT_EQ(json.at("server_rpcs"), 0);
  const Json& verbs = json.at("verbs").at("raw_read");
  EXPECT_EQ(verbs.at("reads_per_op"), 1);
  EXPECT_EQ(verbs.at("read_bytes_per_op"), 64);
  EXPECT_EQ(verbs.at("sends_per_op"), 0);
}

// 5,000 items of 112 bytes fill some 137 pages, and every tenth of them lies in as many.
TEST_F(KvloadTest, BareReadsOfItemsGoWhereTheGetsGo) {
  Measure({"--phase=load", "--records=5000", "--value_size=64"});
  const auto measure = [&](const std::string& stride) {
    return Measure({"--workload=raw_read", "--raw_items", "--records=5000", "--value_size=112",
                    "--operations=20000", "--depth=4", "--stride=" + stride});
  };
  const Json all = measure("1");
  const Json some = measure("10");
  EXPECT_EQ(all.at("ops").at("raw_read").at("count"), 20000);
  EXPECT_EQ(all.at("distribution"), "uniform");
  EXPECT_EQ(all.at("errors").size(), 0u);
  EXPECT_GE(all.at("spread").at("span_bytes"), 5000 * 112);
  EXPECT_GE(all.at("spread").at("pages"), 5000 * 112 / 4096);
  EXPECT_GE(some.at("spread").at("span_bytes"), 4990 * 112);
  EXPECT_GE(some.at("spread").at("pages"), 4990 * 112 / 4096);
  EXPECT_EQ(some.at("verbs").at("raw_read").at("read_bytes_per_op"), 112);
}

TEST_F(KvloadTest, JsonMayGoToStdoutAndThenIsAlone) {
  const Finished done =
      Run({"--records=10", "--operations=10", "--workload=w", "--phase=load", "--json=-"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Json json = Json::parse(done.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << done.out;
  EXPECT_EQ(json.at("operations"), 10);
  EXPECT_THAT(done.err, HasSubstr("measured  10 operations"));
  EXPECT_THAT(done.err, Not(HasSubstr("\nhits"))) << "nothing was read";
}

TEST_F(KvloadTest, AWrongValueFailsTheRun) {
  ASSERT_EQ(Run({"--phase=load", "--records=50", "--operations=1"}).exit_code, 0);
  const Finished put =
      RunProgram({ProgramPath("kvcli"), "--server=" + server_.endpoint(), "--device=soft", "put",
                  "0000000000000007", "somebody else wrote this value, kvload did not"});
  ASSERT_EQ(put.exit_code, 0) << put.err;
  const Finished run = Run({"--phase=run", "--workload=c", "--records=50", "--operations=5000",
                            "--distribution=uniform"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("WRONG VALUE: key '0000000000000007'"));
}

TEST_F(KvloadTest, MissesOfWhatWasNeverLoadedAreOnlyCounted) {
  const Json json = Measure({"--phase=run", "--workload=c", "--records=100", "--operations=1000"});
  EXPECT_EQ(json.at("ops").at("get").at("not_found"), 1000);
  EXPECT_GE(json.at("verbs").at("get_miss").at("reads_per_op"), 1);
}

TEST_F(KvloadTest, ErrorsFailTheRun) {
  const Finished done = Run({"--phase=load", "--records=20000", "--operations=1",
                             "--value_size=100000"});  // 2 GB into 256 MB
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.out, HasSubstr("RESOURCE_EXHAUSTED"));
  const Finished both =
      Run({"--records=20000", "--operations=20000", "--value_size=100000", "--workload=c"});
  EXPECT_EQ(both.exit_code, 1);
  EXPECT_THAT(both.err, HasSubstr("the load failed: "));
  EXPECT_THAT(both.out, Not(HasSubstr("\nget "))) << "the run was not begun";
}

TEST(KvloadUsageTest, ScansAreRefusedWithTheReason) {
  const Finished done = RunProgram({ProgramPath("kvload"), "--workload=e"});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_THAT(done.err, HasSubstr("scans"));
}

TEST(KvloadUsageTest, WrongFlagsAreRefused) {
  const std::string kvload = ProgramPath("kvload");
  EXPECT_EQ(RunProgram({kvload, "--recods=5"}).exit_code, 2);
  EXPECT_EQ(RunProgram({kvload, "--records=many"}).exit_code, 2);
  EXPECT_EQ(RunProgram({kvload, "--on_server_loss=cry"}).exit_code, 2);
  EXPECT_EQ(RunProgram({kvload, "--value_size=23"}).exit_code, 2);
  EXPECT_EQ(RunProgram({kvload, "--distribution=normal"}).exit_code, 2);
  EXPECT_EQ(RunProgram({kvload, "--phase=warm"}).exit_code, 2);
  EXPECT_EQ(RunProgram({kvload, "--rate=fast"}).exit_code, 2);
  EXPECT_EQ(RunProgram({kvload, "--rate=5", "--target_ops=5"}).exit_code, 2);
  EXPECT_EQ(RunProgram({kvload, "--sweep=depth:0"}).exit_code, 2);
  EXPECT_EQ(RunProgram({kvload, "--svg=file.svg"}).exit_code, 2);
  EXPECT_EQ(RunProgram({kvload, "words"}).exit_code, 2);
  for (const char* wrong : {"--value_sizes=100", "--value_sizes=20:1"}) {
    const Finished sizes = RunProgram({kvload, wrong});
    EXPECT_EQ(sizes.exit_code, 2);
    EXPECT_THAT(sizes.err, HasSubstr("--value_sizes"));
  }
  EXPECT_EQ(RunProgram({kvload, "--value_sizes=100:1", "--value_size=100"}).exit_code, 2);
  const Finished help = RunProgram({kvload, "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.out, HasSubstr("  --backend=TEXT"));
  EXPECT_THAT(help.out, HasSubstr("\nOther flags:\n  --flagfile")) << "all have a purpose";
  EXPECT_THAT(help.out, Not(HasSubstr("main.cc")));
}

TEST(KvloadUsageTest, DeadServerIsAClearError) {
  const Finished done =
      RunProgram({ProgramPath("kvload"), "--server=127.0.0.1:1", "--device=soft"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, HasSubstr("127.0.0.1:1"));
}

// Waits until the server has answered so many requests, which is more than a load phase has. Then
// the run is under way.
void AwaitRequests(const std::string& server, uint64_t requests) {
  uint64_t answered = 0;
  for (int i = 0; i < 1000 && answered < requests; ++i) {
    const Finished stats =
        RunProgram({ProgramPath("kvcli"), "--server=" + server, "--json", "stats"});
    ASSERT_EQ(stats.exit_code, 0) << stats.err;
    answered = Json::parse(stats.out).at("rpcs");
  }
  ASSERT_GE(answered, requests);
}

// An endless run whose server dies once the load is done.
TEST_F(KvloadTest, AServerThatDiesEndsTheRunWithWordsAndFigures) {
  const ScratchFile file("lost.json");
  ChildProcess run({.argv = {ProgramPath("kvload"), "--server=" + server_.endpoint(),
                             "--device=soft", "--workload=a", "--records=1000",
                             "--operations=1000000000", "--json=" + file.path()},
                    .streams = ChildProcess::Streams::kCaptured});
  AwaitRequests(server_.endpoint(), 10'000);
  server_.Kill();
  const Finished done = Finish(run);
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, HasSubstr("the server is lost: "));
  EXPECT_THAT(done.err, HasSubstr(server_.endpoint()));
  std::ifstream in(file.path());
  const Json json = Json::parse(in, nullptr, false);
  EXPECT_GT(json.at("operations"), 0);
  EXPECT_EQ(json.at("errors").size(), 0u);
  EXPECT_THAT(json.at("cut_short").get<std::string>(), HasSubstr("the server is lost"));
}

TEST_F(KvloadTest, CtrlCEndsTheRunWithItsTable) {
  const ScratchFile file("interrupted.json");
  ChildProcess run({.argv = {ProgramPath("kvload"), "--server=" + server_.endpoint(),
                             "--device=soft", "--workload=b", "--records=1000",
                             "--operations=1000000000", "--json=" + file.path()},
                    .streams = ChildProcess::Streams::kCaptured});
  ASSERT_TRUE(run.AwaitStderr("device=softverbs0"));
  run.Signal(SIGINT);
  const Finished done = Finish(run);
  EXPECT_EQ(done.exit_code, 130);
  EXPECT_THAT(done.out, HasSubstr("CUT SHORT: interrupted"));
  std::ifstream in(file.path());
  EXPECT_EQ(Json::parse(in, nullptr, false).at("cut_short"), "interrupted");
}

TEST_F(KvloadTest, AJsonFileThatCannotBeWrittenIsNoticedBeforeTheRun) {
  const Finished done = Run({"--json=/nonexistent/kvload.json", "--operations=1000000000"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, HasSubstr("/nonexistent/kvload.json"));
}

TEST_F(KvloadTest, TakesTheServerOfTheEnvironment) {
  setenv("GANNET_SERVER", server_.endpoint().c_str(), 1);
  const Finished done =
      RunProgram({ProgramPath("kvload"), "--device=soft", "--records=10", "--operations=10"});
  unsetenv("GANNET_SERVER");
  EXPECT_EQ(done.exit_code, 0) << done.err;
}

TEST_F(KvloadTest, MissingTraceIsAClearError) {
  const Finished done = Run({"--trace=/nonexistent.csv"});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err, HasSubstr("/nonexistent.csv"));
}

}  // namespace
}  // namespace gannet
