#include "tools/kvload/trace.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace gannet::kvload {
namespace {

constexpr TraceLimits kLimits{.size_max = 1 << 20, .block_bytes = 4096};
constexpr char kHeader[] = "version,time,op,size,lbn\n";

absl::StatusOr<std::vector<TraceEvent>> Read(const std::string& text) {
  std::istringstream in(text);
  return ReadTrace(in, kLimits);
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
  EXPECT_EQ((*events)[0].kind, OpKind::kPut);
  EXPECT_EQ((*events)[0].size, 512u);
  EXPECT_EQ((*events)[0].key, "42932745");
  EXPECT_EQ((*events)[1].kind, OpKind::kGet);
  EXPECT_TRUE((*events)[1].put_on_miss);
  EXPECT_EQ((*events)[1].size, 69632u);
  EXPECT_EQ((*events)[2].kind, OpKind::kGet);
  EXPECT_EQ((*events)[3].kind, OpKind::kPut);
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

TEST(TraceTest, ReadsTwittersOperationsWithTheirLives) {
  const auto events = Read(
      "0,q:q:1:8WTfjZU14ee,17,213,4,get,0\n"
      "0,yDqF:3q:1AJrrJ1nnCJKKrnGx1A,27,27,5,get,0\n"
      "0,user:9,6,0,5,gets,0\r\n"
      "1,user:9,6,40,5,set,3600\n"
      "1,user:9,6,40,5,cas,60\n"
      "2,count:9,7,4,5,incr,60\n"
      "2,log:9,5,30,5,append,0\n"
      "3,user:9,6,0,5,delete,0");
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 8u);
  const auto& all = *events;
  EXPECT_EQ(all[0].key, "q:q:1:8WTfjZU14ee");
  EXPECT_EQ(all[0].size, 213u);
  EXPECT_TRUE(all[0].put_on_miss) << "it was a hit there";
  EXPECT_EQ(all[2].kind, OpKind::kGet);
  EXPECT_FALSE(all[2].put_on_miss) << "it was a miss there, too";
  EXPECT_EQ(all[3].kind, OpKind::kPut);
  EXPECT_EQ(all[3].ttl, std::chrono::hours(1));
  EXPECT_EQ(all[4].kind, OpKind::kCas);
  EXPECT_EQ(all[5].kind, OpKind::kIncr);
  EXPECT_EQ(all[5].key, "count:9") << "its first letter is that of counters";
  EXPECT_EQ(all[6].key, "aog:9");
  EXPECT_EQ(all[7].kind, OpKind::kDelete);
}

TEST(TraceTest, RefusesWhatIsNoLineOfTwitters) {
  const std::string good = "0,key,3,100,4,get,0\n";
  const auto refused = [&](const std::string& line, const char* why) {
    const auto events = Read(good + line + "\n");
    EXPECT_NE(std::string(events.status().message()).find(why), std::string::npos) << line;
  };
  refused("0,key,3,100,4,get", "line 2: not seven fields");
  refused("0,key,3,100,4,read,0", "no operation 'read'");
  refused("0,key,x,100,4,get,0", "bad key size");
  refused("0,key,3,-1,4,get,0", "bad size");
  refused("0,key,3,1048577,4,get,0", "more than 1048576");
  refused("0,key,3,100,4,set,1.5", "bad TTL");
  refused("0,key,3,100,4,set,99999999999", "bad TTL");
  refused("0,,0,100,4,get,0", "a key of 0 bytes");
  refused("0," + std::string(251, 'k') + ",251,100,4,get,0", "a key of 251 bytes");
}

TEST(TraceTest, ABlockOfMooncakesIsAGetAndAPutIfItMisses) {
  const auto events = Read(
      "{\"timestamp\": 27482, \"input_length\": 1100, \"output_length\": 52, \"hash_ids\": [46, "
      "47, 2111]}\n"
      "{\"timestamp\": 30535, \"input_length\": 10, \"output_length\": 26, \"hash_ids\": [46]}\n");
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 4u);
  EXPECT_EQ((*events)[2].key, "2111");
  EXPECT_EQ((*events)[3].key, "46");
  for (const TraceEvent& event : *events) {
    EXPECT_EQ(event.kind, OpKind::kGet);
    EXPECT_TRUE(event.put_on_miss);
    EXPECT_EQ(event.size, 4096u);
  }
}

TEST(TraceTest, RefusesWhatIsNoLineOfMooncakes) {
  for (const char* line :
       {"{", "{}", "{\"hash_ids\": 7}", "{\"hash_ids\": [\"a\"]}", "{\"hash_ids\": [-1]}", "[]"}) {
    const auto events = Read(std::string("{\"hash_ids\": [1]}\n") + line + "\n");
    EXPECT_TRUE(std::string(events.status().message()).starts_with("line 2: ")) << line;
  }
}

TEST(TraceTest, MissingFileIsNotFound) {
  const auto events = ReadTraceFile("/nonexistent/trace.csv", kLimits);
  EXPECT_EQ(events.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace gannet::kvload
