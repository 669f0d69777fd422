// kvcli doctor on softverbs, with faults made on purpose.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/environment_variable.h"
#include "tests/support/run_program.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using Json = nlohmann::json;
using test_support::EnvironmentVariable;
using test_support::Finished;
using test_support::ProgramPath;
using test_support::RunProgram;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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
  const auto with_limit = [&server](const std::string& kib, const std::string& command) {
    return RunProgram({"/bin/sh", "-c",
                       "ulimit -l " + kib + "; SOFTVERBS_MEMLOCK=1 exec " + ProgramPath("kvcli") +
                           " --server=" + server.endpoint() + " --device=soft " + command});
  };
  const Finished done = with_limit("16", "--json doctor");
  EXPECT_EQ(done.exit_code, 3) << done.out << done.err;
  EXPECT_THAT(Faults(done, "connection") + Faults(done, "loopback"), HasSubstr("memory"));
  // The first, or the second, of a session's buffers has room, and another has not.
  for (const std::string kib : {"512", "1024"}) {
    const Finished put = with_limit(kib, "put key value");
    EXPECT_EQ(put.exit_code, 3) << kib << put.err;
    EXPECT_THAT(put.err, HasSubstr("RLIMIT_MEMLOCK"));
  }
}

TEST(KvcliDoctorTest, FindsADeviceThatIsNotThere) {
  const Finished done = RunProgram({ProgramPath("kvcli"), "--device=none0", "--json", "doctor"});
  EXPECT_EQ(done.exit_code, 3);
}

// A server with a rail on each of two devices, whose ports go down by files.
class KvcliDoctorRailsTest : public ::testing::Test {
 protected:
  KvcliDoctorRailsTest() {
    const EnvironmentVariable ports("SOFTVERBS_PORTS", ports_.string());
    server_ = std::make_unique<ServerProcess>(
        std::vector<std::string>{"--listen=127.0.0.1:0,127.0.1.1:0"});
  }
  ~KvcliDoctorRailsTest() override { std::filesystem::remove_all(ports_); }

  static std::filesystem::path MakeFolder() {
    std::string path = testing::TempDir() + "/doctor-ports-XXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    return path;
  }

  const EnvironmentVariable devices_{"SOFTVERBS_DEVICES", "2"};
  const std::filesystem::path ports_ = MakeFolder();
  std::unique_ptr<ServerProcess> server_;
};

TEST_F(KvcliDoctorRailsTest, FindsNothingWrongWithTwoRails) {
  const Finished done = Doctor(server_->endpoint());
  EXPECT_EQ(Faults(done, "rail"), "");
  std::string texts;
  for (const Json& it : Findings(done)) {
    if (it["check"] == "rail") texts += it["text"].get<std::string>() + "\n";
  }
  EXPECT_THAT(texts, AllOf(HasSubstr("127.0.0.1:"), HasSubstr("by softverbs0/1"),
                           HasSubstr("127.0.1.1:"), HasSubstr("by softverbs1/1")));
}

TEST_F(KvcliDoctorRailsTest, FindsThatBothAreReachedByOneDevice) {
  const EnvironmentVariable addresses("SOFTVERBS_DEVICE_ADDRESSES",
                                      "127.0.0.1+127.0.1.1,127.0.2.1");
  const Finished done = Doctor(server_->endpoint());
  EXPECT_EQ(done.exit_code, 1) << done.out;
  EXPECT_THAT(Faults(done, "rail"), HasSubstr("are both reached by softverbs0/1, although 2"));
}

TEST_F(KvcliDoctorRailsTest, FindsARailThatIsDown) {
  std::ofstream(ports_ / "1.down") << "";
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  std::string faults;
  do {  // the server looks at its ports once a second
    faults = Faults(Doctor(server_->endpoint()), "rail");
  } while (faults.find("says that its port is down") == std::string::npos &&
           std::chrono::steady_clock::now() < until);
  EXPECT_THAT(faults, AllOf(HasSubstr("127.0.1.1:"), HasSubstr("says that its port is down")));
}

TEST_F(KvcliDoctorRailsTest, FindsThatBothAreOfOnePortOfTheServer) {
  const EnvironmentVariable addresses("SOFTVERBS_DEVICE_ADDRESSES",
                                      "127.0.0.1+127.0.1.1,127.0.2.1");
  const ServerProcess server({"--listen=127.0.0.1:0,127.0.1.1:0"});
  EXPECT_THAT(Faults(Doctor(server.endpoint()), "rail"),
              HasSubstr("are of one port of the server"));
}

TEST_F(KvcliDoctorRailsTest, StatsAndTopShowEachRail) {
  const auto kvcli = [&](std::vector<std::string> command) {
    command.insert(command.begin(), {ProgramPath("kvcli"), "--server=" + server_->endpoint(),
                                     "--device=soft", "--json"});
    const Finished done = RunProgram(command);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return Json::parse(done.out, nullptr, false);
  };
  const Json rails = kvcli({"stats"})["rails"];
  ASSERT_EQ(rails.size(), 2u) << rails;
  for (const Json& rail : rails) EXPECT_EQ(rail["state"], "up") << rail;
  EXPECT_THAT(rails[1]["address"].get<std::string>(), HasSubstr("127.0.1.1:"));
  const Finished text = RunProgram(
      {ProgramPath("kvcli"), "--server=" + server_->endpoint(), "--device=soft", "stats"});
  EXPECT_THAT(text.out, HasSubstr("\nrail " + server_->endpoint() + " up, "));
  EXPECT_THAT(text.out, HasSubstr("\nrail 127.0.1.1:"));
  EXPECT_THAT(text.out, Not(HasSubstr("\nrails ")));
  const Json top = kvcli({"top", "--interval=1s", "--count=1"});
  EXPECT_EQ(top["servers"][0]["rails"].size(), 2u) << top;
}

}  // namespace
}  // namespace gannet
