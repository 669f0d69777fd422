// Replays the fuzzers' corpus, and simple damage to each file of it, without libFuzzer.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "softverbs/tests/fuzz/replay.h"
#include "tests/fuzz/fuzz_targets.h"

namespace gannet::fuzz {
namespace {

using softverbs::fuzz::Bytes;

class FuzzCorpus : public testing::TestWithParam<Target> {};

TEST_P(FuzzCorpus, Replays) {
  const std::vector<Bytes> corpus =
      softverbs::fuzz::Corpus(std::filesystem::path(GANNET_CORPUS_FOLDER) / GetParam().name);
  ASSERT_FALSE(corpus.empty());
  size_t runs = 0;
  for (const Bytes& bytes : corpus) {
    runs += softverbs::fuzz::ReplayWithDamage(bytes, GetParam().run);
  }
  RecordProperty("runs", static_cast<int>(runs));
  EXPECT_GT(runs, corpus.size());
}

INSTANTIATE_TEST_SUITE_P(Decoders, FuzzCorpus, testing::ValuesIn(kTargets),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace gannet::fuzz
