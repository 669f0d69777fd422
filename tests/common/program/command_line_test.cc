#include "common/program/command_line.h"

#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

DEFINE_string(test_name, "nobody", "who it is");
DEFINE_uint32(test_count, 3,
              "how many of them there are, in words that go on for so long that no "
              "line of a terminal holds them all, so that they have to be wrapped");
DEFINE_bool(test_loud, true, "whether it speaks up");

namespace gannet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CommandLineTest : public ::testing::Test {
 protected:
  // Returns what ParseCommandLine returns for these words. What it printed is in out_ and err_.
  std::optional<int> Parse(std::vector<std::string> words) {
    words.insert(words.begin(), "program");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const auto code = ParseCommandLine(program_, static_cast<int>(words.size()), argv.data());
    out_ = ::testing::internal::GetCapturedStdout();
    err_ = ::testing::internal::GetCapturedStderr();
    return code;
  }

  // Returns the path of a new file with this text.
  std::string FileOf(const std::string& text) {
    const std::string path = ::testing::TempDir() + "command_line_test.flags";
    std::ofstream(path) << text;
    return path;
  }

  const gflags::FlagSaver saver_;
  const Program program_ = {.name = "program",
                            .purpose = "does something",
                            .version = "7",
                            .flags_file = "command_line_test.cc",
                            .notes = "Exit code: 0.\n"};
  std::string out_;
  std::string err_;
};

TEST_F(CommandLineTest, SetsFlagsInEveryForm) {
  EXPECT_EQ(Parse({"--test_name=a b", "--test_count", "9", "--notest_loud"}), std::nullopt);
  EXPECT_EQ(FLAGS_test_name, "a b");
  EXPECT_EQ(FLAGS_test_count, 9u);
  EXPECT_FALSE(FLAGS_test_loud);
  EXPECT_EQ(Parse({"-test_name=", "--test_loud"}), std::nullopt);
  EXPECT_EQ(FLAGS_test_name, "");
  EXPECT_TRUE(FLAGS_test_loud);
  EXPECT_EQ(Parse({"--test_loud=false"}), std::nullopt);
  EXPECT_FALSE(FLAGS_test_loud);
}

TEST_F(CommandLineTest, WrongUsageIsNamedAndExitsWithTwo) {
  const struct {
    std::vector<std::string> words;
    const char* said;
  } cases[] = {
      {{"--test_nane=x"}, "there is no flag --test_nane=x"},
      {{"--notest_name"}, "there is no flag --notest_name"},
      // gflags has these, and its parser would follow them.
      {{"--helpfull"}, "there is no flag --helpfull"},
      {{"--nohelp"}, "there is no flag --nohelp"},
      {{"--fromenv=test_name"}, "there is no flag --fromenv=test_name"},
      {{"--test_count=many"}, "--test_count=many: that is no uint32"},
      {{"--test_count=-1"}, "--test_count=-1: that is no uint32"},
      {{"--test_name"}, "--test_name needs a value"},
      {{"word"}, "takes flags only, not 'word'"},
      {{"--"}, "takes flags only, not '--'"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(Parse(c.words), kExitWrongUsage) << c.said;
    EXPECT_THAT(err_, HasSubstr(c.said));
    EXPECT_THAT(err_, HasSubstr("see program --help"));
  }
}

TEST_F(CommandLineTest, AFileSetsFlagsAndLaterFlagsOverrideIt) {
  const std::string path = FileOf("# who\n\n--test_name=a b\n  --test_count=9 \n--notest_loud\n");
  EXPECT_EQ(Parse({"--test_count=1", "--flagfile=" + path}), std::nullopt);
  EXPECT_EQ(FLAGS_test_name, "a b");
  EXPECT_EQ(FLAGS_test_count, 9u);
  EXPECT_FALSE(FLAGS_test_loud);
  EXPECT_EQ(Parse({"--flagfile", path, "--test_count=1"}), std::nullopt);
  EXPECT_EQ(FLAGS_test_count, 1u);
}

TEST_F(CommandLineTest, AWrongLineOfAFileIsNamed) {
  const struct {
    const char* text;
    const char* said;
  } cases[] = {
      {"--test_count=1\n--test_nane=x\n", ":2: there is no flag --test_nane=x"},
      {"--test_count=many", ":1: --test_count=many: that is no uint32"},
      {"--test_name\nvalue\n", ":1: --test_name needs a value"},
      {"\ntest_count=1\n", ":2: takes flags only, not 'test_count=1'"},
      {"--flagfile=other", ":1: there is no flag --flagfile=other"},
      {"--help", ":1: there is no flag --help"},
  };
  for (const auto& c : cases) {
    const std::string path = FileOf(c.text);
    EXPECT_EQ(Parse({"--flagfile=" + path}), kExitWrongUsage) << c.said;
    EXPECT_THAT(err_, HasSubstr("program: " + path + c.said));
  }
}

TEST_F(CommandLineTest, AFileThatCannotBeReadIsNamed) {
  EXPECT_EQ(Parse({"--flagfile=/nowhere/flags"}), kExitWrongUsage);
  EXPECT_THAT(err_, HasSubstr("cannot read /nowhere/flags: No such file"));
  EXPECT_EQ(Parse({"--flagfile=/"}), kExitWrongUsage);
  EXPECT_THAT(err_, HasSubstr("cannot read /: Is a directory"));
  EXPECT_EQ(Parse({"--flagfile"}), kExitWrongUsage);
  EXPECT_THAT(err_, HasSubstr("--flagfile needs a file"));
}

TEST_F(CommandLineTest, HelpIsATableWithoutPathsAndWithTwoDashes) {
  for (const char* word : {"--help", "-h"}) {
    EXPECT_EQ(Parse({word}), 0);
    EXPECT_THAT(out_, HasSubstr("program: does something\n"));
    EXPECT_THAT(out_, HasSubstr("  --test_name=TEXT        who it is (default nobody)\n"));
    EXPECT_THAT(out_, HasSubstr("  --[no]test_loud         whether it speaks up (default true)\n"));
    EXPECT_THAT(out_, HasSubstr("Exit code: 0.\n"));
    EXPECT_THAT(out_, Not(HasSubstr("logtostderr"))) << "flags of libraries";
    EXPECT_THAT(out_, Not(HasSubstr("/"))) << "paths";
    for (size_t at = 0, end = 0; (end = out_.find('\n', at)) != std::string::npos; at = end + 1) {
      EXPECT_LE(end - at, 100u);
    }
  }
}

TEST_F(CommandLineTest, HelpGroupsFlagsByPurposeAndBeginsWithExamples) {
  Program program = program_;
  program.groups = {{"Who", "test_loud test_name"}};
  program.examples = {"program --test_name=me", "program --notest_loud"};
  const std::string text = HelpText(program);
  EXPECT_THAT(text, HasSubstr("\n\nExamples:\n"
                              "    program --test_name=me\n"
                              "    program --notest_loud\n\n"
                              "Who:\n  --[no]test_loud "));
  EXPECT_THAT(text, HasSubstr("(default nobody)\n\nOther flags:\n  --test_count=N "));
  EXPECT_EQ(text.find("--[no]test_loud"), text.rfind("--[no]test_loud"));
}

TEST_F(CommandLineTest, VersionIsOneLine) {
  EXPECT_EQ(Parse({"--version"}), 0);
  EXPECT_EQ(out_, "program 7\n");
}

}  // namespace
}  // namespace gannet
