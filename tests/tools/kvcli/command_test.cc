#include "tools/kvcli/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "tools/kvcli/text.h"
#include "tools/kvcli/verb_words.h"
#include "tools/kvcli/verbs.h"

namespace gannet::kvcli {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using Words = std::vector<std::string>;

Command Parsed(const Words& words) {
  const auto command = ParseCommand(words);
  EXPECT_TRUE(command.ok()) << command.status();
  return command.value_or(Command{});
}

std::string ErrorOf(const Words& words) {
  const auto command = ParseCommand(words);
  EXPECT_EQ(command.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(command.status().message());
}

TEST(CommandTest, PutTakesKeyAndValue) {
  const Command command = Parsed({"put", "key", "value"});
  EXPECT_EQ(command.verb, Verb::kPut);
  EXPECT_THAT(command.keys, ElementsAre("key"));
  EXPECT_EQ(command.value, "value");
  EXPECT_FALSE(command.value_from_stdin);
  EXPECT_FALSE(command.if_absent);
  EXPECT_FALSE(command.if_version.has_value());
}

TEST(CommandTest, PutOptionsMayStandAnywhere) {
  const Command command =
      Parsed({"put", "--ttl=5m", "key", "--flags=7", "value", "--if_version=12"});
  EXPECT_EQ(command.ttl, milliseconds(300'000));
  EXPECT_EQ(command.flags, 7u);
  EXPECT_EQ(command.if_version, 12u);
  EXPECT_EQ(command.value, "value");
  EXPECT_TRUE(Parsed({"put", "key", "value", "--if_absent"}).if_absent);
}

TEST(CommandTest, DashIsStdinUnlessBehindDashDash) {
  EXPECT_TRUE(Parsed({"put", "key", "-"}).value_from_stdin);
  const Command literal = Parsed({"put", "--", "key", "-"});
  EXPECT_FALSE(literal.value_from_stdin);
  EXPECT_EQ(literal.value, "-");
  EXPECT_TRUE(Parsed({"cas", "key", "3", "-"}).value_from_stdin);
}

TEST(CommandTest, WordsThatLookLikeOptionsGoBehindDashDash) {
  EXPECT_THAT(Parsed({"get", "--", "--meta"}).keys, ElementsAre("--meta"));
  EXPECT_EQ(Parsed({"put", "key", "-5"}).value, "-5");
  EXPECT_THAT(ErrorOf({"put", "key", "--5"}), HasSubstr("no option --5"));
}

TEST(CommandTest, AnOptionsValueMayBeTheNextWord) {
  const Command command = Parsed({"put", "key", "--ttl", "5m", "value", "--flags", "7"});
  EXPECT_EQ(command.ttl, milliseconds(300'000));
  EXPECT_EQ(command.flags, 7u);
  EXPECT_EQ(command.value, "value");
  EXPECT_THAT(Parsed({"lock", "key", "--wait", "1s", "--", "ls"}).child, ElementsAre("ls"));
  EXPECT_THAT(ErrorOf({"lock", "key", "--wait", "--", "ls"}), HasSubstr("is no time"));
}

TEST(CommandTest, TakesNamesOfOtherStoresInAnyCase) {
  EXPECT_EQ(Parsed({"GET", "key"}).verb, Verb::kGet);
  EXPECT_EQ(Parsed({"Set", "key", "value"}).verb, Verb::kPut);
  EXPECT_TRUE(Parsed({"add", "key", "value"}).if_absent);
  EXPECT_TRUE(Parsed({"replace", "key", "value"}).if_present);
  EXPECT_EQ(Parsed({"expire", "key", "10"}).ttl, milliseconds(10'000));
  EXPECT_EQ(Parsed({"delete", "key"}).verb, Verb::kDelete);
  EXPECT_EQ(Parsed({"KEYS", "a*"}).verb, Verb::kScan);
  EXPECT_EQ(Parsed({"KEYS", "a*"}).match, "a*");
  EXPECT_THAT(ErrorOf({"keys", "a*", "--match=b"}), HasSubstr("exclude each other"));
  EXPECT_EQ(Parsed({"exists", "key"}).verb, Verb::kExists);
  EXPECT_EQ(Parsed({"ttl", "key"}).verb, Verb::kTtl);
  EXPECT_THAT(ErrorOf({"set", "key"}), HasSubstr("usage: put KEY VALUE"));
}

TEST(CommandTest, SaysWhatWasMeant) {
  EXPECT_THAT(ErrorOf({"gte", "key"}), HasSubstr("no command 'gte'; did you mean get?"));
  EXPECT_THAT(ErrorOf({"hotkey"}), HasSubstr("did you mean hotkeys?"));
  EXPECT_THAT(ErrorOf({"snapshto"}), HasSubstr("did you mean snapshot?"));
  EXPECT_THAT(ErrorOf({"hset", "key"}), Not(HasSubstr("did you mean"))) << "no slip of set";
  EXPECT_THAT(ErrorOf({""}), Not(HasSubstr("did you mean")));
  EXPECT_THAT(ErrorOf({"SET", "k", "v", "EX", "10"}), HasSubstr("use --ttl=TIME"));
  EXPECT_THAT(ErrorOf({"SET", "k", "v", "nx"}), HasSubstr("use --if_absent"));
  EXPECT_THAT(ErrorOf({"put", "k", "v", "--ttl", "10x"}), HasSubstr("--ttl: '10x' is no time"));
  EXPECT_THAT(ErrorOf({std::string(100'000, 'x')}), Not(HasSubstr("did you mean")));
  EXPECT_THAT(ErrorOf({"put", "k", "v", "--if_absnt"}), HasSubstr("did you mean --if_absent?"));
  EXPECT_THAT(ErrorOf({"stats", "--json"}), HasSubstr("a flag of kvcli's command line"));
}

TEST(CommandTest, MgetTakesManyKeys) {
  EXPECT_THAT(Parsed({"mget", "a", "b", "a"}).keys, ElementsAre("a", "b", "a"));
}

TEST(CommandTest, CasTakesAVersion) {
  const Command command = Parsed({"cas", "key", "18446744073709551615", "value"});
  EXPECT_EQ(command.if_version, 18446744073709551615u);
  EXPECT_EQ(command.value, "value");
  EXPECT_THAT(ErrorOf({"cas", "key", "x", "value"}), HasSubstr("VERSION is a number"));
  EXPECT_THAT(ErrorOf({"cas", "key", "-1", "value"}), HasSubstr("VERSION is a number"));
}

TEST(CommandTest, LockTakesACommandWithItsOwnOptions) {
  const Command command = Parsed({"lock", "key", "--wait=0", "--", "ls", "--all", "--", "-"});
  EXPECT_THAT(command.keys, ElementsAre("key"));
  EXPECT_EQ(command.wait, milliseconds(0));
  EXPECT_THAT(command.child, ElementsAre("ls", "--all", "--", "-"));
  EXPECT_THAT(Parsed({"lock", "key"}).child, IsEmpty());
  EXPECT_THAT(ErrorOf({"lock", "key", "--"}), HasSubstr("no command"));
  EXPECT_THAT(ErrorOf({"lock", "key", "ls"}), HasSubstr("is one word too many"));
}

TEST(CommandTest, LocksMayHaveALease) {
  EXPECT_EQ(Parsed({"lock", "key", "--lease=5s", "--", "true"}).lease, std::chrono::seconds(5));
  EXPECT_FALSE(Parsed({"lock", "key"}).lease.has_value());
}

TEST(CommandTest, OneShotLocksNeedACommand) {
  EXPECT_FALSE(CheckOneShot(Parsed({"lock", "key"})).ok());
  EXPECT_TRUE(CheckOneShot(Parsed({"lock", "key", "--", "true"})).ok());
  EXPECT_FALSE(CheckOneShot(Parsed({"unlock", "key"})).ok());
  EXPECT_TRUE(CheckOneShot(Parsed({"unlock", "key", "--force"})).ok());
  EXPECT_TRUE(CheckOneShot(Parsed({"locks"})).ok());
  EXPECT_TRUE(CheckOneShot(Parsed({"get", "key"})).ok());
}

TEST(CommandTest, WrongUsageShowsTheUsage) {
  EXPECT_THAT(ErrorOf({"put", "key"}), HasSubstr("usage: put KEY VALUE"));
  EXPECT_THAT(ErrorOf({"get"}), HasSubstr("usage: get KEY"));
  EXPECT_THAT(ErrorOf({"get", "a", "b"}), HasSubstr("is one word too many"));
  EXPECT_THAT(ErrorOf({"mget"}), HasSubstr("KEY is missing"));
  EXPECT_THAT(ErrorOf({"del"}), HasSubstr("usage: del"));
  EXPECT_THAT(ErrorOf({"stats", "x"}), HasSubstr("is one word too many"));
  EXPECT_THAT(ErrorOf({"put", "k", "v", "--meta"}), HasSubstr("no option --meta"));
  EXPECT_THAT(ErrorOf({"get", "k", "--meta=1"}), HasSubstr("takes no value"));
  EXPECT_THAT(ErrorOf({"put", "k", "v", "--flags"}), HasSubstr("needs a number"));
  EXPECT_THAT(ErrorOf({"put", "k", "v", "--flags=4294967296"}),
              HasSubstr("needs a number from 0 to 4294967295"));
  EXPECT_THAT(ErrorOf({"put", "k", "v", "--if_absent", "--if_version=1"}), HasSubstr("exclude"));
  EXPECT_THAT(ErrorOf({"put", "k", "v", "--if_absent", "--if_present"}), HasSubstr("exclude"));
  EXPECT_THAT(ErrorOf({"incr", "k", "x"}), HasSubstr("NUMBER is a number"));
  EXPECT_THAT(ErrorOf({"touch", "k"}), HasSubstr("TIME is missing"));
  EXPECT_THAT(ErrorOf({"touch", "k", "soon"}), HasSubstr("is no time"));
  EXPECT_THAT(ErrorOf({"touch", "k", "99999999d"}), HasSubstr("more than 100 years"));
  EXPECT_THAT(ErrorOf({"mput", "k", "v", "l"}), HasSubstr("a VALUE is missing"));
  EXPECT_THAT(ErrorOf({"append", "k", "v", "--if_absent"}), HasSubstr("no option --if_absent"));
  EXPECT_THAT(ErrorOf({"fetch", "k"}), HasSubstr("no command 'fetch'"));
  EXPECT_THAT(ErrorOf({}), HasSubstr("no command"));
}

TEST(CommandTest, GenkeyTakesAnIdAndTheRight) {
  EXPECT_EQ(Parsed({"genkey"}).id, std::nullopt);
  EXPECT_FALSE(Parsed({"genkey"}).read_only);
  EXPECT_EQ(Parsed({"genkey", "--id=4294967295", "--read"}).id, 4294967295u);
  EXPECT_TRUE(Parsed({"genkey", "--read"}).read_only);
  for (const char* id : {"--id=0", "--id=4294967296", "--id=-1", "--id="}) {
    EXPECT_FALSE(ParseCommand(std::vector<std::string>{"genkey", id}).ok()) << id;
  }
}

TEST(CommandTest, EveryCommandHasHelp) {
  for (const std::string& name : VerbNames()) {
    const auto text = HelpText(name);
    ASSERT_TRUE(text.ok()) << name;
    EXPECT_EQ(text->rfind(name, 0), 0u) << name;
    EXPECT_THAT(HelpText(), HasSubstr(name));
  }
  EXPECT_FALSE(HelpText("fetch").ok());
  EXPECT_EQ(HelpText("set").value(), HelpText("put").value());
  EXPECT_THAT(HelpText("").value(), HasSubstr("set is put"));
}

TEST(DurationTest, UnitsAndLimits) {
  EXPECT_EQ(*ParseDuration("10"), milliseconds(10'000));
  EXPECT_EQ(*ParseDuration("10s"), milliseconds(10'000));
  EXPECT_EQ(*ParseDuration("500ms"), milliseconds(500));
  EXPECT_EQ(*ParseDuration("2h"), milliseconds(7'200'000));
  EXPECT_EQ(*ParseDuration("7d"), milliseconds(604'800'000));
  EXPECT_EQ(*ParseDuration("0"), milliseconds(0));
  for (const char* wrong : {"", "s", "-1", "1.5", "1 s", "1y", "99999999999999999999", "36501d"}) {
    EXPECT_FALSE(ParseDuration(wrong).ok()) << wrong;
  }
}

Words Split(std::string_view line) {
  const auto words = SplitLine(line);
  EXPECT_TRUE(words.ok()) << line << ": " << words.status();
  return words.value_or(Words{"failed"});
}

TEST(SplitLineTest, BlanksSeparate) {
  EXPECT_THAT(Split("put key value"), ElementsAre("put", "key", "value"));
  EXPECT_THAT(Split("  put\t key \r\n"), ElementsAre("put", "key"));
  EXPECT_THAT(Split(""), IsEmpty());
  EXPECT_THAT(Split("   "), IsEmpty());
}

TEST(SplitLineTest, CommentLinesHaveNoWords) {
  EXPECT_THAT(Split("# put key value"), IsEmpty());
  EXPECT_THAT(Split("get a#b #c"), ElementsAre("get", "a#b", "#c"));
}

TEST(SplitLineTest, QuotesKeepBlanksAndJoinWords) {
  EXPECT_THAT(Split("put 'a b' \"c d\""), ElementsAre("put", "a b", "c d"));
  EXPECT_THAT(Split("a'b'\"c\"d"), ElementsAre("abcd"));
  EXPECT_THAT(Split("put key ''"), ElementsAre("put", "key", ""));
  EXPECT_THAT(Split("'a\\n\"b'"), ElementsAre("a\\n\"b"));
}

TEST(SplitLineTest, EscapesMakeAnyByte) {
  EXPECT_THAT(Split(R"("a\n\t\r\0\\\"\x41\xff")"),
              ElementsAre(std::string("a\n\t\r\0\\\"A\xff", 9)));
  EXPECT_THAT(Split(R"(a\ b \')"), ElementsAre("a b", "'"));
}

TEST(SplitLineTest, RefusesWhatIsUnfinishedOrUnknown) {
  for (const char* wrong : {"'a", "\"a", "\"a\\", "a\\", "\"\\q\"", "\"\\x4\"", "\"\\xg0\""}) {
    EXPECT_FALSE(SplitLine(wrong).ok()) << wrong;
  }
}

TEST(CommandTest, WalksTakeWhatToShowAndHowFast) {
  const Command scan =
      Parsed({"scan", "--prefix=a", "--match=*b", "--limit=3", "--rate=100", "--values"});
  EXPECT_EQ(scan.prefix, "a");
  EXPECT_EQ(scan.match, "*b");
  EXPECT_EQ(scan.count, 3u);
  EXPECT_EQ(scan.reads_per_second, 100u);
  EXPECT_EQ(Parsed({"scan"}).reads_per_second, std::nullopt) << "by load";
  EXPECT_TRUE(scan.show_values);
  EXPECT_EQ(Parsed({"bigkeys", "--count=5"}).count, 5u);
  EXPECT_THAT(ErrorOf({"bigkeys", "--count=0"}), HasSubstr("at least 1"));
  EXPECT_THAT(ErrorOf({"memory", "--limit=1"}), HasSubstr("no option --limit"));
  EXPECT_THAT(ErrorOf({"watch", "key", "--every=0"}), HasSubstr("at least 1ms"));
}

TEST(CommandTest, TopLooksEachSecondUnlessToldOtherwise) {
  EXPECT_EQ(Parsed({"top"}).interval, milliseconds(1000));
  EXPECT_EQ(Parsed({"top"}).count, std::nullopt);
  const Command command = Parsed({"top", "--interval=500ms", "--count=3"});
  EXPECT_EQ(command.interval, milliseconds(500));
  EXPECT_EQ(command.count, 3u);
  EXPECT_THAT(ErrorOf({"top", "--interval=99ms"}), HasSubstr("at least 100ms"));
  EXPECT_EQ(Parsed({"top", "--hotkeys=5"}).hot_keys, 5u);
  EXPECT_THAT(ErrorOf({"top", "--hotkeys=101"}), HasSubstr("at most 100"));
  EXPECT_THAT(ErrorOf({"top", "--interval"}), HasSubstr("is no time"));
}

TEST(CommandTest, AFileTakesThePlaceOfTheValue) {
  EXPECT_EQ(Parsed({"put", "key", "--file=path"}).file, "path");
  EXPECT_EQ(Parsed({"get", "key", "--out=path"}).out, "path");
  EXPECT_THAT(ErrorOf({"put", "key"}), HasSubstr("VALUE is missing"));
  EXPECT_THAT(ErrorOf({"put", "key", "value", "--file=path"}), HasSubstr("exclude each other"));
  EXPECT_THAT(ErrorOf({"put", "key", "--file="}), HasSubstr("needs a value"));
}

TEST(CommandTest, HelpOfACommandHasExamples) {
  EXPECT_THAT(HelpText("put").value(), HasSubstr("Examples:\n  put color blue"));
}

// The examples are words that the commands take.
TEST(CommandTest, ExamplesAreRight) {
  for (const VerbRow& row : VerbRows()) {
    std::istringstream lines(row.examples);
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) continue;
      const auto words = SplitLine(line.substr(0, line.find("      ")));
      ASSERT_TRUE(words.ok()) << line;
      EXPECT_TRUE(ParseCommand(*words).ok()) << line << ": " << ParseCommand(*words).status();
    }
  }
}

TEST(VerbRowsTest, EachWordOfAUsageHasAMeaning) {
  for (const VerbRow& row : VerbRows()) {
    const Usage& usage = UsageOf(row);
    EXPECT_EQ(usage.text.find('@'), std::string::npos) << usage.text;
    for (size_t i = 0; i < usage.places.size(); ++i) {
      EXPECT_TRUE(IsWord(usage.PlaceAt(i))) << FullName(row) << " " << usage.PlaceAt(i);
    }
    for (const UsageOption& option : usage.options) {
      EXPECT_TRUE(IsWord("--" + option.name)) << FullName(row) << " " << option.Text();
    }
  }
}

TEST(VerbRowsTest, EachVerbAndActionHasOneRow) {
  int next = 0;
  int next_action = 0;
  for (const VerbRow& row : VerbRows()) {
    if (row.action) {
      EXPECT_EQ(static_cast<int>(*row.action), next_action++) << row.name;
      EXPECT_EQ(FindAction(row.name), &row);
    } else {
      EXPECT_EQ(static_cast<int>(row.verb), next++) << row.name;
      EXPECT_EQ(&RowOf(row.verb), &row);
    }
  }
  EXPECT_EQ(next, static_cast<int>(Verb::kQuit) + 1);
  EXPECT_EQ(next_action, static_cast<int>(ClusterCommand::Action::kMoves) + 1);
}

TEST(EscapedTest, SplitLineReadsTheSameBytes) {
  EXPECT_EQ(Escaped("plain:word"), "plain:word");
  EXPECT_EQ(Escaped("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(Escaped(std::string("a\0b", 3)), "\"a\\x00b\"");
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  for (const std::string& bytes : {all, std::string("two words"), std::string(), std::string("#1"),
                                   std::string("it's"), std::string("a\\b")}) {
    EXPECT_THAT(SplitLine(Escaped(bytes)).value(), ElementsAre(bytes));
  }
}

TEST(HelpTest, TheExamplesOfACommandAreItsOwn) {
  for (const std::string& name : VerbNames()) {
    const std::string text = *HelpText(name);
    const size_t examples = text.find("Example");
    if (examples == std::string::npos) continue;
    std::istringstream lines(text.substr(text.find('\n', examples) + 1));
    for (std::string line; std::getline(lines, line);) {
      EXPECT_TRUE(line.starts_with("  " + name)) << name << " has the example" << line;
    }
  }
}

TEST(HelpTest, GroupsCommandsByPurposeAndLeavesNoneOut) {
  const std::string text = HelpText();
  for (const std::string& name : VerbNames()) {
    EXPECT_NE(text.find("\n  " + name + " "), std::string::npos) << name;
  }
  EXPECT_TRUE(text.starts_with("Values:\n  put "));
  EXPECT_LT(text.find("\nLocks:\n  lock "), text.find("\nThe server:\n  snapshot "));
}

}  // namespace
}  // namespace gannet::kvcli
