// kvcli discover hears servers that announce themselves on softverbs, and kvcli upgrade-check asks
// a program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/run_program.h"
#include "tests/support/server_process.h"

namespace gannet::kvcli {
namespace {

using Json = nlohmann::json;
using test_support::Finished;
using test_support::ProgramPath;
using test_support::RunProgram;
using ::testing::HasSubstr;

// A group of this test only, because others may run at the same time.
std::string OwnGroup() {
  return "239.79." + std::to_string(getpid() / 250 % 250) + "." + std::to_string(getpid() % 250);
}

Finished Discover(const std::string& group, const std::string& wait) {
  return RunProgram({ProgramPath("kvcli"), "--device=soft", "--json", "discover",
                     "--announce=" + group, "--wait=" + wait, "--count=1"});
}

TEST(KvcliDiscoverTest, HearsAServerThatAnnouncesItself) {
  const std::string group = OwnGroup();
  const ServerProcess server({"--announce=" + group, "--name=alone-1"});
  const Finished done = Discover(group, "60s");  // it ends with the first one
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const Json servers = Json::parse(done.out)["servers"];
  ASSERT_EQ(servers.size(), 1u) << done.out;
  EXPECT_EQ(servers[0]["endpoint"], "alone-1@" + server.endpoint());
}

TEST(KvcliDiscoverTest, SaysThatNobodyAnnouncesItself) {
  const ServerProcess silent;
  const Finished done = Discover(OwnGroup(), "100ms");
  EXPECT_EQ(done.exit_code, 1) << done.err;
  EXPECT_EQ(Json::parse(done.out)["servers"], Json::array());
}

TEST(KvcliDiscoverTest, RefusesWhatIsNoGroup) {
  EXPECT_EQ(Discover("nobody", "1s").exit_code, 3);
  const Finished server = RunProgram({ProgramPath("kvserver"), "--announce=10.0.0.1"});
  EXPECT_EQ(server.exit_code, 2);
  EXPECT_THAT(server.err, HasSubstr("no multicast address"));
  const Finished anywhere = RunProgram({ProgramPath("kvserver"), "--device=soft", "--memory=16M",
                                        "--listen=0.0.0.0:0", "--announce=" + OwnGroup()});
  EXPECT_EQ(anywhere.exit_code, 1);
  EXPECT_THAT(anywhere.err, HasSubstr("--announce needs an address"));
}

TEST(KvcliDiscoverTest, UpgradeCheckAsksTheProgramThatIsNamed) {
  EXPECT_EQ(
      RunProgram({ProgramPath("kvcli"), "upgrade-check", "x", "--kvserver=/bin/false"}).exit_code,
      1);
  EXPECT_EQ(RunProgram({ProgramPath("kvcli"), "upgrade-check", "x", "--kvserver=/none"}).exit_code,
            127);
  EXPECT_EQ(RunProgram({ProgramPath("kvcli"), "upgrade-check", "x", "--kvserver=/bin/echo"}).out,
            "--upgrade_check=x\n");
}

TEST(KvcliDiscoverTest, UpgradeCheckAnswersInJsonWhateverComesOfIt) {
  const auto answer = [](const std::string& program) {
    const Finished done = RunProgram({ProgramPath("kvcli"), "--json", "upgrade-check",
                                      "/nonexistent/file", "--kvserver=" + program});
    return nlohmann::json::parse(done.out, nullptr, false);
  };
  const nlohmann::json none = answer(ProgramPath("kvserver"));
  ASSERT_TRUE(none.is_object());
  EXPECT_EQ(none.at("takes_over"), false);
  EXPECT_EQ(none.at("why_not"), "there is no /nonexistent/file");
  EXPECT_TRUE(answer("/none").contains("error"));
}

}  // namespace
}  // namespace gannet::kvcli
