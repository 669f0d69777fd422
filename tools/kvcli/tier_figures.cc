#include "tools/kvcli/tier_figures.h"

#include <array>

namespace gannet::kvcli {

TierCounts TierCounts::Of(const ServerStats& stats) {
  return {.hits = stats.tier_reads + stats.tier_reads_joined - stats.tier_reads_failed,
          .reads = stats.tier_reads,
          .read_us = stats.tier_read_us,
          .written = stats.tier_written,
          .evicted = stats.tier_evicted,
          .unwritten = stats.items_evicted};
}

TierCounts TierCounts::Since(const TierCounts& before) const {
  // Hits may be one fewer than before: a read is counted when it begins, and may fail.
  const auto since = [](uint64_t then, uint64_t now) { return now >= then ? now - then : 0; };
  return {.hits = since(before.hits, hits),
          .reads = since(before.reads, reads),
          .read_us = since(before.read_us, read_us),
          .written = since(before.written, written),
          .evicted = since(before.evicted, evicted),
          .unwritten = since(before.unwritten, unwritten)};
}

std::string_view TierState(const ServerStats& stats) {
  constexpr std::array<std::string_view, 5> kNames = {"none", "works", "slow", "full", "failed"};
  return stats.tier_disk < kNames.size() ? kNames[stats.tier_disk] : "?";
}

Json TierJson(const ServerStats& stats) {
  return {{"state", TierState(stats)},           {"bytes", stats.tier_bytes},
          {"items", stats.items_on_disk},        {"page_cache", stats.tier_page_cache != 0},
          {"stub_bytes", stats.tier_stub_bytes}, {"stub_budget", stats.tier_stub_budget}};
}

}  // namespace gannet::kvcli
