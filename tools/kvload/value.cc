#include "tools/kvload/value.h"

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

uint64_t ChecksumOf(std::span<const std::byte> value) {
  constexpr size_t kSkip = sizeof(uint64_t);
  return Xxh3(value.data() + kSkip, value.size() - kSkip, value.size());
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

ValueMaker::ValueMaker(uint32_t bytes_max, uint64_t seed) : noise_(bytes_max + kNoiseStarts, '\0') {
  Random random(seed);
  for (char& c : noise_) c = static_cast<char>(random.Next());
}

const std::byte* ValueMaker::NoiseOf(uint64_t sequence) const {
  return reinterpret_cast<const std::byte*>(noise_.data()) + Mix64(sequence) % kNoiseStarts;
}

void ValueMaker::MakeUnverified(uint64_t sequence, std::span<std::byte> out) const {
  if (!out.empty()) std::memcpy(out.data(), NoiseOf(sequence), out.size());
}

void ValueMaker::Make(std::string_view key, uint64_t sequence, std::span<std::byte> out) const {
  Header header{0, HashKey(key, kKeySeed), sequence};
  std::memcpy(out.data(), &header, sizeof(header));
  std::memcpy(out.data() + sizeof(header), NoiseOf(sequence), out.size() - sizeof(header));
  header.checksum = ChecksumOf(out);
  std::memcpy(out.data(), &header.checksum, sizeof(header.checksum));
}

ValueVerdict VerifyValue(std::string_view key, std::span<const std::byte> value) {
  if (value.size() < sizeof(Header)) return ValueVerdict::kTooShort;
  Header header;
  std::memcpy(&header, value.data(), sizeof(header));
  if (header.checksum != ChecksumOf(value)) return ValueVerdict::kChecksum;
  if (header.key_hash != HashKey(key, kKeySeed)) return ValueVerdict::kOtherKey;
  return ValueVerdict::kRight;
}

}  // namespace gannet::kvload
