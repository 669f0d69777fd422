#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/common/rdma/test_device.h"
#include "tests/support/run_program.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using test_support::ChildProcess;
using test_support::ProgramPath;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// Runs a command that becomes a kvserver that cannot start. It must exit with this code. Returns
// the line in which it says why, which follows its log lines.
std::string FailingCommand(const std::vector<std::string>& argv, int exit_code = 1) {
  ChildProcess server({.argv = argv});
  EXPECT_EQ(server.ReadLine(), std::nullopt);
  EXPECT_EQ(server.Wait(), exit_code);
  const std::string all = server.Stderr();
  const size_t start = all.rfind("kvserver: ");
  const std::string said = start == std::string::npos ? "" : all.substr(start);
  EXPECT_EQ(std::ranges::count(said, '\n'), 1) << all;
  EXPECT_EQ(all.find("kvserver: "), start) << all;
  return said;
}

std::string FailingStart(const std::vector<std::string>& flags, int exit_code = 1) {
  std::vector<std::string> argv = {ProgramPath("kvserver")};
  argv.insert(argv.end(), flags.begin(), flags.end());
  return FailingCommand(argv, exit_code);
}

TEST(StartupTest, SaysWhereItListensAndOnWhat) {
  ServerProcess server;
  const std::string listen = TestListenAddress();  // with port 0
  const ReadyLine ready = ParseReadyLine(server.ready_line());
  EXPECT_THAT(ready.endpoint, StartsWith(listen.substr(0, listen.size() - 1)));
  EXPECT_FALSE(ready.device.empty());
  EXPECT_EQ(ready.kind == "softverbs", ready.device == "softverbs0") << server.ready_line();
}

std::vector<std::string> OnTwoDevices(const std::string& listen) {
  return {"/usr/bin/env", "SOFTVERBS_DEVICES=2", ProgramPath("kvserver"),
          "--memory=32M", "--device=soft",       "--listen=" + listen,
          "--workers=2"};
}

TEST(StartupTest, SaysWhichRailsItHas) {
  ChildProcess server({.argv = OnTwoDevices("127.0.0.1:0,127.0.1.1:0")});
  const std::string line = server.ReadLine().value_or("");
  EXPECT_EQ(ParseReadyLine(line).device, "softverbs0") << server.Stderr();
  EXPECT_THAT(line, testing::ContainsRegex(" rail=127.0.1.1:[0-9]+/softverbs1$"));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << server.Stderr();
}

TEST(StartupTest, WrongRailsAreOneClearLine) {
  EXPECT_THAT(FailingCommand(OnTwoDevices("127.0.1.1:0,127.0.0.1:0")),
              HasSubstr("--device=softverbs1, or another address first"));
  EXPECT_THAT(FailingCommand(OnTwoDevices("127.0.0.1:0,203.0.113.7:0")),
              HasSubstr("cannot listen on 203.0.113.7:0"));
  EXPECT_THAT(FailingCommand(OnTwoDevices("127.0.0.1,127.0.0.1"), /*exit_code=*/2),
              HasSubstr("has 127.0.0.1:7471 twice"));
}

// A server that clients have left no descriptors refuses them, says so, and answers its supervisor.
TEST(StartupTest, KeepsDescriptorsForWhatIsNoClient) {
  ChildProcess server(
      {.argv = {"/bin/bash", "-c", "ulimit -n 128; exec \"$@\"", "bash", ProgramPath("kvserver"),
                "--memory=32M", "--device=soft", "--listen=127.0.0.1:0", "--http=127.0.0.1:0"}});
  const ReadyLine ready = ParseReadyLine(server.ReadLine().value_or(""));
  ASSERT_FALSE(ready.endpoint.empty()) << server.Stderr();
  Options options;
  options.connect_timeout = std::chrono::milliseconds(500);
  std::vector<std::unique_ptr<Client>> clients;
  absl::Status refused;
  while (refused.ok() && clients.size() < 128) {
    auto client = Client::Connect({ready.endpoint}, options);
    refused = client.status();
    if (client.ok()) clients.push_back(*std::move(client));
  }
  EXPECT_THAT(std::string(refused.message()), HasSubstr("no file descriptors left for clients"));
  ASSERT_FALSE(clients.empty());
  EXPECT_TRUE(clients.front()->Put("key", "value").ok());
  EXPECT_TRUE(server.AwaitStderr("no file descriptors left for clients"));
  const auto healthy =
      test_support::RunProgram({"curl", "--silent", ShownAt(server.Stderr()) + "/healthz"});
  EXPECT_EQ(healthy.out, "ok\n");
}

// As with `kvserver 2>&1 | tee FILE` whose tee was ended.
TEST(StartupTest, ServesAlthoughNobodyReadsItsLog) {
  ChildProcess server(
      {.argv = {"/bin/bash", "-c", "exec 3> >(exit 0); wait $!; exec \"$@\" 2>&3", "bash",
                ProgramPath("kvserver"), "--memory=32M", "--device=soft", "--listen=127.0.0.1:0"}});
  EXPECT_EQ(server.ReadLine(),
            "kvserver: cannot write its log to stderr: Broken pipe; goes on without");
  EXPECT_THAT(server.ReadLine().value_or(""), StartsWith("READY "));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
}

std::string FileText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(StartupTest, AppendsItsLogToAFileWhichItOpensAnewOnSighup) {
  const std::string path = testing::TempDir() + "startup_test." + std::to_string(getpid());
  ServerProcess server({"--log_file=" + path, "--log_json"});
  std::filesystem::rename(path, path + ".1");
  server.process().Signal(SIGHUP);
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(), 0);
  EXPECT_EQ(server.process().Stderr(), "");
  std::istringstream before(FileText(path + ".1"));
  for (std::string line; std::getline(before, line);) {
    EXPECT_TRUE(nlohmann::json::parse(line).contains("message")) << line;
  }
  EXPECT_THAT(before.str(), HasSubstr("device " + TestDevice().name));
  EXPECT_THAT(FileText(path), HasSubstr(R"("message":"stopped")"));
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".1");
}

TEST(StartupTest, SaysWhichLogFileItCannotOpen) {
  EXPECT_THAT(FailingStart({"--log_file=/none/log"}),
              HasSubstr("cannot open the log file /none/log"));
}

TEST(StartupTest, FindsSoftverbsByItselfAndSaysSo) {
  ChildProcess server(
      {.argv = {ProgramPath("kvserver"), "--listen=127.0.0.1:0", "--memory=64M", "--device=soft"},
       .environment = {"LD_LIBRARY_PATH"}});
  const ReadyLine ready = ParseReadyLine(server.ReadLine().value_or(""));
  EXPECT_EQ(ready.device, "softverbs0") << server.Stderr();
  EXPECT_EQ(ready.kind, "softverbs");
}

TEST(StartupTest, SaysLoudlyWhenItChoseSoftverbsItself) {
  ChildProcess server(
      {.argv = {ProgramPath("kvserver"), "--listen=" + TestListenAddress(), "--memory=64M"},
       .environment = {"LD_LIBRARY_PATH"}});
  const ReadyLine ready = ParseReadyLine(server.ReadLine().value_or(""));
  ASSERT_FALSE(ready.endpoint.empty()) << server.Stderr();
  // A machine with a working RDMA device has nothing to say.
  EXPECT_EQ(server.Stderr().find("NO USABLE RDMA DEVICE") != std::string::npos,
            ready.kind == "softverbs")
      << server.Stderr();
}

TEST(StartupTest, ListensOnIpv6AndOnNames) {
  if (TestDevice().kind != DeviceKind::kSoftverbs) {
    GTEST_SKIP() << "RDMA devices are not reached under [::1] and localhost";
  }
  for (const char* listen : {"[::1]:0", "localhost:0"}) {
    ChildProcess server(
        {.argv = {ProgramPath("kvserver"), std::string("--listen=") + listen, "--memory=64M"}});
    EXPECT_FALSE(ParseReadyLine(server.ReadLine().value_or("")).endpoint.empty())
        << listen << "\n"
        << server.Stderr();
  }
}

// It says so before it is ready.
TEST(StartupTest, WarnsWhoShowsThePageToOtherHosts) {
  ServerProcess to_all({"--http=0.0.0.0:0"});
  EXPECT_THAT(to_all.process().Stderr(), HasSubstr("--http=0.0.0.0:0 has no password"));
  ServerProcess to_this_host({"--http=127.0.0.1:0"});
  EXPECT_THAT(to_this_host.process().Stderr(), HasSubstr("shows itself at http://127.0.0.1:"));
  EXPECT_THAT(to_this_host.process().Stderr(), Not(HasSubstr("has no password")));
}

TEST(StartupTest, StopsCleanlyOnSigtermAndSigint) {
  for (const int signal : {SIGTERM, SIGINT}) {
    ServerProcess server;
    server.process().Signal(signal);
    EXPECT_EQ(server.process().Wait(), 0) << server.process().Stderr();
  }
}

// GNU timeout signals its child and then its process group, and users press Ctrl-C again.
TEST(StartupTest, RepeatedStopSignalsEndItCleanly) {
  ServerProcess server;
  for (int repeat = 0; repeat < 3; ++repeat) server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(), 0) << server.process().Stderr();
}

TEST(StartupTest, APortAloneIsThatPortOfEveryAddress) {
  if (TestDevice().kind != DeviceKind::kSoftverbs) {
    GTEST_SKIP() << "RDMA devices have a port space that other tests use";
  }
  ChildProcess server({.argv = {ProgramPath("kvserver"), "--listen=0", "--memory=64M"}});
  EXPECT_THAT(ParseReadyLine(server.ReadLine().value_or("")).endpoint, StartsWith("0.0.0.0:"))
      << server.Stderr();
}

TEST(StartupTest, SaysLoudlyWhoMayComeInWithoutAKey) {
  if (TestDevice().kind != DeviceKind::kSoftverbs) {
    GTEST_SKIP() << "RDMA devices have no loopback address";
  }
  const auto said = [](const std::string& listen) {
    ChildProcess server(
        {.argv = {ProgramPath("kvserver"), "--memory=64M", "--device=soft", "--listen=" + listen}});
    EXPECT_NE(server.ReadLine(), std::nullopt);
    server.Signal(SIGTERM);
    server.Wait();
    return server.Stderr();
  };
  EXPECT_THAT(said("127.0.0.1:0"), HasSubstr("all programs of this machine may read and write"));
  EXPECT_THAT(said("0.0.0.0:0"), HasSubstr("ANYBODY who reaches 0.0.0.0:"));
}

TEST(StartupTest, SyncAlwaysNeedsADisk) {
  EXPECT_THAT(FailingStart({"--listen=127.0.0.1:0", "--sync=always"}, 2),
              HasSubstr("--sync=always needs --data=DIR"));
}

TEST(StartupTest, AMemberSaysWhereItIsReached) {
  EXPECT_THAT(FailingStart({"--cluster=c", "--etcd=http://127.0.0.1:1", "--name=n1"}, 2),
              HasSubstr("--cluster needs --advertise=HOST:PORT"));
}

TEST(StartupTest, PortInUseIsOneClearLine) {
  ServerProcess server;
  const std::string said = FailingStart({"--listen=" + server.endpoint(), "--memory=64M"});
  EXPECT_THAT(said, HasSubstr(server.endpoint()));
  EXPECT_THAT(said, HasSubstr("choose another port"));
}

TEST(StartupTest, UnknownDeviceIsOneClearLineThatListsWhatIsThere) {
  const std::string said = FailingStart({"--listen=127.0.0.1:0", "--device=nosuch0"});
  EXPECT_THAT(said, HasSubstr("nosuch0"));
  EXPECT_THAT(said, HasSubstr("there "));
}

TEST(StartupTest, TooLittleMemoryIsOneClearLine) {
  const std::string listen = "--listen=" + TestListenAddress();
  EXPECT_THAT(FailingStart({listen, "--memory=4K"}), HasSubstr("memory"));
  const std::string said = FailingStart({listen, "--memory=64T"});
  EXPECT_THAT(said, AnyOf(HasSubstr("MiB are available"), HasSubstr("--memory")));
}

TEST(StartupTest, TooLittleMemlockIsOneClearLineThatSaysWhatToDo) {
  const std::string said = FailingCommand(
      {"/bin/sh", "-c", "ulimit -l 8192; SOFTVERBS_MEMLOCK=1 exec \"$0\" \"$@\"",
       ProgramPath("kvserver"), "--listen=127.0.0.1:0", "--memory=64M", "--device=soft"});
  EXPECT_THAT(said, HasSubstr("RLIMIT_MEMLOCK"));
  EXPECT_THAT(said, HasSubstr("ulimit -l unlimited"));
}

TEST(StartupTest, WrongUsageIsOneClearLineAndExitsWithTwo) {
  constexpr int kWrongUsage = 2;
  EXPECT_THAT(FailingStart({"--listen=127.0.0.1:notaport", "--memory=64M"}, kWrongUsage),
              HasSubstr("--listen=127.0.0.1:notaport: "));
  EXPECT_THAT(FailingStart({"--memory=much"}, kWrongUsage), HasSubstr("--memory=much: "));
  EXPECT_THAT(FailingStart({"--device=none"}), HasSubstr("--device=none: "));
  EXPECT_THAT(FailingStart({"--memry=1G"}, kWrongUsage), HasSubstr("no flag --memry=1G"));
  EXPECT_THAT(FailingStart({"--workers=0"}, kWrongUsage), HasSubstr("--workers"));
  EXPECT_THAT(FailingStart({"1G"}, kWrongUsage), HasSubstr("'1G'"));
}

TEST(StartupTest, WhyItDoesNotStartIsInItsLog) {
  const std::string log = testing::TempDir() + "startup_test_failing.log";
  std::filesystem::remove(log);
  for (const char* wrong : {"--memory=much", "--http=nowhere"}) {
    const std::string said = FailingStart({wrong, "--log_file=" + log}, wrong[2] == 'm' ? 2 : 1);
    EXPECT_THAT(said, HasSubstr(wrong));
    EXPECT_THAT(FileText(log), HasSubstr(wrong));
  }
}

TEST(StartupTest, HelpIsATableOfItsOwnFlags) {
  ChildProcess server({.argv = {ProgramPath("kvserver"), "--help"}});
  std::string help;
  while (const auto line = server.ReadLine()) help += *line + "\n";
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_THAT(help, HasSubstr("--listen=TEXT"));
  EXPECT_THAT(help, HasSubstr("\nOther flags:\n  --flagfile")) << "all have a purpose";
  EXPECT_THAT(help, HasSubstr("nobody is authenticated"));
  EXPECT_THAT(help, Not(HasSubstr("main.cc"))) << "paths of the build";
}

}  // namespace
}  // namespace gannet
