#include "tools/kvload/trace.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace gannet::kvload {
namespace {

constexpr uint32_t kSizeMax = 1 << 20;
constexpr char kHeader[] = "version,time,op,size,lbn\n";

absl::StatusOr<std::vector<TraceEvent>> Read(const std::string& text) {
  std::istringstream in(text);
  return ReadTrace(in, kSizeMax);
}

std::string ErrorOf(const std::string& line) {
  const auto events = Read(kHeader + line + "\n");
  EXPECT_EQ(events.status().code(), absl::StatusCode::kInvalidArgument) << line;
  return std::string(events.status().message());
}

TEST(TraceTest, ReadsReadsAndWrites) {
  const auto events = Read(std::string(kHeader) +
                           "1,5633898,2a,512,42932745\n"
                           "1,5633899,28,69632,7\r\n"
                           "1,5633900,88,1024,8\n"
                           "1,5633901,8a,2048,9");
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 4u);
  EXPECT_FALSE((*events)[0].is_read);
  EXPECT_EQ((*events)[0].size, 512u);
  EXPECT_EQ((*events)[0].lbn, 42932745u);
  EXPECT_TRUE((*events)[1].is_read);
  EXPECT_EQ((*events)[1].size, 69632u);
  EXPECT_TRUE((*events)[2].is_read);
  EXPECT_FALSE((*events)[3].is_read);
}

TEST(TraceTest, HeaderAloneIsAnEmptyTrace) {
  const auto events = Read(kHeader);
  ASSERT_TRUE(events.ok());
  EXPECT_TRUE(events->empty());
}

TEST(TraceTest, RefusesAnotherHeader) {
  EXPECT_EQ(Read("time,op\n").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Read("").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(TraceTest, NamesTheLineOfAnError) {
  const auto events = Read(std::string(kHeader) + "1,1,28,512,1\n1,1,28,512\n");
  EXPECT_EQ(events.status().message(), "line 3: not five fields");
}

TEST(TraceTest, RefusesBadFields) {
  EXPECT_NE(ErrorOf("1,1,28,512,1,1").find("five fields"), std::string::npos);
  EXPECT_NE(ErrorOf("1,1,zz,512,1").find("bad op"), std::string::npos);
  EXPECT_NE(ErrorOf("1,1,12,512,1").find("neither"), std::string::npos);
  EXPECT_NE(ErrorOf("1,1,28,-5,1").find("bad size"), std::string::npos);
  EXPECT_NE(ErrorOf("1,1,28,512x,1").find("bad size"), std::string::npos);
  EXPECT_NE(ErrorOf("1,1,28,512,").find("bad lbn"), std::string::npos);
  EXPECT_NE(ErrorOf("1,1,28,1048577,1").find("more than 1048576"), std::string::npos);
  EXPECT_NE(ErrorOf("").find("five fields"), std::string::npos);
}

TEST(TraceTest, MissingFileIsNotFound) {
  const auto events = ReadTraceFile("/nonexistent/trace.csv", kSizeMax);
  EXPECT_EQ(events.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace gannet::kvload
