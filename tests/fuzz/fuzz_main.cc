// The entry point of one libFuzzer program; GANNET_FUZZ_TARGET is its name in kTargets.

#include <cstdint>
#include <string_view>

#include "tests/fuzz/fuzz_targets.h"

namespace {

constexpr gannet::fuzz::Target Find(std::string_view name) {
  for (const gannet::fuzz::Target& target : gannet::fuzz::kTargets) {
    if (name == target.name) return target;
  }
  return {};
}
constexpr gannet::fuzz::Target kTarget = Find(GANNET_FUZZ_TARGET);
static_assert(kTarget.run != nullptr);

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  kTarget.run(std::as_bytes(std::span(data, size)));
  return 0;
}
