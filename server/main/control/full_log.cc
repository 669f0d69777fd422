#include "server/main/control/full_log.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"

namespace gannet {
namespace {

constexpr int64_t kQuietNs = 60 * kNsPerSecond;

}  // namespace

uint64_t FullLog::Counter::TakeNew(uint64_t refused, BootTime now) {
  if (refused == said || now < quiet_until) return 0;
  quiet_until = now + kQuietNs;
  return refused - std::exchange(said, refused);
}

FullLog::Lines FullLog::Report(const StatsReply& stats, BootTime now) {
  Lines lines;
  if (const uint64_t n = heap_.TakeNew(stats.refused_heap_full, now)) {
    lines.heap =
        absl::StrCat("refused ", n, " writes: the memory is full (", stats.heap_bytes, " of ",
                     stats.heap_total, " bytes are in items); start the server with more --memory",
                     stats.eviction_watermark > 0
                         ? ""
                         : ", or with --on_full=evict, which lets items go that are used little");
  }
  if (const uint64_t n = index_.TakeNew(stats.refused_index_full, now)) {
    lines.index = absl::StrCat("refused ", n, " writes: the index is full (", stats.slots_used,
                               " of ", stats.slots_total,
                               " slots are used); start the server with more --index_slots");
  }
  return lines;
}

}  // namespace gannet
