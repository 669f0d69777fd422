#include "proxy/protocol/resp_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "proxy/protocol/protocol.h"
#include "proxy/protocol/resp_reply.h"

namespace gannet::proxy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Outcome = Parsed::Outcome;

TEST(RespParserTest, WaitsForEveryByteOfACommand) {
  const std::string whole = "*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\n\r\n$1\r\n";
  ParsedCommand command;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Parsed parsed = ParseResp(whole.substr(0, size), &command);
    EXPECT_EQ(parsed.outcome, Outcome::kNeedsMore) << size;
    EXPECT_GT(parsed.needed, size);
    EXPECT_LE(parsed.needed, whole.size());
  }
  const std::string with_more = whole + "*1\r\n";
  EXPECT_EQ(ParseResp(with_more, &command).consumed, whole.size());
  EXPECT_THAT(command.words, ElementsAre("SET", "", "\r\n$1"));
}

TEST(RespParserTest, TakesWordsOfALine) {
  ParsedCommand command;
  EXPECT_EQ(ParseResp("SET a  b\r\nX", &command).consumed, 10u);
  EXPECT_THAT(command.words, ElementsAre("SET", "a", "b"));
  EXPECT_EQ(ParseResp("\r\n", &command).consumed, 2u);
  EXPECT_THAT(command.words, IsEmpty());
  EXPECT_EQ(ParseResp("*0\r\n", &command).consumed, 4u);
  EXPECT_EQ(ParseResp("*-1\r\n", &command).consumed, 5u);
}

TEST(RespParserTest, RefusesWhatBreaksTheProtocol) {
  ParsedCommand command;
  for (const char* wrong :
       {"*x\r\n", "*1\n", "*99999999\r\n", "*1\r\n+PING\r\n", "*1\r\n$-1\r\n",
        "*1\r\n$67108865\r\n", "*1\r\n$1\r\nab\r\n", "*11111111111111111111111111111111111",
        "POST / HTTP/1.1\r\n", "host: here\r\n"}) {
    EXPECT_EQ(ParseResp(wrong, &command).outcome, Outcome::kBroken) << wrong;
  }
  EXPECT_EQ(ParseResp(std::string(kLineBytesMax, 'x'), &command).outcome, Outcome::kBroken);
}

TEST(RespParserTest, TakesQuotedWordsOfALine) {
  ParsedCommand command;
  const std::string line = "set\t\"a b\" 'it\\'s' \"\\x41\\n\\\"\" x\"y\"\r\n";
  EXPECT_EQ(ParseResp(line + "PING\r\n", &command).consumed, line.size());
  EXPECT_THAT(command.words, ElementsAre("set", "a b", "it's", "A\n\"", "xy"));
  // It is kept as an array, so that it can be parsed again.
  ParsedCommand again;
  EXPECT_EQ(ParseResp(command.rewritten, &again).outcome, Outcome::kCommand);
  EXPECT_EQ(again.words, command.words);
  for (const char* wrong : {"SET a \"b\r\n", "SET 'a'b c\r\n", "SET \"\\\r\n"}) {
    EXPECT_EQ(ParseResp(wrong, &command).outcome, Outcome::kBroken) << wrong;
  }
  EXPECT_EQ(ParseResp("GET\ta \r\n", &command).outcome, Outcome::kCommand);
  EXPECT_THAT(command.words, ElementsAre("GET", "a"));
  EXPECT_EQ(command.rewritten, "");
}

TEST(RecogniseTest, SmallLettersMayBeRedisToo) {
  EXPECT_EQ(Recognise("ping\r\n"), Protocol::kRedis);
  EXPECT_EQ(Recognise("pi"), Protocol::kAuto) << "more is needed";
  for (const char* first : {"get a\r\n", "touch a 1\r\n", "pings\r\n", "\r\n", " ping\r\n"}) {
    EXPECT_EQ(Recognise(first), Protocol::kMemcached) << first;
  }
}

TEST(RecogniseTest, TheFirstByteTellsTheProtocol) {
  EXPECT_EQ(Recognise("*"), Protocol::kRedis);
  EXPECT_EQ(Recognise("P"), Protocol::kRedis);
  EXPECT_EQ(Recognise("g"), Protocol::kMemcached);
  EXPECT_EQ(Recognise("\x80"), Protocol::kMemcachedBinary);
}

TEST(RespReplyTest, Resp3HasNullsMapsAndTextsOfItsOwn) {
  std::string two;
  std::string three;
  for (const bool resp3 : {false, true}) {
    RespReply reply(resp3 ? &three : &two, resp3);
    reply.Null();
    reply.Map(1);
    reply.Integer(-1);
    reply.Text("a");
  }
  EXPECT_EQ(two, "$-1\r\n*2\r\n:-1\r\n$1\r\na\r\n");
  EXPECT_EQ(three, "_\r\n%1\r\n:-1\r\n=5\r\ntxt:a\r\n");
}

}  // namespace
}  // namespace gannet::proxy
