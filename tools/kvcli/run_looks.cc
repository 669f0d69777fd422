// The verbs that show what servers say of themselves and of their clients.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "common/protocol/stats_reply.h"
#include "tools/kvcli/rail_figures.h"
#include "tools/kvcli/run_verbs.h"
#include "tools/kvcli/tier_figures.h"

namespace gannet::kvcli {
namespace {

// Adds where a server keeps its items, as far as it does.
void AddStorage(const ServerStorage& storage, Json& json) {
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

// Adds the disk behind its memory, if there is one.
void AddTier(const ServerStats& stats, Json& json) {
  if (!HasTier(stats)) return;
  const Json tier = TierJson(stats);
  for (const auto& [name, value] : tier.items()) json[absl::StrCat("tier_", name)] = value;
}

double ToUs(std::chrono::nanoseconds time) { return static_cast<double>(time.count()) / 1000; }

Json ClientJson(const std::string& endpoint, const ConnectedClient& it) {
  return {{"endpoint", endpoint},
          {"peer", it.peer},
          {"session_id", it.session_id},
          {"connection_id", it.connection_id},
          {"connection_index", it.connection_index},
          {"worker", it.worker},
          {"last_request", it.last_request},
          {"read_only", it.read_only},
          {"unanswered", it.unanswered},
          {"key_id", it.key_id},
          {"silent_ms", it.silent.count()},
          {"connected_ms", it.connected.count()},
          {"requests", it.requests},
          {"hits", it.hits},
          {"misses", it.misses},
          {"reads", it.reads},
          {"get_p50_us", ToUs(it.get_p50)},
          {"get_p99_us", ToUs(it.get_p99)}};
}

void ShowClient(const ConnectedClient& it) {
  std::printf("%s\n",
              absl::StrFormat("%-21s %8d %10.1f %10d %10d %10d %10d %8.1f %8.1f  %s%s", it.peer,
                              it.session_id, static_cast<double>(it.connected.count()) / 1000,
                              it.requests, it.hits, it.misses, it.reads, ToUs(it.get_p50),
                              ToUs(it.get_p99), it.last_request, it.read_only ? " read-only" : "")
                  .c_str());
}

Json SlowJson(const std::string& endpoint, const SlowRequest& it, bool show_keys) {
  Json json = {{"endpoint", endpoint},
               {"answered_ms", it.answered.count()},
               {"took_us", it.took.count()},
               {"request", it.request},
               {"peer", it.peer},
               {"session_id", it.session_id},
               {"key_bytes", it.key_bytes},
               {"value_bytes", it.value_bytes}};
  if (show_keys) AddBytes("key", it.key, false, json);
  return json;
}

// "2026-11-23 04:30:00.123", in this machine's zone.
std::string TimeText(std::chrono::milliseconds since_epoch) {
  const std::time_t seconds = since_epoch.count() / 1000;
  std::tm local{};
  localtime_r(&seconds, &local);
  char text[32];
  std::strftime(text, sizeof(text), "%F %T", &local);
  return absl::StrFormat("%s.%03d", text, since_epoch.count() % 1000);
}

void ShowSlow(const SlowRequest& it, bool show_keys) {
  const bool cut = it.key.size() < it.key_bytes;
  const std::string key =
      show_keys ? Escaped(it.key) + (cut ? "..." : "") : absl::StrFormat("%d B", it.key_bytes);
  std::printf("%s\n",
              absl::StrFormat("%s %10.3f ms  %-8s %8d B  %-21s  key %s", TimeText(it.answered),
                              static_cast<double>(it.took.count()) / 1000, it.request,
                              it.value_bytes, it.peer, key)
                  .c_str());
}

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
  Json json = {{"endpoint", s.endpoint}, {"name", report.name}};
#define GANNET_ADD(name) json[#name] = s.name;
  GANNET_STATISTICS(GANNET_ADD)
#undef GANNET_ADD
  return json;
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

int RunSnapshot(Shell& shell, const Command& command) {
  const auto wait = command.wait.value_or(std::chrono::hours(1));
  const std::vector<ServerInfo> servers = shell.client().Info();
  int code = kExitDone;
  for (uint32_t server = 0; server < servers.size(); ++server) {
    const auto storage = shell.client().Snapshot(server, wait);
    if (!storage.ok()) {
      code = std::max(code, shell.Report(storage.status()));
      continue;
    }
    const ServerStorage::Snapshot& snapshot = *storage->snapshot;
    if (shell.options().json) {
      shell.ShowJson({{"endpoint", storage->endpoint},
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

int RunStats(Shell& shell, const Command&) {
  int code = kExitDone;
  const std::vector<ServerReport> reports = shell.client().Stats();
  for (uint32_t i = 0; i < reports.size(); ++i) {
    const ServerReport& report = reports[i];
    if (!report.stats.ok()) {
      code = std::max(code, shell.Report(report.stats.status()));
      continue;
    }
    Json json = StatsJson(report);
    const auto rails = AwaitRails(shell.client(), i);
    if (shell.options().json) {
      if (HasRails(rails)) json["rails"] = RailsJson(rails);
      shell.ShowJson(json);
    } else {
      std::fputs(AsText(json).c_str(), stdout);
      if (HasRails(rails)) std::fputs(RailsText(rails).c_str(), stdout);
    }
  }
  return code;
}

int RunInfo(Shell& shell, const Command&) {
  int code = kExitDone;
  const std::vector<ServerInfo> servers = shell.client().Info();
  const std::vector<ServerReport> tiers = shell.client().Stats();
  for (uint32_t i = 0; i < servers.size(); ++i) {
    const ServerInfo& server = servers[i];
    Json json = InfoJson(server);
    if (server.connected) {
      // An older server cannot say where it keeps its items.
      if (const auto storage = shell.client().Storage(i); storage.ok()) AddStorage(*storage, json);
      if (tiers[i].stats.ok()) AddTier(*tiers[i].stats, json);
    } else {
      code = kExitError;
      std::fprintf(stderr, "kvcli: not connected: %s\n", server.why_not.c_str());
    }
    if (shell.options().json) {
      shell.ShowJson(json);
    } else {
      std::fputs(AsText(json).c_str(), stdout);
    }
  }
  return code;
}

int RunPing(Shell& shell, const Command&) {
  const int64_t began = MonotonicNs();
  const std::vector<ServerPing> pings = shell.client().PingEach();
  const double us = static_cast<double>(MonotonicNs() - began) / kNsPerUs;
  int code = kExitDone;
  bool answered = false;
  for (const ServerPing& ping : pings) {
    answered |= ping.status.ok();
    if (!ping.status.ok()) code = std::max(code, shell.Report(ping.status));
  }
  if (!answered) return code;
  if (shell.options().json) {
    shell.ShowJson({{"round_trip_us", us}});
  } else {
    Say(absl::StrFormat("pong after %.1f us\n", us));
  }
  return code;
}

int RunClients(Shell& shell, const Command&) {
  const std::vector<ServerInfo> servers = shell.client().Info();
  for (uint32_t server = 0; server < servers.size(); ++server) {
    const auto clients = shell.client().ConnectedClients(server);
    if (!clients.ok()) return shell.Report(clients.status());
    if (!shell.options().json) {
      std::printf("%-21s %8s %10s %10s %10s %10s %10s %8s %8s  %s\n", "client", "session",
                  "seconds", "requests", "hits", "misses", "READs", "p50 us", "p99 us",
                  "last request");
    }
    for (const ConnectedClient& it : *clients) {
      if (shell.options().json) {
        shell.ShowJson(ClientJson(servers[server].endpoint, it));
      } else {
        ShowClient(it);
      }
    }
  }
  return kExitDone;
}

int RunSlowLog(Shell& shell, const Command& command) {
  const std::vector<ServerInfo> servers = shell.client().Info();
  for (uint32_t server = 0; server < servers.size(); ++server) {
    const auto slow = shell.client().SlowRequests(server);
    if (!slow.ok()) return shell.Report(slow.status());
    for (const SlowRequest& it : *slow) {
      if (shell.options().json) {
        shell.ShowJson(SlowJson(servers[server].endpoint, it, command.show_keys));
      } else {
        ShowSlow(it, command.show_keys);
      }
    }
  }
  return kExitDone;
}

}  // namespace gannet::kvcli
