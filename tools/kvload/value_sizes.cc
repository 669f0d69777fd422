#include "tools/kvload/value_sizes.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/hash.h"

namespace gannet::kvload {
namespace {

constexpr uint64_t kSizesSeed = 0x73697a65732d6f66ULL;  // other numbers than those that choose keys

bool ParseBytes(std::string_view text, uint32_t* bytes) {
  int shift = 0;
  if (text.ends_with('K')) shift = 10;
  if (text.ends_with('M')) shift = 20;
  if (shift > 0) text.remove_suffix(1);
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, *bytes);
  if (error != std::errc() || stopped != end || *bytes > (UINT32_MAX >> shift)) return false;
  *bytes <<= shift;
  return true;
}

}  // namespace

absl::StatusOr<ValueSizes> ValueSizes::Parse(std::string_view text) {
  ValueSizes sizes;
  const std::vector<std::string> parts = absl::StrSplit(std::string(text), ',');
  if (parts.size() > kSizesMax) {
    return absl::InvalidArgumentError(absl::StrCat("at most ", kSizesMax, " sizes"));
  }
  double sum = 0;
  for (const std::string& part : parts) {
    const std::vector<std::string> words = absl::StrSplit(part, ':');
    uint32_t bytes = 0;
    double share = 0;
    if (words.size() != 2 || !ParseBytes(words[0], &bytes) || !absl::SimpleAtod(words[1], &share) ||
        !(share > 0 && share <= 1e9)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", part, "': write BYTES:SHARE, with a share above 0, as in 100:0.5,4K:0.4,1M:0.1"));
    }
    sum += share;
    sizes.parts_[sizes.n_++] = {bytes, sum};
  }
  for (Part& part : std::span(sizes.parts_).first(sizes.n_)) part.until /= sum;
  return sizes;
}

uint32_t ValueSizes::Of(uint64_t record) const {
  const double point = static_cast<double>(Mix64(record ^ kSizesSeed) >> 11) * 0x1p-53;
  size_t i = 0;
  while (i + 1 < n_ && point >= parts_[i].until) ++i;
  return parts_[i].bytes;
}

uint32_t ValueSizes::smallest() const {
  return std::ranges::min(std::span(parts_).first(n_), {}, &Part::bytes).bytes;
}

uint32_t ValueSizes::largest() const {
  return std::ranges::max(std::span(parts_).first(n_), {}, &Part::bytes).bytes;
}

}  // namespace gannet::kvload
