#include "common/auth/new_auth_key.h"

#include <gtest/gtest.h>

#include "common/auth/parse_auth_keys.h"

namespace gannet {
namespace {

void ExpectItsLine(const AuthKey& key) {
  EXPECT_EQ(key.id, 7u);
  EXPECT_EQ(key.secret.size(), 32u);
  const auto parsed = ParseAuthKeys(LineOf(key) + "\n", "keys");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  ASSERT_EQ(parsed->size(), 1u);
  EXPECT_EQ(parsed->front(), key);
}

TEST(NewAuthKeyTest, ItsLineIsThatOfAnAuthFile) {
  for (const bool replica : {false, true}) {
    for (const bool read_only : {false, true}) ExpectItsLine(NewAuthKey(7, read_only, replica));
  }
}

// By chance, two ids of four were the same once in 700 million runs.
TEST(NewAuthKeyTest, NoTwoAreTheSame) {
  std::string file;
  for (int i = 0; i < 4; ++i) file += LineOf(NewAuthKey(std::nullopt, false)) + "\n";
  const auto parsed = ParseAuthKeys(file, "keys");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  for (size_t i = 1; i < parsed->size(); ++i) EXPECT_NE((*parsed)[i].secret, (*parsed)[0].secret);
}

}  // namespace
}  // namespace gannet
