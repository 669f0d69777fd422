#ifndef GANNET_TOOLS_KVCLI_STORAGE_JSON_H_
#define GANNET_TOOLS_KVCLI_STORAGE_JSON_H_

#include <gannet/types.h>

#include "tools/kvcli/text.h"

namespace gannet::kvcli {

// Adds where a server keeps its items, as far as it does.
inline void AddStorage(const ServerStorage& storage, Json& json) {
  json["disk_sync"] = storage.sync.empty() ? "no disk" : storage.sync;
  json["memory_file"] = storage.memory_file;
  if (storage.sync.empty()) return;
  json["data"] = storage.directory;
  json["disk_behind_bytes"] = storage.behind_bytes;
  json["disk_behind_ms"] = storage.behind.count();
  if (!storage.snapshot) return;
  json["snapshot_position"] = storage.snapshot->position;
  json["snapshot_items"] = storage.snapshot->items;
  json["snapshot_bytes"] = storage.snapshot->bytes;
  json["snapshot_completed_ms"] = storage.snapshot->completed.count();
}

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_STORAGE_JSON_H_
