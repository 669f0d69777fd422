// Shell: the keys that are used most.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/kvcli/shell.h"
#include "tools/kvcli/top_view.h"
#include "tools/kvcli/walk_progress.h"

namespace gannet::kvcli {
namespace {

constexpr uint64_t kHotKeysDefault = 10;

}  // namespace

int Shell::HotKeys(const Command& command) {
  interrupted_.store(false, std::memory_order_relaxed);
  const uint64_t count = command.count.value_or(kHotKeysDefault);
  std::vector<std::pair<std::string, HotKey>> all;  // with the server
  for (const std::string& server : options_.servers) {
    const auto walker =
        Walker::Connect(server, options_.connect, {.reads_per_second = command.reads_per_second});
    if (!walker.ok()) return Report(walker.status());
    WalkProgressLine progress(**walker, server, ShowsProgress(command));
    auto keys = (*walker)->HotKeys(count, [&] {
      progress.Look();
      return !interrupted_.load(std::memory_order_relaxed);
    });
    if (absl::IsCancelled(keys.status())) return kExitDone;
    if (absl::IsFailedPrecondition(keys.status())) {
      return Report(absl::FailedPreconditionError(absl::StrCat(
          server,
          ": hotkeys needs kvserver --on_full=evict: without eviction the server keeps no "
          "record of what is used")));
    }
    if (!keys.ok()) return Report(keys.status());
    for (HotKey& it : *keys) all.emplace_back(server, std::move(it));
  }
  std::ranges::stable_sort(
      all, [](const auto& a, const auto& b) { return a.second.uses > b.second.uses; });
  all.resize(std::min<size_t>(all.size(), count));
  for (const auto& [server, it] : all) {
    if (options_.json) {
      Json json = {{"endpoint", server}};
      json.update(HotKeyJson(it));
      ShowJson(json);
    } else {
      std::printf("%s\n",
                  absl::StrFormat("%8s %10d %s", UsesText(it), it.info.value_bytes, Escaped(it.key))
                      .c_str());
    }
  }
  return kExitDone;
}

}  // namespace gannet::kvcli
