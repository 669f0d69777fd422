#include "common/auth/parse_auth_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kHex16 = "000102030405060708090a0b0c0d0e0f";

std::string ErrorOf(const std::string& text) {
  const auto keys = ParseAuthKeys(text, "keys");
  EXPECT_EQ(keys.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(keys.status().message());
}

TEST(ParseAuthKeysTest, TakesKeysInTheirOrder) {
  const auto keys =
      ParseAuthKeys(absl::StrCat("# the keys of the store\n\n7 ", kHex16, "\n  4294967295\t",
                                 kHex16, "FF  read   # monitoring\r\n"),
                    "keys");
  ASSERT_TRUE(keys.ok()) << keys.status();
  ASSERT_EQ(keys->size(), 2u);
  const AuthKey& first = keys->front();
  EXPECT_EQ(first.id, 7u);
  EXPECT_FALSE(first.read_only);
  EXPECT_EQ(first.secret, std::string("\0\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17", 16));
  const AuthKey& second = keys->back();
  EXPECT_EQ(second.id, 4294967295u);
  EXPECT_TRUE(second.read_only);
  EXPECT_EQ(second.secret, first.secret + "\xff");
}

TEST(ParseAuthKeysTest, SaysWhichLineIsWrong) {
  const std::string good = absl::StrCat("1 ", kHex16, "\n");
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"0 " + kHex16, "id is a number from 1"},
      {"4294967296 " + kHex16, "id is a number from 1"},
      {"-2 " + kHex16, "id is a number from 1"},
      {"2x " + kHex16, "id is a number from 1"},
      {kHex16, "id is a number from 1"},
      {"2", "a key of 0 bytes"},
      {"2 " + kHex16.substr(2), "a key of 15 bytes: it must have 16 to 64"},
      {"2 " + kHex16 + kHex16 + kHex16 + kHex16 + "00", "a key of 65 bytes"},
      {"2 " + kHex16 + "0", "even number of hexadecimal digits"},
      {"2 " + kHex16 + "0g", "even number of hexadecimal digits"},
      {"2 " + kHex16 + "-1", "even number of hexadecimal digits"},
      {"2 " + kHex16 + " write", "there may be \"read\""},
      {"2 " + kHex16 + " read read", "there may be \"read\""},
      {"1 " + kHex16, "a second key with the id 1"}};
  for (const auto& [line, error] : wrong) {
    EXPECT_THAT(ErrorOf(good + "\n" + line + "\n"), HasSubstr("keys:3: ")) << line;
    EXPECT_THAT(ErrorOf(good + "\n" + line), HasSubstr(error)) << line;
  }
}

TEST(ParseAuthKeysTest, TellsNoPartOfASecret) {
  const std::string secret = "deadbeef";
  EXPECT_THAT(ErrorOf("1 " + secret), Not(HasSubstr("dead")));
  EXPECT_THAT(ErrorOf("1 " + kHex16 + " " + secret), Not(HasSubstr("dead")));
  EXPECT_THAT(ErrorOf(secret + kHex16 + " 1"), Not(HasSubstr("dead")));
}

TEST(ParseAuthKeysTest, AFileWithoutAKeyIsWrong) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("keys has no key"));
  EXPECT_THAT(ErrorOf("# 1 " + kHex16 + "\n"), HasSubstr("keys has no key"));
}

TEST(ParseAuthKeysTest, TakesSoManyKeysAndNoMore) {
  std::string text;
  for (size_t id = 1; id <= kAuthKeysMax; ++id) absl::StrAppend(&text, id, " ", kHex16, "\n");
  EXPECT_TRUE(ParseAuthKeys(text, "keys").ok());
  EXPECT_THAT(ErrorOf(absl::StrCat(text, "1000 ", kHex16)), HasSubstr("more than 256 keys"));
}

}  // namespace
}  // namespace gannet
