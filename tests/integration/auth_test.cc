// The programs with --auth_file, as their users run them.

#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include "softverbs/tests/support/key_file.h"
#include "tests/support/environment_variable.h"
#include "tests/support/run_program.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using std::chrono::steady_clock;
using test_support::EnvironmentVariable;
using test_support::Finished;
using test_support::KeyFile;
using test_support::ProgramPath;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr int kError = 3;
const std::string kWriter = "1 000102030405060708090a0b0c0d0e0f\n";
const std::string kReader = "2 202122232425262728292a2b2c2d2e2f read\n";
const std::string kNewKey = "3 303132333435363738393a3b3c3d3e3f\n";

class AuthTest : public ::testing::Test {
 protected:
  Finished Run(const std::string& program, Words words, const KeyFile* keys) {
    Words all = {ProgramPath(program), "--server=" + server_.endpoint()};
    if (keys != nullptr) all.push_back("--auth_file=" + keys->path());
    all.insert(all.end(), words.begin(), words.end());
    return test_support::RunProgram(all);
  }
  Finished Kvcli(const Words& words, const KeyFile* keys) { return Run("kvcli", words, keys); }
  // Replaces the server's file, and waits until the log says that it was read, or why not.
  void Rewrite(const std::string& text, const std::string& line) {
    keys_.Write(text);
    EXPECT_TRUE(server_.process().AwaitStderr(line)) << server_.process().Stderr();
  }

  KeyFile keys_{kWriter + kReader};
  KeyFile writer_{kWriter};
  KeyFile reader_{kReader};
  ServerProcess server_{{"--auth_file=" + keys_.path()}};
};

TEST_F(AuthTest, OnlyWhoHasAKeyMayConnect) {
  const Finished without = Kvcli({"ping"}, nullptr);
  EXPECT_EQ(without.exit_code, kError);
  EXPECT_THAT(without.err, HasSubstr("takes only clients that have one of its keys"));
  const KeyFile guessed("1 ffffffffffffffffffffffffffffffff\n");
  EXPECT_THAT(Kvcli({"ping"}, &guessed).err, HasSubstr("not made with the server's key 1"));
  EXPECT_EQ(Kvcli({"put", "key", "value"}, &writer_).exit_code, 0);
  EXPECT_EQ(Kvcli({"get", "key"}, &writer_).out, "value");
  EXPECT_THAT(Kvcli({"info"}, &writer_).out, HasSubstr("authenticated true\nread_only false\n"));
}

TEST_F(AuthTest, AReadersKeyOnlyReads) {
  ASSERT_EQ(Kvcli({"put", "key", "value"}, &writer_).exit_code, 0);
  EXPECT_EQ(Kvcli({"get", "key"}, &reader_).out, "value");
  for (const Words& write :
       {Words{"put", "key", "other"}, Words{"del", "key"}, Words{"lock", "key", "--", "true"},
        Words{"unlock", "key", "--force"}}) {
    const Finished refused = Kvcli(write, &reader_);
    EXPECT_EQ(refused.exit_code, kError) << write[0];
    EXPECT_THAT(refused.err, HasSubstr("this client's key may only read")) << write[0];
  }
  const std::string info = Kvcli({"info"}, &reader_).out;
  EXPECT_THAT(info, HasSubstr("lock_mode none\nauthenticated true\nread_only true\n"));
  EXPECT_EQ(Kvcli({"get", "key"}, &writer_).out, "value");
}

TEST_F(AuthTest, LoadToolsTakeAKeyToo) {
  const Words quick = {"--records=200", "--operations=1000", "--value_size=64"};
  Words raw = quick;
  raw.push_back("--workload=raw_read");
  for (const Words& words : {quick, raw}) {
    EXPECT_EQ(Run("kvload", words, nullptr).exit_code, 1);
    const Finished load = Run("kvload", words, &writer_);
    EXPECT_EQ(load.exit_code, 0) << load.err;
  }
}

TEST_F(AuthTest, TheEnvironmentNamesTheFileOfEveryClient) {
  const Words quick = {"--records=200", "--operations=1000", "--value_size=64"};
  Words raw = quick;
  raw.push_back("--workload=raw_read");
  const EnvironmentVariable named("GANNET_AUTH_FILE", writer_.path());
  EXPECT_EQ(Kvcli({"put", "key", "value"}, nullptr).exit_code, 0);
  EXPECT_EQ(Kvcli({"scan"}, nullptr).out, "key\n");
  EXPECT_THAT(Kvcli({"put", "key", "other"}, &reader_).err, HasSubstr("may only read"));
  for (const Words& words : {quick, raw}) {
    const Finished load = Run("kvload", words, nullptr);
    EXPECT_EQ(load.exit_code, 0) << load.err;
  }
}

// The way in which docs/operations.md changes keys while everybody goes on.
TEST_F(AuthTest, KeysChangeWhileClientsStayConnected) {
  Options options;
  options.auth_file = writer_.path();
  options.deadline = std::chrono::seconds(10);
  const auto client = Client::Connect({server_.endpoint()}, options);
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_TRUE((*client)->Put("key", "value").ok());
  Rewrite("3 00\n", keys_.path() + ":1: a key of 1 bytes");
  Rewrite(kNewKey + kWriter + kReader, "again: 3 keys");
  writer_.Write(kNewKey);
  Rewrite(kNewKey, "again: 1 keys");
  EXPECT_TRUE(server_.process().AwaitStderr("its key is valid no longer"));
  const auto give_up = steady_clock::now() + test_support::kStepTimeout;
  absl::StatusOr<std::optional<Value>> got;
  do {
    got = (*client)->Get("key");
  } while (!got.ok() && steady_clock::now() < give_up);
  ASSERT_TRUE(got.ok() && got->has_value()) << got.status();
  EXPECT_EQ((*got)->data, "value");
  const KeyFile old_key(kWriter);
  EXPECT_THAT(Kvcli({"ping"}, &old_key).err, HasSubstr("does not have the key 1"));
}

TEST_F(AuthTest, ReadsTheKeysAgainWhenTold) {
  server_.process().Signal(SIGHUP);
  EXPECT_TRUE(server_.process().AwaitStderr("again: 2 keys")) << server_.process().Stderr();
}

TEST(AuthStartTest, DoesNotStartWithAFileThatOthersMayRead) {
  const KeyFile keys(kWriter);
  ASSERT_EQ(chmod(keys.path().c_str(), 0644), 0);
  const Finished server =
      test_support::RunProgram({ProgramPath("kvserver"), "--device=soft", "--listen=127.0.0.1:0",
                                "--memory=64M", "--auth_file=" + keys.path()});
  EXPECT_EQ(server.exit_code, 1);
  EXPECT_THAT(server.err, HasSubstr("run chmod 600 " + keys.path()));
}

TEST(AuthStartTest, TheEnvironmentNamesTheServersFileAndAFlagWins) {
  const KeyFile keys(kWriter);
  const KeyFile other(kReader);
  const EnvironmentVariable named("GANNET_AUTH_FILE", keys.path());
  const ServerProcess server;
  const ServerProcess told({"--auth_file=" + other.path()});
  EXPECT_EQ(test_support::RunProgram(
                {ProgramPath("kvcli"), "--server=" + server.endpoint(), "put", "key", "value"})
                .exit_code,
            0);
  EXPECT_THAT(
      test_support::RunProgram({ProgramPath("kvcli"), "--server=" + told.endpoint(), "ping"}).err,
      HasSubstr("does not have the key 1"));
}

TEST(AuthStartTest, ANewKeyOpensTheServerThatHasIt) {
  const Finished made = test_support::RunProgram({ProgramPath("kvcli"), "genkey", "--read"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const KeyFile keys(made.out);
  const ServerProcess server({"--auth_file=" + keys.path()});
  const Finished info =
      test_support::RunProgram({ProgramPath("kvcli"), "--server=" + server.endpoint(),
                                "--auth_file=" + keys.path(), "info"});
  EXPECT_THAT(info.out, HasSubstr("authenticated true\nread_only true\n"));
}

TEST(AuthStartTest, AClientWithAKeyTakesNoServerWithoutKeys) {
  const ServerProcess server;
  const KeyFile keys(kWriter);
  const Finished refused =
      test_support::RunProgram({ProgramPath("kvcli"), "--server=" + server.endpoint(),
                                "--auth_file=" + keys.path(), "ping"});
  EXPECT_EQ(refused.exit_code, kError);
  EXPECT_THAT(refused.err, HasSubstr("the server has no keys"));
}

}  // namespace
}  // namespace gannet
