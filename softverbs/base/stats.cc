#include "softverbs/base/stats.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "softverbs/base/fork.h"

namespace softverbs {
namespace {

constexpr const char* kNames[] = {"write", "write_imm",    "send",     "send_imm",
                                  "read",  "compare_swap", "fetch_add"};

uint64_t Get(const std::atomic<uint64_t>& counter) {
  return counter.load(std::memory_order_relaxed);
}

void Print() {
  char line[2048];
  size_t used = 0;
  const auto add = [&](const char* format, auto... values) {
    used += static_cast<size_t>(snprintf(line + used, sizeof(line) - used, format, values...));
  };
  add("softverbs stats: {\"receives\":%" PRIu64 ",\"completions\":%" PRIu64, Get(stats.receives),
      Get(stats.completions));
  for (int opcode = 0; opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD; ++opcode) {
    const Stats::PerOpcode& counts = stats.sends[opcode];
    add(",\"%s\":{\"posts\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"accelerated\":%" PRIu64 "}",
        kNames[opcode], Get(counts.posts), Get(counts.bytes), Get(counts.accelerated));
  }
  add("}\n");
  fwrite(line, 1, used, stderr);
}

void Zero() {
  for (Stats::PerOpcode& counts : stats.sends) counts.posts = counts.bytes = counts.accelerated = 0;
  stats.receives = stats.completions = 0;
}

}  // namespace

const bool stats_enabled = [] {
  const char* value = getenv("SOFTVERBS_STATS");
  return value != nullptr && *value != '\0' && strcmp(value, "0") != 0;
}();

Stats stats;

void StartStats() {
  static const bool started = [] {
    if (!stats_enabled) return false;
    OnForkChild(Zero);
    atexit(Print);
    return true;
  }();
  (void)started;
}

}  // namespace softverbs
