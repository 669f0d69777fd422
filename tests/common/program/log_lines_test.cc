#include "common/program/log_lines.h"

#include <sys/resource.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/lost_outputs.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "softverbs/tests/support/temporary_directory.h"

namespace gannet {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::SizeIs;
using testing::StartsWith;

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

// Lets files grow to so many bytes, as long as it lives.
class FilesUpTo {
 public:
  explicit FilesUpTo(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FilesUpTo() { setrlimit(RLIMIT_FSIZE, &before_); }
  FilesUpTo(const FilesUpTo&) = delete;
  FilesUpTo& operator=(const FilesUpTo&) = delete;

 private:
  rlimit before_{};
};

TEST_F(LogLinesTest, SayOnceOnStderrThatTheyAreLostAndThenHowManyAre) {
  SurviveLostOutputs();
  constexpr size_t kBefore = 10'000;  // more than stderr gets, which may be a file, too
  std::ofstream(Path("log")) << std::string(kBefore - 1, '.') << '\n';
  const auto lines = Start(/*json=*/false);
  testing::internal::CaptureStderr();
  {
    const FilesUpTo limit(kBefore + 200);
    for (int i = 0; i < 5; ++i) LOG(INFO) << i << std::string(100, '.');
  }
  const std::string said = testing::internal::GetCapturedStderr();
  const std::string once = "cannot write its log " + Path("log") + ": File too large; goes on";
  EXPECT_THAT(said, HasSubstr(once));
  EXPECT_EQ(said.find(once), said.rfind(once));
  LOG(INFO) << "again";
  const std::vector<std::string> all = Lines("log");
  ASSERT_THAT(all, SizeIs(5)) << "what was there, a line, a part of one, and two new ones";
  EXPECT_THAT(all[1], HasSubstr("] 0..."));
  EXPECT_THAT(all[2], StartsWith("I"));
  EXPECT_THAT(all[3], HasSubstr("] 4 lines of this log are lost"));
  EXPECT_THAT(all[4], EndsWith("] again"));
}

TEST_F(LogLinesTest, SayWhichFileCannotBeOpened) {
  const auto lines = LogLines::Start({.file = Path("none/log")});
  EXPECT_EQ(lines.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(lines.status().message()),
              HasSubstr(Path("none/log") + ": No such file"));
}

}  // namespace
}  // namespace gannet
