// Replays the fuzzers' corpus, and simple damage to each file of it, without libFuzzer.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_targets.h"

namespace gannet::fuzz {
namespace {

using Bytes = std::vector<std::byte>;

std::vector<Bytes> Corpus(const std::string& name) {
  std::vector<Bytes> corpus;
  const std::filesystem::path folder = std::filesystem::path(GANNET_CORPUS_FOLDER) / name;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(text));
    corpus.emplace_back(bytes.begin(), bytes.end());
  }
  return corpus;
}

class FuzzCorpus : public testing::TestWithParam<Target> {};

// A target aborts by itself if a decoder is wrong. The sanitizers find the rest.
TEST_P(FuzzCorpus, Replays) {
  const std::vector<Bytes> corpus = Corpus(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  size_t runs = 0;
  for (const Bytes& bytes : corpus) {
    GetParam().run(bytes);
    ++runs;
    for (size_t size = 0; size < bytes.size(); ++size, ++runs) {
      // Its own allocation, so that AddressSanitizer sees one byte too many.
      GetParam().run(Bytes(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)));
    }
    for (size_t i = 0; i < bytes.size(); ++i) {
      for (const unsigned change : {0x01u, 0x80u, 0xffu}) {
        Bytes damaged = bytes;
        damaged[i] ^= static_cast<std::byte>(change);
        GetParam().run(damaged);
        ++runs;
      }
    }
  }
  RecordProperty("runs", static_cast<int>(runs));
  EXPECT_GT(runs, corpus.size());
}

INSTANTIATE_TEST_SUITE_P(Decoders, FuzzCorpus, testing::ValuesIn(kTargets),
                         [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace gannet::fuzz
