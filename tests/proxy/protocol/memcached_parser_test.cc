#include "proxy/protocol/memcached_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gannet::proxy {
namespace {

using ::testing::ElementsAre;
using Outcome = Parsed::Outcome;

TEST(MemcachedParserTest, WaitsForEveryByteOfACommand) {
  const std::string whole = "set key 1 2 4 noreply\r\nv\r\n!\r\n";
  ParsedCommand command;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Parsed parsed = ParseMemcached(whole.substr(0, size), &command);
    EXPECT_EQ(parsed.outcome, Outcome::kNeedsMore) << size;
    EXPECT_GT(parsed.needed, size);
    EXPECT_LE(parsed.needed, whole.size());
  }
  const std::string with_more = whole + "get a\r\n";
  const Parsed parsed = ParseMemcached(with_more, &command);
  EXPECT_EQ(parsed.outcome, Outcome::kCommand);
  EXPECT_EQ(parsed.consumed, whole.size());
  EXPECT_THAT(command.words, ElementsAre("set", "key", "1", "2", "4", "noreply"));
  EXPECT_EQ(command.data, "v\r\n!");
}

TEST(MemcachedParserTest, TakesLinesThatEndWithANewlineAlone) {
  ParsedCommand command;
  EXPECT_EQ(ParseMemcached("get  a b \nget c\n", &command).consumed, 10u);
  EXPECT_THAT(command.words, ElementsAre("get", "a", "b"));
  EXPECT_FALSE(command.has_data);
}

TEST(MemcachedParserTest, MetaSetHasItsLengthBehindTheKey) {
  const std::string whole = "ms key 2 T0\r\nhi\r\n";
  ParsedCommand command;
  EXPECT_EQ(ParseMemcached(whole, &command).consumed, whole.size());
  EXPECT_EQ(command.data, "hi");
}

TEST(MemcachedParserTest, RefusesADataBlockThatDoesNotEndWhereItShould) {
  const std::string whole = "set a 0 0 1\r\nxyz\r\n";
  ParsedCommand command;
  const Parsed parsed = ParseMemcached(whole, &command);
  EXPECT_EQ(parsed.outcome, Outcome::kRefused);
  EXPECT_EQ(parsed.error, "CLIENT_ERROR bad data chunk");
  EXPECT_EQ(parsed.consumed, whole.size() - 2);
}

TEST(MemcachedParserTest, SkipsADataBlockThatIsTooLong) {
  const std::string line = "set a 0 0 67108865\r\n";
  ParsedCommand command;
  const Parsed parsed = ParseMemcached(line, &command);
  EXPECT_EQ(parsed.outcome, Outcome::kRefused);
  EXPECT_EQ(parsed.consumed, line.size() + 67108865 + 2);
  EXPECT_EQ(ParseMemcached("set a 0 0 99999999999\r\n", &command).outcome, Outcome::kBroken);
  EXPECT_EQ(ParseMemcached("set a 0 0 -1\r\n", &command).outcome, Outcome::kRefused);
}

TEST(MemcachedParserTest, GivesUpOnALineWithoutAnEnd) {
  ParsedCommand command;
  EXPECT_EQ(ParseMemcached(std::string(kLineBytesMax - 1, 'x'), &command).outcome,
            Outcome::kNeedsMore);
  EXPECT_EQ(ParseMemcached(std::string(kLineBytesMax, 'x'), &command).outcome, Outcome::kBroken);
}

}  // namespace
}  // namespace gannet::proxy
