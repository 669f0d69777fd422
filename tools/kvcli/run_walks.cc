// The verbs that walk through a server's memory.

#include <fnmatch.h>
#include <gannet/walker.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "tools/kvcli/answers.h"
#include "tools/kvcli/run_verbs.h"
#include "tools/kvcli/tier_figures.h"
#include "tools/kvcli/top_view.h"

namespace gannet::kvcli {
namespace {

// A line on stderr, which is a terminal, that says how far a walk has come. The line is gone at the
// end. One thread.
class WalkProgressLine {
 public:
  // Shows nothing unless `shown`. `walker` must outlive this.
  WalkProgressLine(const Walker& walker, std::string server, bool shown)
      : walker_(walker), server_(std::move(server)), shown_(shown) {}
  ~WalkProgressLine() {
    if (drawn_) std::fputs("\r\033[K", stderr);
  }
  WalkProgressLine(const WalkProgressLine&) = delete;
  WalkProgressLine& operator=(const WalkProgressLine&) = delete;

  // Call it often. Draws the line anew now and then.
  void Look() {
    if (!shown_) return;
    const int64_t now_ns = MonotonicNs();
    if (now_ns < next_ns_) return;
    next_ns_ = now_ns + kPauseNs;
    const WalkProgress progress = walker_.progress();
    const std::string line = absl::StrFormat("\r\033[Kkvcli: %.0f %% of %s, %d items",
                                             100 * progress.done, server_, progress.items);
    std::fputs(line.c_str(), stderr);
    drawn_ = true;
  }

 private:
  static constexpr int64_t kPauseNs = kNsPerSecond / 2;

  const Walker& walker_;
  const std::string server_;
  const bool shown_;
  bool drawn_ = false;
  int64_t next_ns_ = MonotonicNs() + kPauseNs;  // a short walk shows nothing
};

constexpr uint64_t kBigKeysDefault = 10;

bool Wants(const Command& command, std::string_view key) {
  if (!key.starts_with(command.prefix)) return false;
  // fnmatch takes C strings. A key with a zero byte matches no glob.
  return command.match.empty() ||
         (key.find('\0') == std::string_view::npos &&
          fnmatch(command.match.c_str(), std::string(key).c_str(), 0) == 0);
}

Json ItemJson(const WalkedItem& item) {
  Json json = Json::object();
  AddBytes("key", item.key, false, json);
  json["value_bytes"] = item.info.value_bytes;
  json["block_bytes"] = item.block_bytes;
  json["version"] = item.info.version;
  json["flags"] = item.info.flags;
  json["expiry_ms"] = item.info.expiry_ms;
  return json;
}

// What the items of one size of block take.
struct BlockUse {
  uint64_t items = 0;
  uint64_t key_bytes = 0;
  uint64_t value_bytes = 0;

  void Add(const BlockUse& other) {
    items += other.items;
    key_bytes += other.key_bytes;
    value_bytes += other.value_bytes;
  }
};

void ShowUse(const std::string& name, const BlockUse& use, uint64_t block_bytes) {
  const double share = block_bytes == 0
                           ? 0
                           : 100 * static_cast<double>(use.key_bytes + use.value_bytes) /
                                 static_cast<double>(block_bytes);
  std::printf("%s\n", absl::StrFormat("%12s %12d %14d %14d %14d %7.1f", name, use.items,
                                      use.key_bytes, use.value_bytes, block_bytes, share)
                          .c_str());
}

Json UseJson(const BlockUse& use, uint64_t block_bytes) {
  return {{"items", use.items},
          {"key_bytes", use.key_bytes},
          {"value_bytes", use.value_bytes},
          {"memory_bytes", block_bytes}};
}

// Calls `use` with the figures of each server that has a disk behind its memory.
void ForEachTier(Client& client, absl::FunctionRef<void(const ServerStats&)> use) {
  for (const ServerReport& report : client.Stats()) {
    if (report.stats.ok() && HasTier(*report.stats)) use(*report.stats);
  }
}

// Items whose values are on a disk are among the others, with blocks of their stubs.
void ShowTiers(Client& client) {
  ForEachTier(client, [](const ServerStats& stats) {
    Say(absl::StrFormat("%s: %d of the items are on disk, and take %d of at most %d bytes\n",
                        stats.endpoint, stats.items_on_disk, stats.tier_stub_bytes,
                        stats.tier_stub_budget));
  });
}

void AddTiers(Client& client, Json& json) {
  ForEachTier(client, [&json](const ServerStats& stats) {
    Json tier = TierJson(stats);
    tier["endpoint"] = stats.endpoint;
    json["tiers"].push_back(std::move(tier));
  });
}

constexpr uint64_t kHotKeysDefault = 10;

// Keys that are listed on the same terminal show it by themselves.
bool ShowsProgress(Shell& shell, const Command& command) {
  const bool lists = command.verb == Verb::kScan && isatty(STDOUT_FILENO) != 0;
  return isatty(STDERR_FILENO) != 0 && !shell.options().quiet && !lists;
}

int WalkItems(Shell& shell, const Command& command,
              const std::function<bool(const WalkedItem&)>& show) {
  shell.BeginWait();
  bool goes_on = true;
  for (const std::string& server : shell.options().servers) {
    const auto walker = Walker::Connect(server, shell.options().connect,
                                        {.reads_per_second = command.reads_per_second});
    if (!walker.ok()) return shell.Report(walker.status());
    WalkProgressLine progress(**walker, server, ShowsProgress(shell, command));
    const absl::Status status = (*walker)->Walk([&](const WalkedItem& item) {
      progress.Look();
      if (Wants(command, item.key)) goes_on = show(item);
      goes_on &= !shell.interrupted();
      return goes_on;
    });
    if (!status.ok()) return shell.Report(status);
    if (!goes_on) break;
  }
  return kExitDone;
}

}  // namespace

int RunScan(Shell& shell, const Command& command) {
  uint64_t left = command.count.value_or(UINT64_MAX);
  return WalkItems(shell, command, [&](const WalkedItem& item) {
    const bool whole = item.value.size() == item.info.value_bytes;
    if (shell.options().json) {
      Json json = ItemJson(item);
      if (command.show_values && whole) AddBytes("value", item.value, true, json);
      shell.ShowJson(json);
    } else if (command.show_values) {
      const std::string value =
          whole ? Escaped(item.value) : absl::StrFormat("(%d bytes)", item.info.value_bytes);
      std::printf("%s %s\n", Escaped(item.key).c_str(), value.c_str());
    } else {
      std::printf("%s\n", Escaped(item.key).c_str());
    }
    return --left > 0 && AnswersAreRead();
  });
}

int RunBigKeys(Shell& shell, const Command& command) {
  struct Big {
    uint64_t value_bytes;
    std::string key;
    Json json;
  };
  const size_t count = command.count.value_or(kBigKeysDefault);
  std::vector<Big> biggest;  // the longest value first
  const int code = WalkItems(shell, command, [&](const WalkedItem& item) {
    const uint64_t bytes = item.info.value_bytes;
    if (biggest.size() == count && bytes <= biggest.back().value_bytes) return true;
    std::erase_if(biggest, [&](const Big& it) { return it.key == item.key; });
    const auto place =
        std::ranges::find_if(biggest, [bytes](const Big& it) { return it.value_bytes < bytes; });
    biggest.insert(place, {bytes, std::string(item.key), ItemJson(item)});
    if (biggest.size() > count) biggest.pop_back();
    return true;
  });
  if (code != kExitDone) return code;
  for (const Big& it : biggest) {
    if (shell.options().json) {
      shell.ShowJson(it.json);
    } else {
      std::printf("%s\n", absl::StrFormat("%10d %s", it.value_bytes, Escaped(it.key)).c_str());
    }
  }
  return kExitDone;
}

int RunHotKeys(Shell& shell, const Command& command) {
  shell.BeginWait();
  const uint64_t count = command.count.value_or(kHotKeysDefault);
  std::vector<std::pair<std::string, HotKey>> all;  // with the server
  for (const std::string& server : shell.options().servers) {
    const auto walker = Walker::Connect(server, shell.options().connect,
                                        {.reads_per_second = command.reads_per_second});
    if (!walker.ok()) return shell.Report(walker.status());
    WalkProgressLine progress(**walker, server, ShowsProgress(shell, command));
    auto keys = (*walker)->HotKeys(count, [&] {
      progress.Look();
      return !shell.interrupted();
    });
    if (absl::IsCancelled(keys.status())) return kExitDone;
    if (absl::IsFailedPrecondition(keys.status())) {
      return shell.Report(absl::FailedPreconditionError(absl::StrCat(
          server,
          ": hotkeys needs kvserver --on_full=evict: without eviction the server keeps no "
          "record of what is used")));
    }
    if (!keys.ok()) return shell.Report(keys.status());
    for (HotKey& it : *keys) all.emplace_back(server, std::move(it));
  }
  std::ranges::stable_sort(
      all, [](const auto& a, const auto& b) { return a.second.uses > b.second.uses; });
  all.resize(std::min<size_t>(all.size(), count));
  for (const auto& [server, it] : all) {
    if (shell.options().json) {
      Json json = {{"endpoint", server}};
      json.update(HotKeyJson(it));
      shell.ShowJson(json);
    } else {
      std::printf("%s\n", absl::StrFormat("%8s %10d %s%s", UsesText(it), it.info.value_bytes,
                                          Escaped(it.key), LeaseText(it))
                              .c_str());
    }
  }
  return kExitDone;
}

int RunMemory(Shell& shell, const Command& command) {
  std::map<uint32_t, BlockUse> by_block;
  const int code = WalkItems(shell, command, [&](const WalkedItem& item) {
    // A value that is longer than its block is on the disk.
    const bool on_disk = item.info.value_bytes > item.block_bytes;
    by_block[item.block_bytes].Add({1, item.key.size(), on_disk ? 0 : item.info.value_bytes});
    return true;
  });
  if (code != kExitDone) return code;
  BlockUse all;
  uint64_t all_bytes = 0;
  Json blocks = Json::array();
  if (!shell.options().json) {
    std::printf("%12s %12s %14s %14s %14s %7s\n", "block bytes", "items", "key bytes",
                "value bytes", "memory bytes", "used %");
  }
  for (const auto& [block, use] : by_block) {
    const uint64_t bytes = block * use.items;
    all.Add(use);
    all_bytes += bytes;
    Json json = UseJson(use, bytes);
    json["block_bytes"] = block;
    blocks.push_back(std::move(json));
    if (!shell.options().json) ShowUse(std::to_string(block), use, bytes);
  }
  if (shell.options().json) {
    Json json = UseJson(all, all_bytes);
    json["blocks"] = std::move(blocks);
    AddTiers(shell.client(), json);
    shell.ShowJson(json);
  } else {
    ShowUse("all", all, all_bytes);
    ShowTiers(shell.client());
  }
  return kExitDone;
}

}  // namespace gannet::kvcli
