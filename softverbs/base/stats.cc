#include "softverbs/base/stats.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "softverbs/base/fork.h"

namespace softverbs {
namespace {

constexpr const char* kNames[] = {"write", "write_imm",    "send",     "send_imm",
                                  "read",  "compare_swap", "fetch_add"};

uint64_t Get(const std::atomic<uint64_t>& counter) {
  return counter.load(std::memory_order_relaxed);
}

void Print() {
  std::string line = "softverbs stats: {";
  const auto add = [&line](const char* before, uint64_t value) {
    line += before + std::to_string(value);
  };
  add("\"receives\":", Get(stats.receives));
  add(",\"completions\":", Get(stats.completions));
  for (int opcode = 0; opcode <= IBV_WR_ATOMIC_FETCH_AND_ADD; ++opcode) {
    const Stats::PerOpcode& counts = stats.sends[opcode];
    line += std::string(",\"") + kNames[opcode] + "\":";
    add("{\"posts\":", Get(counts.posts));
    add(",\"bytes\":", Get(counts.bytes));
    add(",\"accelerated\":", Get(counts.accelerated));
    line += "}";
  }
  add(",\"acks\":", Get(stats.acks));
  line += "}\n";
  fwrite(line.data(), 1, line.size(), stderr);
}

void Zero() {
  for (Stats::PerOpcode& counts : stats.sends) counts.posts = counts.bytes = counts.accelerated = 0;
  for (std::atomic<uint64_t>& reads : stats.reads_of) reads = 0;
  stats.receives = stats.completions = stats.acks = 0;
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
