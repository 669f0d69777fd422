#include "softverbs/fault/strict.h"

#include <cstdarg>
#include <cstdio>

namespace softverbs::fault {
namespace {

std::atomic<uint64_t> misuses{0};  // relaxed: nothing depends on it

}  // namespace

void Misuse(const char* format, ...) {
  misuses.fetch_add(1, std::memory_order_relaxed);
  const Plan* plan = Active();
  if ((plan == nullptr || !plan->strict) && !Verbose()) return;
  char text[256];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  fprintf(stderr, "softverbs: misuse: %s\n", text);
}

uint64_t MisuseCount() { return misuses.load(std::memory_order_relaxed); }

}  // namespace softverbs::fault
