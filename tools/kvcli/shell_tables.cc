// Shell's commands that show a server's counters and grants.

#include <algorithm>
#include <cstdio>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/kvcli/shell.h"
#include "tools/kvcli/storage_json.h"

namespace gannet::kvcli {
namespace {

std::string AsText(const Json& object) {
  std::string text;
  for (const auto& [name, value] : object.items()) {
    absl::StrAppend(&text, name, " ", value.is_string() ? value.get<std::string>() : value.dump(),
                    "\n");
  }
  return text;
}

Json StatsJson(const ServerReport& report) {
  const ServerStats& s = *report.stats;
  return {{"endpoint", s.endpoint},
          {"name", report.name},
          {"rpcs", s.rpcs},
          {"heartbeats", s.heartbeats},
          {"cpu_us", s.cpu_us},
          {"slots_used", s.slots_used},
          {"slots_total", s.slots_total},
          {"heap_bytes", s.heap_bytes},
          {"heap_total", s.heap_total},
          {"sessions", s.sessions},
          {"connections", s.connections},
          {"items", s.items},
          {"displacements", s.displacements},
          {"stash_used", s.stash_used},
          {"locks_broken", s.locks_broken},
          {"uptime_ms", s.uptime_ms},
          {"session_bytes", s.session_bytes},
          {"reply_posts", s.reply_posts},
          {"receive_posts", s.receive_posts},
          {"send_completions", s.send_completions},
          {"refused_heap_full", s.refused_heap_full},
          {"refused_index_full", s.refused_index_full},
          {"items_expired", s.items_expired},
          {"items_moved", s.items_moved},
          {"locks_expired", s.locks_expired},
          {"refused_connections", s.refused_connections},
          {"refused_requests", s.refused_requests},
          {"index_growths", s.index_growths},

          {"items_deleted", s.items_deleted},
          {"items_evicted", s.items_evicted},
          {"evicted_by_writes", s.evicted_by_writes},
          {"eviction_watermark", s.eviction_watermark},
          {"evicted_age_ms", s.evicted_age_ms},
          {"disk_sync", s.disk_sync},
          {"disk_bytes", s.disk_bytes},
          {"disk_behind_bytes", s.disk_behind_bytes},
          {"disk_behind_ms", s.disk_behind_ms},
          {"disk_refused", s.disk_refused},
          {"disk_snapshots", s.disk_snapshots},
          {"items_expiring", s.items_expiring}};
}

Json InfoJson(const ServerInfo& s) {
  return {{"endpoint", s.endpoint},
          {"name", s.name},
          {"connected", s.connected},
          {"why_not", s.why_not},
          {"device", s.device},
          {"kind", s.kind},
          {"lock_mode", s.lock_mode},
          {"authenticated", s.authenticated},
          {"read_only", s.read_only},
          {"incarnation", absl::StrCat(absl::Hex(s.incarnation, absl::kZeroPad16))},
          {"history", absl::StrCat(absl::Hex(s.history, absl::kZeroPad16))},
          {"epoch", s.epoch},
          {"address", s.address},
          {"region_bytes", s.region_bytes},
          {"index_slots", s.index_slots},
          {"lock_words", s.lock_words},
          {"protocol_version", s.protocol_version},
          {"session_id", s.session_id},
          {"read_depth", s.read_depth},
          {"silence_ms", s.silence_ms},
          {"reads_disbelieved", s.reads_disbelieved}};
}

}  // namespace

int Shell::Stats(const Command&) {
  int code = kExitDone;
  for (const ServerReport& report : client_.Stats()) {
    if (!report.stats.ok()) {
      code = std::max(code, Report(report.stats.status()));
      continue;
    }
    const Json json = StatsJson(report);
    if (options_.json) {
      ShowJson(json);
    } else {
      std::fputs(AsText(json).c_str(), stdout);
    }
  }
  return code;
}

int Shell::Info(const Command&) {
  int code = kExitDone;
  const std::vector<ServerInfo> servers = client_.Info();
  for (uint32_t i = 0; i < servers.size(); ++i) {
    const ServerInfo& server = servers[i];
    Json json = InfoJson(server);
    if (server.connected) {
      // An older server cannot say where it keeps its items.
      if (const auto storage = client_.Storage(i); storage.ok()) AddStorage(*storage, json);
    } else {
      code = kExitError;
      std::fprintf(stderr, "kvcli: not connected: %s\n", server.why_not.c_str());
    }
    if (options_.json) {
      ShowJson(json);
    } else {
      std::fputs(AsText(json).c_str(), stdout);
    }
  }
  return code;
}

}  // namespace gannet::kvcli
