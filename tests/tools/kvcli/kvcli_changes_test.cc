// kvcli's commands that change values where they are, store many at once, or remove all.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/server_process.h"
#include "tests/tools/kvcli/kvcli_command.h"

namespace gannet {
namespace {

using test_support::Finished;
using test_support::RunOnTerminal;
using test_support::RunProgram;
using ::testing::HasSubstr;

class KvcliChangesTest : public ::testing::Test {
 protected:
  Words Command(const Words& words) { return KvcliCommand(server_, words); }
  Finished Run(const Words& words, std::string_view input = "") {
    return RunProgram(Command(words), input);
  }

  ServerProcess server_;
};

TEST_F(KvcliChangesTest, AScriptOfAll) {
  const Finished done = Run({},
                            "incr n\nincr n 41\ndecr n 50\nincr m 1 --initial=9\nget n\n"
                            "put text b --if_absent\nappend text c\nprepend text a\nget text\n"
                            "touch text 1h\ngat text 0\nmput x 1 y 2\nmget x y\nflush --yes\n"
                            "mget x y\n");
  EXPECT_EQ(done.exit_code, 1) << done.err;  // the last one's misses
  std::vector<std::string> lines;
  for (size_t at = 0, end = 0; (end = done.out.find('\n', at)) != std::string::npos; at = end + 1) {
    lines.push_back(done.out.substr(at, end - at));
  }
  ASSERT_EQ(lines.size(), 17u) << done.out;
  EXPECT_EQ((Words{lines[0], lines[1], lines[2], lines[3], lines[4]}),
            (Words{"1", "42", "-8", "10", "-8"}));
  EXPECT_EQ(lines[8], "abc");
  EXPECT_EQ(lines[9], "abc") << "of the gat; a touch prints nothing";
  EXPECT_EQ((Words{lines[12], lines[13], lines[14]}), (Words{"1", "2", "5"}));
  EXPECT_EQ((Words{lines[15], lines[16]}), (Words{"(nil)", "(nil)"}));
}

TEST_F(KvcliChangesTest, ConditionsThatFailExitWithOne) {
  EXPECT_EQ(Run({"put", "k", "v", "--if_present"}).exit_code, 1);
  EXPECT_EQ(Run({"append", "k", "v", "--if_present"}).exit_code, 1);
  EXPECT_EQ(Run({"incr", "k", "--if_present"}).exit_code, 1);
  EXPECT_EQ(Run({"touch", "k", "1h"}).exit_code, 1);
  EXPECT_EQ(Run({"gat", "k", "1h"}).exit_code, 1);
  EXPECT_EQ(Run({"put", "k", "text"}).exit_code, 0);
  const Finished wrong = Run({"incr", "k"});
  EXPECT_EQ(wrong.exit_code, 3);
  EXPECT_THAT(wrong.err, HasSubstr("not a decimal number"));
}

TEST_F(KvcliChangesTest, FlushAsksOnATerminalAndElsewhereWantsYes) {
  EXPECT_EQ(Run({"put", "k", "v"}).exit_code, 0);
  EXPECT_EQ(Run({"flush"}).exit_code, 2);
  EXPECT_EQ(Run({"get", "k"}).out, "v");
  EXPECT_EQ(RunOnTerminal(Command({"flush"}), "no\n").exit_code, 1);
  EXPECT_EQ(Run({"get", "k"}).out, "v");
  EXPECT_EQ(RunOnTerminal(Command({"flush"}), "yes\n").exit_code, 0);
  EXPECT_EQ(Run({"get", "k"}).exit_code, 1);
  EXPECT_EQ(Run({"--json", "flush", "--yes"}).out, "{\"removed\":0}\n");
}

}  // namespace
}  // namespace gannet
