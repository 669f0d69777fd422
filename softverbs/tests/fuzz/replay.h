#ifndef SOFTVERBS_TESTS_FUZZ_REPLAY_H_
#define SOFTVERBS_TESTS_FUZZ_REPLAY_H_

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace softverbs::fuzz {

using Bytes = std::vector<std::byte>;
// One that aborts if a decoder is wrong. The sanitizers find the rest.
using RunBytes = void (*)(std::span<const std::byte> bytes);

// Returns the content of each file in a folder.
inline std::vector<Bytes> Corpus(const std::filesystem::path& folder) {
  std::vector<Bytes> corpus;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const auto bytes = std::as_bytes(std::span(text));
    corpus.emplace_back(bytes.begin(), bytes.end());
  }
  return corpus;
}

// Replays an input of a fuzzer without libFuzzer, and simple damage to it: each of its beginnings,
// and each byte changed in three ways. Returns the number of runs.
inline size_t ReplayWithDamage(const Bytes& bytes, RunBytes run) {
  run(bytes);
  for (size_t size = 0; size < bytes.size(); ++size) {
    // Its own allocation, so that AddressSanitizer sees one byte too many.
    run(Bytes(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)));
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const unsigned change : {0x01u, 0x80u, 0xffu}) {
      Bytes damaged = bytes;
      damaged[i] ^= static_cast<std::byte>(change);
      run(damaged);
    }
  }
  return 1 + 4 * bytes.size();
}

}  // namespace softverbs::fuzz

#endif  // SOFTVERBS_TESTS_FUZZ_REPLAY_H_
