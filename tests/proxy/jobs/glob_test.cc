#include "proxy/jobs/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace gannet::proxy {
namespace {

TEST(GlobTest, MatchesAsRedisDoes) {
  for (const auto& [pattern, text] : {std::pair("*", ""),
                                      {"", ""},
                                      {"a?c", "abc"},
                                      {"*b*", "abc"},
                                      {"a*c*d", "aXcYcZd"},
                                      {"[a-c]x", "bx"},
                                      {"[c-a]x", "bx"},
                                      {"[^a]x", "bx"},
                                      {"\\*", "*"},
                                      {"[\\]]", "]"},
                                      {"a[b", "ab"}}) {
    EXPECT_TRUE(GlobMatches(pattern, text)) << pattern << " " << text;
  }
  for (const auto& [pattern, text] : {std::pair("", "a"),
                                      {"a?c", "ac"},
                                      {"*b", "abc"},
                                      {"[a-c]x", "dx"},
                                      {"[^a]x", "ax"},
                                      {"\\*", "a"},
                                      {"abc", "ab"},
                                      {"ab", "abc"}}) {
    EXPECT_FALSE(GlobMatches(pattern, text)) << pattern << " " << text;
  }
}

// With a step for each way in which the stars may share the text, this would not end.
TEST(GlobTest, ManyStarsTakeNoMoreStepsThanTheProductOfTheLengths) {
  std::string pattern;
  for (int i = 0; i < 100; ++i) pattern += "*a";
  EXPECT_FALSE(GlobMatches(pattern + "b", std::string(10'000, 'a')));
}

}  // namespace
}  // namespace gannet::proxy
