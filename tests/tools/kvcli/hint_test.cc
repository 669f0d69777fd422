#include "tools/kvcli/hint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gannet::kvcli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(HintTest, ShowsTheWholeUsageBehindACommand) {
  EXPECT_EQ(HintFor("get "), "KEY [--meta] [--out=PATH]");
  EXPECT_EQ(HintFor("get"), " KEY [--meta] [--out=PATH]");
  EXPECT_EQ(HintFor("  get  "), "KEY [--meta] [--out=PATH]");
}

TEST(HintTest, LeavesOutWhatIsTyped) {
  EXPECT_EQ(HintFor("touch k"), " TIME");
  EXPECT_EQ(HintFor("touch k "), "TIME");
  EXPECT_EQ(HintFor("touch k 1"), "");
  EXPECT_EQ(HintFor("get k"), " [--meta] [--out=PATH]");
  EXPECT_EQ(HintFor("get k --meta "), "[--out=PATH]");
  EXPECT_EQ(HintFor("get --out=file "), "KEY [--meta]");
  EXPECT_EQ(HintFor("incr k --ttl=5 "),
            "[NUMBER] [--initial=N] [--flags=N] [--if_present] "
            "[--if_version=N]");
}

TEST(HintTest, KeepsAnOptionUntilItsNameIsTyped) {
  EXPECT_EQ(HintFor("get k --m"), " [--meta] [--out=PATH]");
  EXPECT_EQ(HintFor("get k --meta"), " [--out=PATH]");
}

TEST(HintTest, AFileTakesThePlaceOfTheValue) {
  EXPECT_THAT(HintFor("put k "), StartsWith("VALUE "));
  EXPECT_THAT(HintFor("put k --file=f "), Not(HasSubstr("VALUE")));
}

TEST(HintTest, WordsThatRepeatComeAgain) {
  EXPECT_EQ(HintFor("mget "), "KEY...");
  EXPECT_EQ(HintFor("mget a "), "[KEY...]");
  EXPECT_EQ(HintFor("mput a "), "VALUE... [--ttl=TIME] [--flags=N]");
  EXPECT_EQ(HintFor("mput a b --ttl=5 "), "[KEY VALUE...] [--flags=N]");
}

TEST(HintTest, BehindTwoDashesComesTheCommandOfALock) {
  EXPECT_EQ(HintFor("lock k "), "[--wait=TIME] [--lease=TIME] -- COMMAND...");
  EXPECT_EQ(HintFor("lock k -- "), "COMMAND...");
  EXPECT_EQ(HintFor("lock k -- ls "), "");
  EXPECT_EQ(HintFor("get -- --key "), "");
}

TEST(HintTest, AnActionOfClusterHasItsOwnWords) {
  EXPECT_THAT(HintFor("cluster "), StartsWith("ACTION [WORD]... [--group=GROUP:NODES]"));
  EXPECT_THAT(HintFor("cluster add g1 "), StartsWith("NODE [--etcd=URL]"));
  EXPECT_THAT(HintFor("cluster set g1 a=b "), StartsWith("[NAME=VALUE]... [--lease_ms=N]"));
  EXPECT_THAT(HintFor("cluster force g1 --from=n1 "), StartsWith("--lose-data "));
}

TEST(HintTest, CountsWordsAsTheCommandDoes) {
  EXPECT_EQ(HintFor("touch 'a b' "), "TIME");
  EXPECT_EQ(HintFor("touch a\\ b"), " TIME");
  EXPECT_EQ(HintFor("touch 'a b"), "");
}

TEST(HintTest, HasNothingForWhatIsNoCommandOrTakesNothing) {
  for (const char* line : {"", " ", "ge", "fetch ", "# put ", "quit ", "exit ", "stats"}) {
    EXPECT_EQ(HintFor(line), "") << line;
  }
}

TEST(HintTest, IsCutBehindAWholeWord) {
  const std::string hint = " KEY VALUE [--ttl=TIME]";
  EXPECT_EQ(CutHint(hint, hint.size()), hint);
  EXPECT_EQ(CutHint(hint, hint.size() - 1), " KEY VALUE ...");
  EXPECT_EQ(CutHint(hint, 14), " KEY VALUE ...");
  EXPECT_EQ(CutHint(hint, 13), " KEY ...");
  EXPECT_EQ(CutHint(hint, 8), " KEY ...");
  for (size_t columns = 0; columns < 8; ++columns) EXPECT_EQ(CutHint(hint, columns), "");
  EXPECT_EQ(CutHint("KEY VALUE", 8), "KEY ...");
}

}  // namespace
}  // namespace gannet::kvcli
