#include "server/main/control/store_in_file.h"

#include <glog/logging.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<Store>> CreateStoreIn(const std::string& path,
                                                     const Store::Options& options) {
  absl::StatusOr<std::unique_ptr<Store>> store = Store::Create(options);
  if (path.empty()) return store;
  if (!store.ok()) {
    return absl::Status(store.status().code(), absl::StrCat("memory file ", path, ": ",
                                                            std::string(store.status().message())));
  }
  const std::optional<TakenOver>& taken_over = (*store)->taken_over();
  LOG(INFO) << "memory file " << path << ": "
            << (taken_over ? Describe(*taken_over) : std::string("new, empty"));
  if (taken_over && taken_over->counts.dropped() > 0) {
    LOG(ERROR) << "memory file " << path << " was damaged: " << taken_over->counts.dropped()
               << " items are lost";
  }
  return store;
}

std::string Describe(const TakenOver& taken_over) {
  const SurveyCounts& counts = taken_over.counts;
  return absl::StrFormat(
      "took over %d items (%d large, %d on a disk, %d bytes) of a process that %s in %.3f s; %d "
      "were set back to "
      "before a write that was under way, %d writes or deletions had not begun or were complete "
      "but for their slot, %d slots were second ones; dropped %d: %d torn, %d misplaced, %d "
      "overlapping",
      counts.items, counts.large_items, counts.stubs, counts.item_bytes,
      taken_over.stopped_in_order ? "stopped" : "was killed", taken_over.seconds,
      counts.rolled_back, counts.unfinished, counts.leftovers, counts.dropped(), counts.torn,
      counts.misplaced, counts.overlapping);
}

}  // namespace gannet
