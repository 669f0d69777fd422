#include <gtest/gtest.h>

#include <string>

#include "softverbs/control.h"
#include "softverbs/tests/support/child_process.h"

// How a fault plan is written, and what happens if it is wrong.

namespace softverbs {
namespace {

using test_support::ChildProcess;

// Returns "" if the plan is accepted, otherwise the error.
std::string WhyNot(const std::string& plan) {
  char error[1024] = "";
  const int result = softverbs_set_faults(plan.c_str(), error, sizeof(error));
  EXPECT_EQ(result, *error == '\0' ? 0 : EINVAL);
  softverbs_clear_faults();
  return error;
}

TEST(FaultPlanTest, AcceptsWhatTheGrammarSays) {
  for (const char* plan : {
           "seed=7",
           "tear_read=1/16",
           "tear_read=0.5:20us,seed=18446744073709551615",
           "delay_completion=1:2ms,delay_post=0.1:300ns,stall_peer=1/3:1s",
           "drop_connection_after=1000",
           "rnr=0.25,fail_reg_mr=0,refuse_connect=1,slow_connect=1:3s",
           "error=read:0.01",
           "error=write:1/100:rem_access,error=any:0:general",
           "lost_ack=cas:0.5,lost_ack=write:1",
           "atomics=hca,strict=1",
           "atomics=none",
           "port_down=0:30s,port_down=7:2s:500ms",
           "device_dead=7:2s,device_dead=0:1ms",
       }) {
    EXPECT_EQ(WhyNot(plan), "") << plan;
  }
}

TEST(FaultPlanTest, NamesThePartThatIsWrong) {
  const std::pair<const char*, const char*> wrong[] = {
      {"seed=x", "\"seed=x\""},
      {"tear_read=1/16,tear_raed=1",
       "\"tear_raed=1\": unknown fault; accepted are seed, tear_read"},
      {"tear_read", "\"tear_read\": expected NAME=VALUE"},
      {"", "\"\": unknown fault"},
      {"rnr=1,", "\"\": unknown fault"},
      {"port_down=16:1s", "\"port_down=16:1s\": expected PORT:AFTER[:FOR]"},
      {"port_down=0", "\"port_down=0\""},
      {"port_down=0:1s:0s", "\"port_down=0:1s:0s\""},
      {"device_dead=8:1s", "\"device_dead=8:1s\": expected DEVICE:AFTER, like"},
      {"device_dead=0:1s:1s", "\"device_dead=0:1s:1s\""},
      {"rnr=2", "\"rnr=2\": expected CHANCE"},
      {"rnr=-1", "\"rnr=-1\""},
      {"rnr=nan", "\"rnr=nan\""},
      {"rnr=1/0", "\"rnr=1/0\""},
      {"rnr=1/2/3", "\"rnr=1/2/3\""},
      {"rnr=1:5us", "\"rnr=1:5us\""},
      {"tear_read=1:5", "\"tear_read=1:5\": expected CHANCE[:TIME]"},
      {"tear_read=1:0us", "\"tear_read=1:0us\""},
      {"stall_peer=1:99999999999s", "\"stall_peer=1:99999999999s\""},
      {"error=read", "opcodes send, write, read, cas, faa, any"},
      {"error=raed:1", "\"error=raed:1\""},
      {"error=read:1:bad", "statuses retry_exc"},
      {"lost_ack=cas", "\"lost_ack=cas\""},
      {"atomics=maybe", "glob, hca or none"},
      {"strict=yes", "0 or 1"},
      {"drop_connection_after=often", "a number of requests"},
  };
  for (const auto& [plan, part] : wrong) {
    EXPECT_NE(WhyNot(plan).find(part), std::string::npos) << plan << ": " << WhyNot(plan);
  }
}

struct Ended {
  int status;
  std::string output;
};

// Runs this program with SOFTVERBS_FAULTS set, to list its tests.
Ended RunWith(const std::string& plan) {
  ChildProcess process({.argv = {test_support::OwnPath(), "--gtest_list_tests"},
                        .streams = ChildProcess::Streams::kCaptured,
                        .environment = {"SOFTVERBS_FAULTS=" + plan}});
  const int status = process.Wait().value_or(-1);
  return {status, process.Stdout() + process.Stderr()};
}

TEST(FaultPlanTest, EnvironmentsPlanAndItsSeedArePrintedAtTheStart) {
  const Ended ended = RunWith("seed=42,rnr=0.5");
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_NE(ended.output.find("faults on: seed=42,rnr=0.5; seed=42 gives them again"),
            std::string::npos)
      << ended.output;
  EXPECT_NE(ended.output.find("softverbs faults: {\"tear_read\":0"), std::string::npos)
      << ended.output;
}

TEST(FaultPlanTest, SeedIsChosenAndPrintedWhenNoneIsGiven) {
  const auto seed_line = [] {
    const std::string output = RunWith("rnr=0.5").output;
    const size_t at = output.find("; seed=");
    return at == std::string::npos ? "" : output.substr(at, output.find('\n', at) - at);
  };
  const std::string first = seed_line();
  EXPECT_NE(first, "");
  EXPECT_NE(first, seed_line());
}

TEST(FaultPlanTest, WrongEnvironmentEndsTheProcessBeforeMain) {
  const Ended ended = RunWith("tear_read=1,tear_all=1");
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.output.find("SOFTVERBS_FAULTS: \"tear_all=1\": unknown fault; accepted are seed, "
                              "tear_read, delay_completion"),
            std::string::npos)
      << ended.output;
  EXPECT_EQ(ended.output.find("FaultPlanTest"), std::string::npos) << "it went on";
}

}  // namespace
}  // namespace softverbs
