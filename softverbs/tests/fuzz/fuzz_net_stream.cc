// The entry point of the libFuzzer program.

#include <cstdint>

#include "softverbs/tests/fuzz/net_stream.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  softverbs::fuzz::NetStreamBytes(std::as_bytes(std::span(data, size)));
  return 0;
}
