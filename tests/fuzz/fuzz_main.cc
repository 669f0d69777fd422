// The entry points of the libFuzzer program. GANNET_FUZZ_TARGET in the environment is the name of
// its target.

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/fuzz_targets.h"

namespace {

const gannet::fuzz::Target* target = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("GANNET_FUZZ_TARGET");
  for (const gannet::fuzz::Target& known : gannet::fuzz::kTargets) {
    if (name != nullptr && std::string_view(name) == known.name) target = &known;
  }
  if (target == nullptr) {
    std::fprintf(
        stderr, "GANNET_FUZZ_TARGET must name a target: one of the folders of tests/fuzz/corpus\n");
    std::exit(2);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  target->run(std::as_bytes(std::span(data, size)));
  return 0;
}
