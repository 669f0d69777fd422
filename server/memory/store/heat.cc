// Logarithms of uses, a byte each: UsesOf and HeatOf convert, After says what a use makes of a
// heat, and Cool takes a unit off the heats of a piece of the memory.

#include "server/memory/store/heat.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "common/base/check.h"
#include "common/base/words.h"

namespace gannet {
namespace {

constexpr uint64_t kHeatsPerWord = sizeof(uint64_t);
constexpr uint64_t kBytesPerWord = kHeatsPerWord * Heat::kGranuleBytes;
constexpr double kUseFraction = 4096;
// The worth of an item is uses / bytes^kSizePower.
constexpr double kSizePower = 0.75;

double UsesOf(uint32_t heat) {
  if (heat == Heat::kNone) return 0;
  return std::exp2((static_cast<double>(heat) - Heat::kUsedOnce) / Heat::kUnitsPerDoubling);
}

// Returns the heat of so many uses, times 256.
uint16_t HeatOf(double uses) {
  const double heat = Heat::kUsedOnce + Heat::kUnitsPerDoubling * std::log2(uses);
  return static_cast<uint16_t>(std::lround(std::clamp<double>(heat, 1, Heat::kMost) * 256));
}

std::array<int32_t, kSizeClassMax + 1> MakeSizeWorths() {
  std::array<int32_t, kSizeClassMax + 1> worths{};
  for (uint32_t c = 1; c <= kSizeClassMax; ++c) {
    worths[c] = static_cast<int32_t>(
        std::lround(Heat::kUnitsPerDoubling * kSizePower * std::log2(SizeClassBytes(c))));
  }
  return worths;
}

}  // namespace

uint64_t Heat::BytesFor(uint64_t region_bytes) {
  return (region_bytes / kBytesPerWord + 1) * sizeof(uint64_t);
}

Heat::Heat(uint64_t region_bytes, std::span<std::byte> memory)
    : own_(memory.empty() ? BytesFor(region_bytes) / sizeof(uint64_t) : 0),
      words_(memory.empty() ? std::span(own_)
                            : std::span(reinterpret_cast<uint64_t*>(memory.data()),
                                        BytesFor(region_bytes) / sizeof(uint64_t))) {
  GANNET_CHECK(memory.empty() || memory.size() >= BytesFor(region_bytes), "memory for heats");
  for (uint32_t heat = 0; heat < 256; ++heat) {
    uses_[heat] = static_cast<uint32_t>(std::min(UsesOf(heat) * kUseFraction, 4e9));
    for (uint32_t i = 0; i < after_.size(); ++i) {
      after_[i][heat] = heat == kNone ? 0 : HeatOf(UsesOf(heat) + std::exp2(i));
    }
  }
}

uint8_t Heat::After(uint8_t heat, uint32_t uses, uint32_t random) const {
  for (uint32_t left = std::min(uses, kUsesMax); left != 0; left &= left - 1) {
    const uint32_t exact = after_[static_cast<uint32_t>(std::countr_zero(left))][heat];
    heat = static_cast<uint8_t>((exact + (random & 0xff)) >> 8);
  }
  return heat;
}

uint64_t Heat::NextUsed(uint64_t offset, uint64_t end) const {
  for (; offset < end; offset += kGranuleBytes) {
    if (offset % kBytesPerWord == 0) {
      while (offset < end && LoadWord(&words_[offset / kBytesPerWord]) == 0) {
        offset += kBytesPerWord;
      }
      if (offset >= end) return end;
    }
    if (Get(offset) != kNone) return offset;
  }
  return end;
}

uint64_t Heat::SumOfUses(uint64_t offset, uint64_t end) const {
  uint64_t sum = 0;
  for (offset = NextUsed(offset, end); offset < end; offset = NextUsed(offset, end)) {
    sum += uses_[Get(offset)];
    offset += kGranuleBytes;
  }
  return sum;
}

void Heat::Cool(uint64_t words) {
  for (; words > 0; --words) {
    uint64_t* const word = &words_[cool_position_];
    const uint64_t heats = LoadWord(word);
    if (heats != 0) StoreWord(word, Cooled(heats, 1));
    if (++cool_position_ == words_.size()) cool_position_ = 0;
  }
}

uint64_t Cooled(uint64_t heats, uint8_t least) {
  constexpr uint64_t kOnes = 0x0101010101010101;
  constexpr uint64_t kTops = kOnes << 7;
  // Marks the bytes above `least`: the lower seven bits do not carry into the next byte.
  const uint64_t low = heats & ~kTops;
  const uint64_t above = ((low + kOnes * (127u - least)) | heats) & kTops;
  return heats - (above >> 7);
}

int32_t WorthOf(uint8_t heat, uint32_t size_class) {
  static const std::array<int32_t, kSizeClassMax + 1> kWorths = MakeSizeWorths();
  return heat - kWorths[std::min(size_class, kSizeClassMax)];
}

}  // namespace gannet
