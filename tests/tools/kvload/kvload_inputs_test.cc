// kvload with traces, and with values of several sizes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/tools/kvload/kvload_run.h"
#include "tools/kvload/random.h"

namespace gannet {
namespace {

using Json = nlohmann::json;

class KvloadInputsTest : public KvloadTest {};

// The seed is printed with a failure: it names the trace.
TEST_F(KvloadInputsTest, ReplaysATrace) {
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  const ScratchFile trace("trace.csv");
  uint64_t reads = 0;
  {
    kvload::Random random(kSeed);
    std::ofstream out(trace.path());
    out << "version,time,op,size,lbn\n";
    for (int i = 0; i < 3000; ++i) {
      const bool is_read = random.Below(100) < 40;
      reads += is_read ? 1 : 0;
      out << "1," << 5633898 + i << "," << (is_read ? "28" : "2a") << ","
          << 512 * (1 + random.Below(136)) << "," << random.Below(500) << "\n";
    }
  }
  const Json json = Measure({"--trace=" + trace.path(), "--depth=4"});
  ExpectCommonFields(json);
  EXPECT_EQ(json.at("workload"), "trace");
  EXPECT_TRUE(json.at("value_size").is_null());
  const Json& ops = json.at("ops");
  EXPECT_EQ(ops.at("get").at("count"), reads);
  EXPECT_EQ(ops.at("put").at("count"),
            3000 - reads + ops.at("get").at("not_found").get<uint64_t>());
}

TEST_F(KvloadInputsTest, ReplaysWhatCachesAndLlmServersSaw) {
  const ScratchFile twitter("twitter.csv");
  std::ofstream(twitter.path()) << "0,user:1,6,100,1,get,0\n"
                                   "0,user:1,6,100,1,set,3600\n"
                                   "1,user:1,6,100,1,gets,0\n"
                                   "1,user:1,6,60,1,cas,3600\n"
                                   "1,user:2,6,60,1,add,60\n"
                                   "2,user:2,6,60,1,replace,60\n"
                                   "2,hits:1,6,4,1,incr,60\n"
                                   "2,hits:1,6,4,1,incr,60\n"
                                   "3,log:1,5,30,1,append,0\n"
                                   "3,user:1,6,0,1,delete,0\n"
                                   "3,user:1,6,0,1,get,0\n";
  const Json cache = Measure({"--trace=" + twitter.path(), "--depth=1"});
  ExpectCommonFields(cache);
  const Json& ops = cache.at("ops");
  EXPECT_EQ(ops.at("get").at("count"), 3);
  EXPECT_EQ(ops.at("get").at("not_found"), 2);
  EXPECT_EQ(ops.at("put").at("count"), 2) << "a PUT follows the first GET, but not the last";
  for (const char* once : {"cas", "add", "replace", "append", "delete"}) {
    EXPECT_EQ(ops.at(once).at("count"), 1) << once;
    EXPECT_EQ(ops.at(once).at("not_found"), 0) << once;
  }
  EXPECT_EQ(ops.at("incr").at("count"), 2);

  const ScratchFile mooncake("mooncake.jsonl");
  std::ofstream(mooncake.path())
      << R"({"timestamp": 0, "input_length": 1500, "output_length": 5, "hash_ids": [0, 1, 2]})"
         "\n"
      << R"({"timestamp": 9, "input_length": 1500, "output_length": 5, "hash_ids": [0, 1, 3]})"
         "\n";
  const Json blocks = Measure({"--trace=" + mooncake.path(), "--depth=1", "--value_size=20000"});
  EXPECT_EQ(blocks.at("ops").at("get").at("count"), 6);
  EXPECT_EQ(blocks.at("ops").at("put").at("count"), 4);
  EXPECT_NEAR(blocks.at("hit_ratio"), 2.0 / 6, 1e-9);
}

TEST_F(KvloadInputsTest, ValuesHaveTheSizesThatAreAskedFor) {
  const Json json =
      Measure({"--records=2000", "--operations=20000", "--value_sizes=100:0.5,4K:0.4,100K:0.1"});
  ExpectCommonFields(json);
  EXPECT_EQ(json.at("value_sizes"), "100:0.5,4K:0.4,100K:0.1");
  EXPECT_TRUE(json.at("value_size").is_null());
  EXPECT_EQ(json.at("hit_ratio"), 1.0);
}

}  // namespace
}  // namespace gannet
