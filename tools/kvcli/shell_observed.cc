// Shell: what a server tells of its clients and its slow requests.

#include <ctime>

#include "absl/strings/str_format.h"
#include "tools/kvcli/shell.h"

namespace gannet::kvcli {
namespace {

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

}  // namespace

int Shell::Clients(const Command&) {
  const std::vector<ServerInfo> servers = client_.Info();
  for (uint32_t server = 0; server < servers.size(); ++server) {
    const auto clients = client_.ConnectedClients(server);
    if (!clients.ok()) return Report(clients.status());
    if (!options_.json) {
      std::printf("%-21s %8s %10s %10s %10s %10s %10s %8s %8s  %s\n", "client", "session",
                  "seconds", "requests", "hits", "misses", "READs", "p50 us", "p99 us",
                  "last request");
    }
    for (const ConnectedClient& it : *clients) {
      if (options_.json) {
        ShowJson(ClientJson(servers[server].endpoint, it));
      } else {
        ShowClient(it);
      }
    }
  }
  return kExitDone;
}

int Shell::SlowLog(const Command& command) {
  const std::vector<ServerInfo> servers = client_.Info();
  for (uint32_t server = 0; server < servers.size(); ++server) {
    const auto slow = client_.SlowRequests(server);
    if (!slow.ok()) return Report(slow.status());
    for (const SlowRequest& it : *slow) {
      if (options_.json) {
        ShowJson(SlowJson(servers[server].endpoint, it, command.show_keys));
      } else {
        ShowSlow(it, command.show_keys);
      }
    }
  }
  return kExitDone;
}

}  // namespace gannet::kvcli
