// kvcli doctor on softverbs, with faults made on purpose.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using Json = nlohmann::json;
using test_support::Finished;
using test_support::ProgramPath;
using test_support::RunProgram;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<Json> Findings(const Finished& done) {
  std::istringstream lines(done.out);
  std::vector<Json> all;
  for (std::string line; std::getline(lines, line);) {
    all.push_back(Json::parse(line, nullptr, false));
  }
  return all;
}

// Returns the findings of one check that are not fine.
std::string Faults(const Finished& done, const std::string& check) {
  std::string text;
  for (const Json& it : Findings(done)) {
    if (it["check"] != check || it["severity"] == "ok") continue;
    EXPECT_FALSE(it.value("mend", "").empty()) << it;
    text += it["text"].get<std::string>() + "\n";
  }
  return text;
}

// Returns a word of the only finding of a check.
std::string Only(const Finished& done, const std::string& check, const char* word) {
  std::string text;
  for (const Json& it : Findings(done)) {
    if (it["check"] != check) continue;
    EXPECT_EQ(text, "") << check << " twice";
    text = it.value(word, "");
  }
  return text;
}
std::string Text(const Finished& done, const std::string& check) {
  return Only(done, check, "text");
}
std::string Mend(const Finished& done, const std::string& check) {
  return Only(done, check, "mend");
}

Finished Doctor(const std::string& server) {
  return RunProgram(
      {ProgramPath("kvcli"), "--server=" + server, "--device=soft", "--json", "doctor"});
}

TEST(KvcliDoctorTest, FindsNoErrorWhereAServerAnswers) {
  ServerProcess server;
  const Finished done = Doctor(server.endpoint());
  EXPECT_LE(done.exit_code, 1) << done.out;  // 1: one core, or little memory to lock
  EXPECT_EQ(Faults(done, "connection"), "");
  EXPECT_EQ(Faults(done, "answer"), "");
  EXPECT_EQ(Faults(done, "port"), "");
  EXPECT_THAT(Faults(done, "device"), HasSubstr("softverbs0"));
}

TEST(KvcliDoctorTest, TellsTheWayTheClockAndTheVersions) {
  ServerProcess server;
  const Finished done = Doctor(server.endpoint());
  EXPECT_THAT(Text(done, "route"), AllOf(HasSubstr("softverbs0/1"), HasSubstr("127.0.0.1")));
  EXPECT_THAT(Text(done, "clock"), HasSubstr("the server's clock is 0."));
  EXPECT_THAT(Text(done, "version"), HasSubstr("kvcli "));
  EXPECT_THAT(Text(done, "connection"), HasSubstr("protocol "));
}

TEST(KvcliDoctorTest, FindsThatNoWayLeadsToAnotherHost) {
  const Finished done = Doctor("198.51.100.1:7471");  // RFC 5737: an address for examples
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_THAT(Faults(done, "route"), HasSubstr("198.51.100.1"));
  EXPECT_EQ(Faults(done, "connection"), "");
}

TEST(KvcliDoctorTest, FindsThatNobodyListens) {
  const Finished done = Doctor("127.0.0.1:1");
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_THAT(Faults(done, "connection"), HasSubstr("127.0.0.1:1"));
  EXPECT_THAT(Mend(done, "connection"), HasSubstr("kvserver --listen=127.0.0.1:1"));
}

TEST(KvcliDoctorTest, FindsAWrongName) {
  const Finished done = Doctor("no.such.host.invalid:7471");
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_THAT(Faults(done, "name"), HasSubstr("no.such.host.invalid"));
}

TEST(KvcliDoctorTest, FindsThatTooLittleMemoryMayBeLocked) {
  ServerProcess server;
  const Finished done =
      RunProgram({"/bin/sh", "-c",
                  "ulimit -l 16; SOFTVERBS_MEMLOCK=1 exec " + ProgramPath("kvcli") +
                      " --server=" + server.endpoint() + " --device=soft --json doctor"});
  EXPECT_EQ(done.exit_code, 3) << done.out << done.err;
  EXPECT_THAT(Faults(done, "connection") + Faults(done, "loopback"), HasSubstr("memory"));
}

TEST(KvcliDoctorTest, FindsADeviceThatIsNotThere) {
  const Finished done = RunProgram({ProgramPath("kvcli"), "--device=none0", "--json", "doctor"});
  EXPECT_EQ(done.exit_code, 3);
}

}  // namespace
}  // namespace gannet
