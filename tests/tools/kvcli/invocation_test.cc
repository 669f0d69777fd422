#include "tools/kvcli/invocation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tools/kvcli/child.h"
#include "tools/kvcli/text.h"

namespace gannet::kvcli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

Invocation ParsedInvocation(const Words& arguments) {
  const auto invocation = ParseInvocation(arguments);
  EXPECT_TRUE(invocation.ok()) << invocation.status();
  return invocation.value_or(Invocation{});
}

TEST(InvocationTest, NothingIsAPromptOnTheDefaultServer) {
  const Invocation invocation = ParsedInvocation({});
  EXPECT_THAT(invocation.servers, ElementsAre("127.0.0.1:7471"));
  EXPECT_EQ(invocation.device, "auto");
  EXPECT_THAT(invocation.words, IsEmpty());
  EXPECT_FALSE(invocation.json);
}

TEST(InvocationTest, AGroupIsOneServer) {
  EXPECT_THAT(ParsedInvocation({"--server=cluster:a:1,b:2", "stats"}).servers,
              ElementsAre("cluster:a:1,b:2"));
}

TEST(InvocationTest, FlagsComeBeforeTheCommand) {
  const Invocation invocation =
      ParsedInvocation({"--server=a:1,b:2", "--device", "soft", "--deadline_ms=50",
                        "--auth_file=my.keys", "--json", "put", "key", "--flags=1"});
  EXPECT_THAT(invocation.servers, ElementsAre("a:1", "b:2"));
  EXPECT_EQ(invocation.device, "soft");
  EXPECT_EQ(invocation.auth_file, "my.keys");
  EXPECT_EQ(invocation.deadline, std::chrono::milliseconds(50));
  EXPECT_TRUE(invocation.json);
  EXPECT_THAT(invocation.words, ElementsAre("put", "key", "--flags=1"));
}

TEST(InvocationTest, FlagsMayStandBehindTheCommandToo) {
  const Invocation invocation =
      ParsedInvocation({"get", "--server", "a:1", "key", "--json", "--meta", "--deadline_ms=50"});
  EXPECT_THAT(invocation.servers, ElementsAre("a:1"));
  EXPECT_TRUE(invocation.json);
  EXPECT_EQ(invocation.deadline, std::chrono::milliseconds(50));
  EXPECT_THAT(invocation.words, ElementsAre("get", "key", "--meta"));
  EXPECT_TRUE(ParsedInvocation({"put", "--help"}).help);
  EXPECT_TRUE(ParsedInvocation({"put", "-h"}).help);
  EXPECT_FALSE(ParsedInvocation({"put", "key", "-h"}).help) << "a value";
}

TEST(InvocationTest, AFlagBehindDashDashIsAWord) {
  const Invocation invocation = ParsedInvocation({"put", "--", "--json", "--server=x"});
  EXPECT_FALSE(invocation.json);
  EXPECT_THAT(invocation.words, ElementsAre("put", "--", "--json", "--server=x"));
  const Words json = {"get", "--json"}, word = {"get", "--", "--json"};
  EXPECT_TRUE(AsksForJson(json));
  EXPECT_FALSE(AsksForJson(word));
}

TEST(InvocationTest, SaysWhichFlagWasMeant) {
  const Words slip = {"--sever=a:1"};
  EXPECT_THAT(std::string(ParseInvocation(slip).status().message()),
              HasSubstr("no flag --sever=a:1; did you mean --server?"));
}

TEST(InvocationTest, ValuesThatBeginWithADashAreTheCommands) {
  EXPECT_THAT(ParsedInvocation({"put", "key", "-5"}).words, ElementsAre("put", "key", "-5"));
  EXPECT_THAT(ParsedInvocation({"lock", "key", "--", "ls", "--json"}).words,
              ElementsAre("lock", "key", "--", "ls", "--json"));
  EXPECT_THAT(ParsedInvocation({"--", "get", "key"}).words, ElementsAre("get", "key"));
}

TEST(InvocationTest, RefusesWrongFlags) {
  for (const Words& wrong :
       {Words{"--servers=a:1"}, Words{"--server"}, Words{"--server="}, Words{"--device="},
        Words{"--auth_file="}, Words{"--deadline_ms=0"}, Words{"--deadline_ms=x"},
        Words{"--deadline_ms=1e3"}, Words{"--json=1"}}) {
    EXPECT_EQ(ParseInvocation(wrong).status().code(), absl::StatusCode::kInvalidArgument)
        << wrong[0];
  }
}

TEST(InvocationTest, UsageNamesFlagsAndCommands) {
  EXPECT_THAT(UsageText(), HasSubstr("--server"));
  EXPECT_THAT(UsageText(), HasSubstr("mget"));
  EXPECT_THAT(UsageText(), HasSubstr("Exit code"));
}

TEST(TextTest, Base64HasRfc4648sVectors) {
  EXPECT_EQ(Base64(""), "");
  EXPECT_EQ(Base64("f"), "Zg==");
  EXPECT_EQ(Base64("fo"), "Zm8=");
  EXPECT_EQ(Base64("foo"), "Zm9v");
  EXPECT_EQ(Base64("foob"), "Zm9vYg==");
  EXPECT_EQ(Base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(Base64(std::string("\xff\x00\xfe", 3)), "/wD+");
}

TEST(TextTest, TellsUtf8FromBinary) {
  for (const char* text :
       {"", "plain", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x90\xa6", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
  }
  for (const char* binary :
       {"\xff", "\x80", "\xc3", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        "\xf0\x80\x80\x80", "\xe2\x82", "a\xc3(", "\xf5\x80\x80\x80"}) {
    EXPECT_FALSE(IsUtf8(binary));
  }
}

TEST(TextTest, BinaryGoesIntoJsonAsBase64) {
  Json json = Json::object();
  AddBytes("key", "text", false, json);
  AddBytes("value", "text", true, json);
  AddBytes("other", "\xff", false, json);
  EXPECT_EQ(json.dump(),
            R"({"key":"text","value":"text","value_base64":"dGV4dA==","other_base64":"/w=="})");
}

TEST(ChildTest, ReturnsWhatAShellWould) {
  EXPECT_EQ(RunChild(Words{"true"}), 0);
  EXPECT_EQ(RunChild(Words{"sh", "-c", "exit 7"}), 7);
  EXPECT_EQ(RunChild(Words{"sh", "-c", "kill -TERM $$"}), 128 + 15);
  EXPECT_EQ(RunChild(Words{"/nonexistent/program"}), 127);
  EXPECT_EQ(RunChild(Words{"/"}), 126);
}

TEST(ChildTest, PassesTerminationOnAndSurvives) {
  // The child signals its parent, this process, and waits for the signal to come back.
  EXPECT_EQ(
      RunChild(Words{"sh", "-c", "trap 'exit 9' TERM; kill -TERM $PPID; while :; do :; done"}), 9);
}

TEST(ChildTest, ChildStartsWithDefaultSignals) {
  EXPECT_EQ(RunChild(Words{"sh", "-c", "kill -INT $$; exit 0"}), 128 + 2);
}

}  // namespace
}  // namespace gannet::kvcli
