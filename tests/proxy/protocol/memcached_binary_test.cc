#include "proxy/protocol/memcached_binary.h"

#include <gtest/gtest.h>

namespace gannet::proxy {
namespace {

using Outcome = Parsed::Outcome;

// A request with the opcode 1 and the opaque "opaq".
std::string Frame(std::string_view key, std::string_view extras, std::string_view value,
                  uint64_t body_bytes) {
  std::string frame = "\x80\x01";
  AppendBigEndian<2>(&frame, key.size());
  AppendBigEndian<1>(&frame, extras.size());
  frame += std::string(3, '\0');
  AppendBigEndian<4>(&frame, body_bytes);
  frame += "opaq";
  AppendBigEndian<8>(&frame, 99);
  return frame.append(extras).append(key).append(value);
}

TEST(MemcachedBinaryTest, TakesARequestWhenAllOfItIsThere) {
  const std::string whole = Frame("key", "extras", "value", 14);
  ParsedCommand command;
  for (size_t size = 1; size < whole.size(); ++size) {
    const Parsed parsed = ParseMemcachedBinary(std::string_view(whole).substr(0, size), &command);
    ASSERT_EQ(parsed.outcome, Outcome::kNeedsMore) << size;
    EXPECT_GT(parsed.needed, size);
    EXPECT_LE(parsed.needed, whole.size());
  }
  const std::string more = whole + "more";  // the command's words are in it
  const Parsed parsed = ParseMemcachedBinary(more, &command);
  ASSERT_EQ(parsed.outcome, Outcome::kCommand);
  EXPECT_EQ(parsed.consumed, whole.size());
  EXPECT_EQ(command.words[1], "extras");
  EXPECT_EQ(command.words[2], "key");
  EXPECT_EQ(command.data, "value");
}

TEST(MemcachedBinaryTest, RefusesLengthsThatAreWrong) {
  ParsedCommand command;
  EXPECT_EQ(ParseMemcachedBinary(Frame("key", "extras", "", 8), &command).outcome,
            Outcome::kBroken);
  EXPECT_EQ(ParseMemcachedBinary(Frame("key", "", "", 0xffffffff), &command).outcome,
            Outcome::kBroken);
  const Parsed parsed = ParseMemcachedBinary(Frame("key", "", "", (64 << 20) + 4), &command);
  EXPECT_EQ(parsed.outcome, Outcome::kRefused);
  EXPECT_EQ(parsed.consumed, kBinaryHeaderBytes + (64 << 20) + 4);
  EXPECT_EQ(ParseMemcachedBinary("get a\r\n", &command).outcome, Outcome::kBroken);
}

TEST(MemcachedBinaryTest, AnswersWithOpcodeAndOpaqueOfTheRequest) {
  std::string reply;
  AppendBinaryAnswer(&reply, Frame("", "", "", 0),
                     {.status = BinaryStatus::kExists, .extras = "e", .key = "k", .value = "v"});
  EXPECT_EQ(reply, std::string("\x81\x01\0\x01\x01\0\0\x02\0\0\0\x03opaq\0\0\0\0\0\0\0\0ekv", 27));
}

}  // namespace
}  // namespace gannet::proxy
