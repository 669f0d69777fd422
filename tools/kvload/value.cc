#include "tools/kvload/value.h"

#include <algorithm>
#include <cstring>

#include "common/base/hash.h"
#include "tools/kvload/random.h"

namespace gannet::kvload {
namespace {

// Values take different parts of the noise, so two writes seldom have a word in common.
constexpr uint64_t kNoiseStarts = 4096;
constexpr uint64_t kKeySeed = 0x6b65792d68617368ULL;

struct Header {
  uint64_t checksum;
  uint64_t key_hash;
  uint64_t sequence;
};
static_assert(sizeof(Header) == kVerifiedValueBytesMin);

constexpr size_t kSampleStride = 1024;
constexpr size_t kSamplesMax = 1024;

bool IsSampled(size_t value_bytes) { return value_bytes > kWholeBytesMax; }

uint64_t ChecksumOf(std::span<const std::byte> value) {
  constexpr size_t kSkip = sizeof(uint64_t);
  const size_t covered = IsSampled(value.size()) ? sizeof(Header) : value.size();
  return Xxh3(value.data() + kSkip, covered - kSkip, value.size());
}

// Calls use(word number, its offset) for each sampled word. The last one ends with the value.
template <class F>
void ForEachSample(size_t value_bytes, F use) {
  const size_t stride = std::max(kSampleStride, value_bytes / kSamplesMax);
  uint64_t number = 0;
  for (size_t at = sizeof(Header); at + 2 * sizeof(uint64_t) <= value_bytes; at += stride) {
    use(number++, at);
  }
  use(number, value_bytes - sizeof(uint64_t));
}

bool SamplesRight(std::span<const std::byte> value, uint64_t sequence) {
  uint64_t wrong = 0;
  ForEachSample(value.size(), [&](uint64_t number, size_t at) {
    uint64_t word;
    std::memcpy(&word, value.data() + at, sizeof(word));
    wrong |= word ^ Mix64(sequence + number);
  });
  return wrong == 0;
}

}  // namespace

std::string_view Describe(ValueVerdict verdict) {
  switch (verdict) {
    case ValueVerdict::kRight:
      return "right";
    case ValueVerdict::kTooShort:
      return "too short to be a value that kvload wrote";
    case ValueVerdict::kChecksum:
      return "wrong checksum: torn, or not written by kvload";
    case ValueVerdict::kOtherKey:
      return "the value of another key";
  }
  return "unknown";
}

ValueMaker::ValueMaker(uint32_t bytes_max, uint64_t seed)
    : noise_(std::min(bytes_max, kWholeBytesMax) + kNoiseStarts, '\0') {
  Random random(seed);
  for (char& c : noise_) c = static_cast<char>(random.Next());
}

const std::byte* ValueMaker::NoiseOf(uint64_t sequence) const {
  return reinterpret_cast<const std::byte*>(noise_.data()) + Mix64(sequence) % kNoiseStarts;
}

void ValueMaker::MakeUnverified(uint64_t sequence, std::span<std::byte> out) const {
  const size_t n = std::min<size_t>(out.size(), kWholeBytesMax);
  if (n > 0) std::memcpy(out.data(), NoiseOf(sequence), n);
}

void ValueMaker::Make(std::string_view key, uint64_t sequence, std::span<std::byte> out) const {
  Header header{0, HashKey(key, kKeySeed), sequence};
  std::memcpy(out.data(), &header, sizeof(header));
  if (IsSampled(out.size())) {
    ForEachSample(out.size(), [&](uint64_t number, size_t at) {
      const uint64_t word = Mix64(sequence + number);
      std::memcpy(out.data() + at, &word, sizeof(word));
    });
  } else {
    std::memcpy(out.data() + sizeof(header), NoiseOf(sequence), out.size() - sizeof(header));
  }
  header.checksum = ChecksumOf(out);
  std::memcpy(out.data(), &header.checksum, sizeof(header.checksum));
}

ValueVerdict VerifyValue(std::string_view key, std::span<const std::byte> value) {
  if (value.size() < sizeof(Header)) return ValueVerdict::kTooShort;
  Header header;
  std::memcpy(&header, value.data(), sizeof(header));
  if (header.checksum != ChecksumOf(value)) return ValueVerdict::kChecksum;
  if (IsSampled(value.size()) && !SamplesRight(value, header.sequence)) {
    return ValueVerdict::kChecksum;
  }
  if (header.key_hash != HashKey(key, kKeySeed)) return ValueVerdict::kOtherKey;
  return ValueVerdict::kRight;
}

}  // namespace gannet::kvload
