#include <gtest/gtest.h>

#include <vector>

#include "softverbs/tests/fuzz/net_stream.h"
#include "softverbs/tests/fuzz/replay.h"

namespace softverbs::fuzz {
namespace {

TEST(NetStreamCorpusTest, Replays) {
  const std::vector<Bytes> corpus = Corpus(SOFTVERBS_CORPUS_FOLDER "/net_stream");
  ASSERT_FALSE(corpus.empty());
  size_t runs = 0;
  for (const Bytes& bytes : corpus) runs += ReplayWithDamage(bytes, NetStreamBytes);
  EXPECT_GT(runs, corpus.size());
}

}  // namespace
}  // namespace softverbs::fuzz
