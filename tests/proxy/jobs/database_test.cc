#include "proxy/jobs/database.h"

#include <gtest/gtest.h>

#include <string>

namespace gannet::proxy {
namespace {

// Keys are kept for years, so this must not change.
TEST(DatabaseTest, TheKeyTellsTheDatabase) {
  const Database second{.number = 2, .is_only = false};
  EXPECT_EQ(second.KeyOf("name"), std::string("\0db\2name", 8));
  EXPECT_EQ(second.NameOf(std::string("\0db\2name", 8)), "name");
}

TEST(DatabaseTest, NoKeyIsInTwoDatabases) {
  const Database all[] = {{.number = 0, .is_only = false},
                          {.number = 1, .is_only = false},
                          {.number = 255, .is_only = false}};
  const std::string keys[] = {"name",
                              std::string("\0db", 3),
                              std::string("\0db\1", 4),
                              std::string("\0db\1x", 5),
                              std::string("\0db\377x", 5),
                              std::string("\0db\2x", 5),
                              all[1].KeyOf(all[2].KeyOf("x"))};
  for (const std::string& key : keys) {
    int in = 0;
    for (const Database& database : all) {
      const auto name = database.NameOf(key);
      in += name.has_value();
      if (!name) continue;
      EXPECT_TRUE(database.MayHave(*name));
      EXPECT_EQ(database.number == 0 ? std::string(*name) : database.KeyOf(*name), key);
    }
    EXPECT_LE(in, 1) << key;
  }
}

TEST(DatabaseTest, OneAloneHasAllKeys) {
  const Database only;
  EXPECT_TRUE(only.MayHave(std::string("\0db\1x", 5)));
  EXPECT_FALSE(only.MayHave(""));
  EXPECT_TRUE(only.MayHave(std::string(250, 'k')));
  EXPECT_FALSE(only.MayHave(std::string(251, 'k')));
}

}  // namespace
}  // namespace gannet::proxy
