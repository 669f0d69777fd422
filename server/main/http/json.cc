// The view as JSON, for the page.

#include "nlohmann/json.hpp"

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "common/protocol/opcode.h"
#include "server/main/http/server_view.h"

namespace gannet {
namespace {

using Json = nlohmann::ordered_json;

template <size_t n>
std::string Text(const char (&padded)[n]) {
  return {padded, strnlen(padded, n)};
}

Json ServerJson(const ServerView& it) {
  return {{"version", it.version},    {"name", it.name},       {"address", it.address},
          {"device", it.device},      {"kind", it.kind},       {"workers", it.workers},
          {"evicts", it.evicts},      {"wall_ms", it.time_ms}, {"uptime_ms", it.stats.uptime_ms},
          {"cpu_us", it.stats.cpu_us}};
}

Json ClientsJson(const ServerView& it) {
  Json latency = Json::object();
  for (size_t kind = 0; kind < kLatencyKinds; ++kind) {
    const auto& counts = it.latencies[kind];
    latency[LatencyKindName(kind)] = counts;
  }
  Json ends = Json::array();
  for (size_t bucket = 0; bucket < LatencyBucket::kCount; ++bucket) {
    ends.push_back(LatencyBucket::EndNs(bucket));
  }
  return {{"hits", it.clients.hits},   {"misses", it.clients.misses},
          {"reads", it.clients.reads}, {"gets_by_rpc", it.clients.by_rpc},
          {"latency_end_ns", ends},    {"latency", latency}};
}

Json RequestsJson(const ServerView& it) {
  Json requests = Json::object();
  for (size_t opcode = 1; opcode < it.requests.size(); ++opcode) {
    const char* name = OpcodeName(static_cast<uint8_t>(opcode));
    if (std::string_view(name) != "other") requests[name] = it.requests[opcode];
  }
  return requests;
}

Json StoreJson(const ServerView& it) {
  Json classes = Json::array();
  for (uint32_t size_class = 1; size_class < it.blocks.size(); ++size_class) {
    const ServerView::ClassUse& use = it.blocks[size_class];
    if (use.blocks == 0) continue;
    classes.push_back({{"block_bytes", SizeClassBytes(size_class)},
                       {"blocks", use.blocks},
                       {"bytes", use.bytes}});
  }
  const StatsReply& stats = it.stats;
  return {{"items", stats.items},
          {"items_expiring", stats.items_expiring},
          {"items_leased", stats.items_leased},
          {"lease_waits", stats.lease_waits},
          {"lease_waited_ms", stats.lease_waited_ms},
          {"items_on_disk", stats.items_on_disk},
          {"tier_disk", stats.tier_disk},
          {"tier_bytes", stats.tier_bytes},
          {"tier_written", stats.tier_written},
          {"tier_evicted", stats.tier_evicted},
          {"tier_reads", stats.tier_reads},
          {"tier_reads_joined", stats.tier_reads_joined},
          {"tier_reads_failed", stats.tier_reads_failed},
          {"tier_read_us", stats.tier_read_us},
          {"tier_page_cache", stats.tier_page_cache},
          {"tier_stub_bytes", stats.tier_stub_bytes},
          {"tier_stub_budget", stats.tier_stub_budget},
          {"tier_promoted", stats.tier_promoted},
          {"heap_bytes", stats.heap_bytes},
          {"heap_total", stats.heap_total},
          {"slots_used", stats.slots_used},
          {"slots_total", stats.slots_total},
          {"stash_used", stats.stash_used},
          {"index_growths", stats.index_growths},
          {"items_deleted", stats.items_deleted},
          {"items_expired", stats.items_expired},
          {"items_evicted", stats.items_evicted},
          {"evicted_age_ms", stats.evicted_age_ms},
          {"refused_heap_full", stats.refused_heap_full},
          {"refused_index_full", stats.refused_index_full},
          {"disk_sync", stats.disk_sync},
          {"disk_bytes", stats.disk_bytes},
          {"disk_behind_bytes", stats.disk_behind_bytes},
          {"disk_behind_ms", stats.disk_behind_ms},
          {"disk_refused", stats.disk_refused},
          {"classes", classes}};
}

Json ConnectionsJson(const ServerView& it) {
  Json all = Json::array();
  for (const ClientEntry& entry : it.connections) {
    all.push_back({{"peer", Text(entry.peer)},
                   {"session", entry.session_id},
                   {"connection", entry.connection_id},
                   {"queue_pair", entry.qp_index},
                   {"worker", entry.worker},
                   {"read_only", entry.read_only != 0},
                   {"key_id", entry.key_id},
                   {"last_request", OpcodeName(entry.last_opcode)},
                   {"unanswered", entry.unanswered},
                   {"silent_ms", entry.silent_ms},
                   {"connected_ms", entry.connected_ms},
                   {"requests", entry.requests},
                   {"hits", entry.hits},
                   {"misses", entry.misses},
                   {"reads", entry.reads},
                   {"get_p50_ns", entry.get_p50_ns},
                   {"get_p99_ns", entry.get_p99_ns}});
  }
  return all;
}

Json RailsJson(const ServerView& it) {
  Json all = Json::array();
  for (const ServerView::Rail& rail : it.rails) {
    all.push_back({{"address", rail.address},
                   {"device", rail.device},
                   {"up", rail.up},
                   {"mbit_per_second", rail.mbit_per_second},
                   {"mtu_bytes", rail.mtu_bytes},
                   {"connections", rail.connections},
                   {"moved", rail.moved},
                   {"not_moved", rail.not_moved},
                   {"requests", rail.requests}});
  }
  return all;
}

Json LocksJson(const ServerView& it) {
  Json all = Json::array();
  for (const SeenLock& lock : it.locks) {
    all.push_back({{"index", lock.entry.index},
                   {"session", lock.entry.session_id},
                   {"peer", Text(lock.entry.peer)},
                   {"lease_ms", lock.entry.lease_ms},
                   {"held_ms", lock.held_ms}});
  }
  return {{"held", it.locks_held},
          {"longest_ms", it.longest_lock_ms},
          {"broken", it.stats.locks_broken},
          {"expired", it.stats.locks_expired},
          {"list", all}};
}

Json SlowJson(const ServerView& it, bool show_keys) {
  Json all = Json::array();
  for (const SlowEntry& entry : it.slow) {
    Json json = {{"wall_ms", entry.time_ms},
                 {"us", entry.us},
                 {"request", OpcodeName(entry.opcode)},
                 {"key_bytes", entry.key_bytes},
                 {"value_bytes", entry.value_bytes},
                 {"peer", Text(entry.peer)}};
    if (show_keys) json["key"] = Text(entry.key);
    all.push_back(std::move(json));
  }
  return {{"count", it.slow_requests}, {"list", all}};
}

Json GroupJson(const ServerView& view) {
  const Member::Seen& it = *view.group;
  Json backups = Json::array();
  const Primary::Seen& primary = it.as_primary;
  const MoveProgress moves = it.moves.value_or(MoveProgress());
  const bool leads = it.role == Member::Role::kPrimary;
  for (const auto& backup : leads ? AllBackups(it) : std::vector<Primary::Seen::Backup>()) {
    backups.push_back({{"node", backup.node},
                       {"linked", backup.linked},
                       {"rail", backup.rail},
                       {"in_sync", backup.in_sync},
                       {"heard", backup.heard},
                       {"lag_bytes", backup.behind_bytes}});
  }
  return {{"cluster", view.cluster},
          {"group", view.group_name},
          {"node", it.node},
          {"role", NameOf(it.role)},
          {"joined_percent", it.joined_percent},
          {"epoch", it.epoch},
          {"primary", it.primary},
          {"applied", it.applied},
          {"end", primary.end},
          {"committed", primary.committed},
          {"lease_ms", primary.lease_left_ns / kNsPerMs},
          {"waiting_bytes", primary.waiting_bytes},
          {"links_broken", primary.links_broken},
          {"removed", primary.removed},
          {"stream_version", primary.stream_version},
          {"backups", backups},
          {"moves",
           {{"step", moves.step},
            {"giver", moves.giver},
            {"partitions", moves.partitions},
            {"wanted", moves.wanted},
            {"items", moves.items},
            {"bytes", moves.bytes},
            {"walked", moves.walked},
            {"moved", moves.moved},
            {"trouble", moves.trouble}}}};
}

}  // namespace

std::string RenderJson(const ServerView& view, bool show_keys) {
  Json json = {{"server", ServerJson(view)},      {"clients", ClientsJson(view)},
               {"requests", RequestsJson(view)},  {"store", StoreJson(view)},
               {"sessions", view.stats.sessions}, {"connections", ConnectionsJson(view)},
               {"locks", LocksJson(view)},        {"slow", SlowJson(view, show_keys)}};
  if (!view.rails.empty()) json["rails"] = RailsJson(view);
  if (view.group) json["group"] = GroupJson(view);
  // Keys are bytes; those that are no UTF-8 are shown with replacements.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gannet
