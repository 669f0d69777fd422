// Shell's command for snapshots.

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "tools/kvcli/shell.h"
#include "tools/kvcli/storage_json.h"

namespace gannet::kvcli {

int Shell::Snapshot(const Command& command) {
  const auto wait = command.wait.value_or(std::chrono::hours(1));
  const std::vector<ServerInfo> servers = client_.Info();
  int code = kExitDone;
  for (uint32_t server = 0; server < servers.size(); ++server) {
    const auto storage = client_.Snapshot(server, wait);
    if (!storage.ok()) {
      code = std::max(code, Report(storage.status()));
      continue;
    }
    const ServerStorage::Snapshot& snapshot = *storage->snapshot;
    if (options_.json) {
      ShowJson({{"endpoint", storage->endpoint},
                {"data", storage->directory},
                {"position", snapshot.position},
                {"items", snapshot.items},
                {"bytes", snapshot.bytes}});
    } else {
      std::printf("%s: a snapshot of %llu items, %llu bytes, from position %llu of the journal\n",
                  storage->directory.c_str(), static_cast<unsigned long long>(snapshot.items),
                  static_cast<unsigned long long>(snapshot.bytes),
                  static_cast<unsigned long long>(snapshot.position));
    }
  }
  return code;
}

}  // namespace gannet::kvcli
