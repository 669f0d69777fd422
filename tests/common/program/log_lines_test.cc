#include "common/program/log_lines.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/temporary_directory.h"

namespace gannet {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;

class LogLinesTest : public testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::unique_ptr<LogLines> Start(bool json) const {
    auto lines = LogLines::Start({.file = Path("log"), .json = json});
    EXPECT_TRUE(lines.ok()) << lines.status();
    return lines.ok() ? *std::move(lines) : nullptr;
  }
  std::vector<std::string> Lines(const std::string& name) const {
    std::vector<std::string> lines;
    std::ifstream file(Path(name));
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  const test_support::TemporaryDirectory folder_;
};

TEST_F(LogLinesTest, AreTextInTheFile) {
  const auto lines = Start(/*json=*/false);
  LOG(WARNING) << "something " << 7;
  ASSERT_THAT(Lines("log"), SizeIs(1));
  EXPECT_EQ(Lines("log")[0][0], 'W');
  EXPECT_THAT(Lines("log")[0], EndsWith("] something 7"));
}

TEST_F(LogLinesTest, AreJsonWithTimeLevelSourceAndMessage) {
  const auto lines = Start(/*json=*/true);
  LOG(ERROR) << "a \"word\"\nand another line";
  ASSERT_THAT(Lines("log"), SizeIs(1));
  const auto entry = nlohmann::json::parse(Lines("log")[0]);
  EXPECT_EQ(entry["level"], "error");
  EXPECT_EQ(entry["message"], "a \"word\"\nand another line");
  EXPECT_THAT(entry["source"].get<std::string>(), HasSubstr("log_lines_test.cc:"));
  absl::Time time;
  std::string error;
  ASSERT_TRUE(absl::ParseTime(absl::RFC3339_full, entry["time"].get<std::string>(), &time, &error))
      << error;
  EXPECT_LT(absl::AbsDuration(absl::Now() - time), absl::Minutes(10));
}

TEST_F(LogLinesTest, AreJsonWhateverBytesTheyHave) {
  const auto lines = Start(/*json=*/true);
  LOG(INFO) << "key \xff\x01";
  ASSERT_THAT(Lines("log"), SizeIs(1));
  EXPECT_EQ(nlohmann::json::parse(Lines("log")[0])["message"], "key \xef\xbf\xbd\x01");
}

TEST_F(LogLinesTest, GoIntoANewFileOnceTheOldOneWasRenamed) {
  const auto lines = Start(/*json=*/false);
  LOG(INFO) << "one";
  std::filesystem::rename(Path("log"), Path("log.1"));
  LOG(INFO) << "two";
  lines->RequestReopen();
  LOG(INFO) << "three";
  EXPECT_THAT(Lines("log.1"), ElementsAre(EndsWith("] one"), EndsWith("] two")));
  EXPECT_THAT(Lines("log"), ElementsAre(EndsWith("] three")));
}

TEST_F(LogLinesTest, GoOnIntoTheOldFileIfThereCanBeNoNewOne) {
  const auto lines = Start(/*json=*/false);
  std::filesystem::rename(Path("log"), Path("log.1"));
  std::filesystem::create_directory(Path("log"));
  lines->RequestReopen();
  LOG(INFO) << "one";
  EXPECT_THAT(Lines("log.1"), ElementsAre(EndsWith("] one")));
}

TEST_F(LogLinesTest, SayWhichFileCannotBeOpened) {
  const auto lines = LogLines::Start({.file = Path("none/log")});
  EXPECT_EQ(lines.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(lines.status().message()),
              HasSubstr(Path("none/log") + ": No such file"));
}

}  // namespace
}  // namespace gannet
