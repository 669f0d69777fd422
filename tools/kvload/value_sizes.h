#ifndef GANNET_TOOLS_KVLOAD_VALUE_SIZES_H_
#define GANNET_TOOLS_KVLOAD_VALUE_SIZES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"

namespace gannet::kvload {

// Values of several sizes, each with its share of the records. A record always has the same size,
// as most keys of a cache have, so what is loaded is what is rewritten.
class ValueSizes {
 public:
  static constexpr size_t kSizesMax = 16;

  // Parses "100:0.5,4K:0.4,1M:0.1": bytes (K and M are powers of 1024) and shares, which are taken
  // in proportion to their sum. InvalidArgument says what is wrong.
  static absl::StatusOr<ValueSizes> Parse(std::string_view text);

  uint32_t Of(uint64_t record) const;
  uint32_t smallest() const;
  uint32_t largest() const;

 private:
  struct Part {
    uint32_t bytes;
    double until;  // the sum of the shares up to this one; the last is 1
  };
  std::array<Part, kSizesMax> parts_{};
  size_t n_ = 0;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_VALUE_SIZES_H_
