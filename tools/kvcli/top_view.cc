#include "tools/kvcli/top_view.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/kvcli/rail_figures.h"

namespace gannet::kvcli {
namespace {

// A client's address is the server's word. It must not command the terminal.
std::string Printable(std::string_view text) {
  std::string printable(text);
  for (char& c : printable) {
    if (c < ' ' || c > '~') c = '?';
  }
  return printable;
}

std::string Bytes(uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double number = static_cast<double>(bytes);
  size_t unit = 0;
  for (; number >= 1024 && unit + 1 < kUnits.size(); ++unit) number /= 1024;
  return unit == 0 ? absl::StrCat(bytes, " B") : absl::StrFormat("%.4g %s", number, kUnits[unit]);
}

std::string Span(uint64_t ms) {
  const uint64_t s = ms / 1000;
  if (s < 60) return absl::StrCat(s, " s");
  if (s < 3600) return absl::StrCat(s / 60, " min ", s % 60, " s");
  if (s < 86400) return absl::StrCat(s / 3600, " h ", s % 3600 / 60, " min");
  return absl::StrCat(s / 86400, " d ", s % 86400 / 3600, " h");
}

// Returns the share as a percentage, or "-" if there is nothing to take it of.
std::string Percent(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return absl::StrFormat("%.1f", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string PerGet(const Counts& done) {
  if (done.gets() == 0) return "-";
  return absl::StrFormat("%.2f",
                         static_cast<double>(done.reads) / static_cast<double>(done.gets()));
}

std::string Microseconds(std::chrono::nanoseconds time) {
  if (time.count() == 0) return "-";
  return absl::StrFormat("%.1f", static_cast<double>(time.count()) / 1000);
}

// A rate, or "-" as long as there is none.
std::string Rate(const ServerChange& server, uint64_t count) {
  return server.seconds > 0 ? Amount(server.PerSecond(count)) : "-";
}

std::string NameOf(const ServerChange& server) {
  const ServerLook& now = server.now;
  return now.name.empty() || now.name == now.endpoint
             ? now.endpoint
             : absl::StrCat(Printable(now.name), " (", now.endpoint, ")");
}

void AppendHotKeys(const HotKeysLook& look, std::vector<ViewLine>* lines) {
  if (!look.problem.empty() || look.keys.empty()) {
    const std::string why = look.problem.empty() ? "none yet" : Printable(look.problem);
    lines->push_back({absl::StrCat("  hot keys: ", why)});
    return;
  }
  lines->push_back({absl::StrFormat("  %8s %10s  hot key", "uses", "bytes"), true});
  for (const HotKey& it : look.keys) {
    lines->push_back({absl::StrFormat("  %8s %10d  %s%s", UsesText(it), it.info.value_bytes,
                                      Escaped(it.key), LeaseText(it))});
  }
}

// Clients of a group talk to its primary only.
std::string GroupText(const ServerChange& server) {
  if (server.now.history == 0) return "";
  const std::string primary = absl::StrCat(", primary of epoch ", server.now.epoch);
  if (server.fail_overs == 0) return primary;
  return absl::StrFormat("%s after %d fail-over%s", primary, server.fail_overs,
                         server.fail_overs == 1 ? "" : "s");
}

void AppendTier(const ServerChange& server, std::vector<ViewLine>* lines) {
  const ServerStats& stats = server.now.stats;
  const TierCounts& tier = server.tier;
  lines->push_back({absl::StrFormat(
      "  disk %s, %s  items %d  stubs %s of %s (%s %%)", std::string(TierState(stats)),
      Bytes(stats.tier_bytes), stats.items_on_disk, Bytes(stats.tier_stub_bytes),
      Bytes(stats.tier_stub_budget), Percent(stats.tier_stub_bytes, stats.tier_stub_budget))});
  lines->push_back({absl::StrFormat(
      "       hits %s/s  reads %s/s of %s us  written %s/s  evicted %s/s, unwritten %s/s",
      Rate(server, tier.hits), Rate(server, tier.reads),
      tier.reads > 0 ? absl::StrFormat("%.0f", tier.ReadUs()) : "-", Rate(server, tier.written),
      Rate(server, tier.evicted), Rate(server, tier.unwritten))});
}

void AppendRails(const std::vector<RailInfo>& rails, std::vector<ViewLine>* lines) {
  const uint64_t all = ConnectionsOf(rails);
  std::string text = "  rails";
  for (const RailInfo& rail : rails) {
    absl::StrAppendFormat(&text, "  %s %s, %d connections (%s %%)", rail.address,
                          RailStateText(rail), rail.connections, Percent(rail.connections, all));
  }
  lines->push_back({std::move(text)});
}

void AppendServer(const ServerChange& server, std::vector<ViewLine>* lines) {
  if (!server.now.problem.empty()) {
    lines->push_back({absl::StrCat(NameOf(server), "  does not answer; trying again")});
    lines->push_back({absl::StrCat("  ", Printable(server.now.problem))});
    return;
  }
  const ServerStats& stats = server.now.stats;
  const std::string of =
      server.seconds > 0
          ? absl::StrFormat("rates of %s %.1f s", server.restarted ? "its first" : "the last",
                            server.seconds)
          : "measuring";
  lines->push_back(
      {absl::StrCat(NameOf(server), "  up ", Span(stats.uptime_ms),
                    server.restarted ? ", restarted" : "", GroupText(server), "  ", of)});
  lines->push_back({absl::StrFormat(
      "  GETs %s/s  hits %s %%  READs/GET %s  requests %s/s  CPU %s cores",
      Rate(server, server.done.gets()), Percent(server.done.hits, server.done.gets()),
      PerGet(server.done), Rate(server, server.requests),
      server.seconds > 0 ? absl::StrFormat("%.2f", server.cores) : "-")});
  lines->push_back({absl::StrFormat(
      "  memory %s of %s (%s %%)  items %d  evicted %s/s  expired %s/s", Bytes(stats.heap_bytes),
      Bytes(stats.heap_total), Percent(stats.heap_bytes, stats.heap_total), stats.items,
      Rate(server, server.evicted), Rate(server, server.expired))});
  if (HasTier(stats)) AppendTier(server, lines);
  if (HasRails(server.now.rails)) AppendRails(server.now.rails, lines);
  lines->push_back(
      {absl::StrFormat("  sessions %d (%d new, %d gone)  connections %d", stats.sessions,
                       server.arrived, server.went, stats.connections)});
  if (server.now.hot_keys.has_value()) AppendHotKeys(*server.now.hot_keys, lines);
}

ViewLine ClientHeading() {
  return {absl::StrFormat("%-21s %8s %8s %6s %9s %10s %8s %8s  %s", "client", "session", "GETs/s",
                          "hits %", "READs/GET", "requests/s", "p50 us", "p99 us", "last request"),
          true};
}

std::string ClientLine(const ServerChange& server, const ClientChange& client) {
  const ConnectedClient& now = client.now;
  return absl::StrFormat("%-21s %8d %8s %6s %9s %10s %8s %8s  %s%s%s", Printable(now.peer),
                         now.session_id, Rate(server, client.done.gets()),
                         Percent(client.done.hits, client.done.gets()), PerGet(client.done),
                         Rate(server, client.done.requests), Microseconds(now.get_p50),
                         Microseconds(now.get_p99), now.last_request,
                         now.read_only ? " read-only" : "", client.is_new ? " new" : "");
}

struct Row {
  const ServerChange* server;
  const ClientChange* client;

  double PerSecond() const {
    return server->PerSecond(client->done.gets() + client->done.requests);
  }
};

// Returns the clients of all servers, the busiest first.
std::vector<Row> RowsOf(std::span<const ServerChange> servers) {
  std::vector<Row> rows;
  for (const ServerChange& server : servers) {
    for (const ClientChange& client : server.clients) rows.push_back({&server, &client});
  }
  std::ranges::stable_sort(rows, std::ranges::greater{}, &Row::PerSecond);
  return rows;
}

// Appends the table of clients, as far as there is room.
void AppendClients(std::span<const ServerChange> servers, size_t lines_max,
                   std::vector<ViewLine>* lines) {
  const std::vector<Row> rows = RowsOf(servers);
  lines->push_back(ClientHeading());
  const size_t room = lines_max > lines->size() ? lines_max - lines->size() : 0;
  const size_t shown = rows.size() <= room ? rows.size() : room - std::min<size_t>(room, 1);
  for (const Row& row : std::span(rows).first(shown)) {
    std::string line = ClientLine(*row.server, *row.client);
    if (servers.size() > 1) absl::StrAppend(&line, " at ", row.server->now.endpoint);
    lines->push_back({std::move(line)});
  }
  if (shown < rows.size()) lines->push_back({absl::StrCat("  and ", rows.size() - shown, " more")});
  if (rows.empty()) lines->push_back({"  no other clients"});
}

Json RateJson(const ServerChange& server, uint64_t count) {
  return server.seconds > 0 ? Json(server.PerSecond(count)) : Json();
}

Json RatioJson(uint64_t part, uint64_t whole) {
  return whole > 0 ? Json(static_cast<double>(part) / static_cast<double>(whole)) : Json();
}

void AddCounts(const ServerChange& server, const Counts& done, Json& json) {
  json["gets_per_s"] = RateJson(server, done.gets());
  json["hits_per_s"] = RateJson(server, done.hits);
  json["hit_ratio"] = RatioJson(done.hits, done.gets());
  json["reads_per_get"] = RatioJson(done.reads, done.gets());
}

Json ClientJson(const ServerChange& server, const ClientChange& client) {
  const ConnectedClient& now = client.now;
  Json json = {{"peer", Printable(now.peer)},
               {"session_id", now.session_id},
               {"connections", client.connections},
               {"new", client.is_new}};
  AddCounts(server, client.done, json);
  json["requests_per_s"] = RateJson(server, client.done.requests);
  json["get_p50_us"] = static_cast<double>(now.get_p50.count()) / 1000;
  json["get_p99_us"] = static_cast<double>(now.get_p99.count()) / 1000;
  json["last_request"] = now.last_request;
  json["read_only"] = now.read_only;
  json["unanswered"] = now.unanswered;
  json["connected_ms"] = now.connected.count();
  return json;
}

Json TierChangeJson(const ServerChange& server) {
  const TierCounts& tier = server.tier;
  Json json = TierJson(server.now.stats);
  json["hits_per_s"] = RateJson(server, tier.hits);
  json["reads_per_s"] = RateJson(server, tier.reads);
  json["read_us"] = RatioJson(tier.read_us, tier.reads);
  json["written_per_s"] = RateJson(server, tier.written);
  json["evicted_per_s"] = RateJson(server, tier.evicted);
  json["unwritten_per_s"] = RateJson(server, tier.unwritten);
  return json;
}

Json ServerJson(const ServerChange& server) {
  Json json = {{"endpoint", server.now.endpoint}, {"name", server.now.name}};
  if (!server.now.problem.empty()) {
    json["problem"] = server.now.problem;
    return json;
  }
  const ServerStats& stats = server.now.stats;
  json["seconds"] = server.seconds;
  json["restarted"] = server.restarted;
  if (server.now.history != 0) {
    json["role"] = "primary";
    json["epoch"] = server.now.epoch;
    json["fail_overs"] = server.fail_overs;
  }
  json["uptime_ms"] = stats.uptime_ms;
  AddCounts(server, server.done, json);
  json["requests_per_s"] = RateJson(server, server.requests);
  json["cores"] = server.seconds > 0 ? Json(server.cores) : Json();
  json["heap_bytes"] = stats.heap_bytes;
  json["heap_total"] = stats.heap_total;
  json["items"] = stats.items;
  json["evicted_per_s"] = RateJson(server, server.evicted);
  json["expired_per_s"] = RateJson(server, server.expired);
  if (HasTier(stats)) json["tier"] = TierChangeJson(server);
  if (HasRails(server.now.rails)) json["rails"] = RailsJson(server.now.rails);
  json["sessions"] = stats.sessions;
  json["connections"] = stats.connections;
  json["arrived"] = server.arrived;
  json["went"] = server.went;
  if (server.now.hot_keys.has_value()) {
    json["hot_keys"] = Json::array();
    for (const HotKey& it : server.now.hot_keys->keys) json["hot_keys"].push_back(HotKeyJson(it));
    if (!server.now.hot_keys->problem.empty())
      json["hot_keys_problem"] = server.now.hot_keys->problem;
  }
  json["clients"] = Json::array();
  for (const ClientChange& it : server.clients) json["clients"].push_back(ClientJson(server, it));
  return json;
}

}  // namespace

Json HotKeyJson(const HotKey& key) {
  Json json = Json::object();
  AddBytes("key", key.key, false, json);
  json["uses"] = key.uses;
  json["at_least"] = key.at_least;
  json["value_bytes"] = key.info.value_bytes;
  json["block_bytes"] = key.block_bytes;
  if (key.leased) json["leased"] = *key.leased;
  return json;
}

std::string_view LeaseText(const HotKey& key) {
  return key.leased.value_or(false) ? "  leased" : "";
}

std::string UsesText(const HotKey& key) {
  return absl::StrFormat("%.3g%s", key.uses, key.at_least ? "+" : "");
}

std::string Amount(double number) {
  constexpr std::array<const char*, 4> kUnits = {"", "k", "M", "G"};
  size_t unit = 0;
  for (; number >= 999.5 && unit + 1 < kUnits.size(); ++unit) number /= 1000;
  const int digits = number == std::floor(number) && unit == 0 ? 0
                     : number >= 99.95                         ? 0
                     : number >= 9.995                         ? 1
                                                               : 2;
  return absl::StrFormat("%.*f%s", digits, number, kUnits[unit]);
}

std::string CutTo(std::string_view text, size_t columns) {
  size_t at = 0;
  for (size_t shown = 0; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (begins && shown++ == columns) break;
  }
  return std::string(text.substr(0, at));
}

std::vector<ViewLine> TopView(std::span<const ServerChange> servers, ViewSize size) {
  std::vector<ViewLine> lines;
  for (const ServerChange& server : servers) AppendServer(server, &lines);
  const bool any = std::ranges::any_of(
      servers, [](const ServerChange& server) { return server.now.problem.empty(); });
  if (any) {
    lines.push_back({});
    AppendClients(servers, size.lines, &lines);
  }
  if (lines.size() > size.lines) lines.resize(size.lines);
  for (ViewLine& line : lines) line.text = CutTo(line.text, size.columns);
  return lines;
}

Json TopJson(std::span<const ServerChange> servers) {
  Json json = {{"servers", Json::array()}};
  for (const ServerChange& server : servers) json["servers"].push_back(ServerJson(server));
  return json;
}

}  // namespace gannet::kvcli
