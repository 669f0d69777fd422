// The view in Prometheus' text format.

#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/http/metric_families.h"
#include "common/protocol/opcode.h"
#include "server/main/http/group_metrics.h"
#include "server/main/http/server_view.h"

namespace gannet {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

constexpr double kNsPerSecondAsDouble = 1e9;

// Prometheus' buckets are the doublings. The clients' buckets are four times as many.
ClientMetric Histogram(const ServerView::LatencyCounts& counts, const char* kind) {
  ClientMetric metric;
  metric.label = {{"kind", kind}};
  for (size_t bucket = 0; bucket < counts.size(); ++bucket) {
    const double end_seconds =
        static_cast<double>(LatencyBucket::EndNs(bucket)) / kNsPerSecondAsDouble;
    metric.histogram.sample_count += counts[bucket];
    metric.histogram.sample_sum += static_cast<double>(counts[bucket]) * end_seconds;
    if (bucket % 4 == 0) {
      metric.histogram.bucket.push_back({metric.histogram.sample_count, end_seconds});
    }
  }
  return metric;
}

void AddServer(const ServerView& it, MetricFamilies* to) {
  to->Begin(MetricType::Gauge, "gannet_info", "The server and its RDMA device.");
  MetricFamilies::Labels labels = {{"version", it.version},
                                   {"name", it.name},
                                   {"address", it.address},
                                   {"device", it.device},
                                   {"kind", it.kind}};
  for (auto& label : GroupLabels(it)) labels.push_back(std::move(label));
  to->Add(std::move(labels), 1);
  to->Gauge("gannet_uptime_seconds", "Time since the server started.",
            static_cast<double>(it.stats.uptime_ms) / 1e3);
  to->Counter("gannet_cpu_seconds_total", "CPU time of the process, user and system.",
              static_cast<double>(it.stats.cpu_us) / 1e6);
  to->Gauge("gannet_workers", "Threads that serve requests.", it.workers);
}

void AddRequests(const ServerView& it, MetricFamilies* to) {
  to->Begin(MetricType::Counter, "gannet_requests_total",
            "Requests served, without heartbeats. One-sided GETs are not among them.");
  for (size_t opcode = 1; opcode < it.requests.size(); ++opcode) {
    const char* name = OpcodeName(static_cast<uint8_t>(opcode));
    if (std::string_view(name) != "other") {
      to->Add({{"opcode", name}}, it.requests[opcode]);
    }
  }
  to->Counter("gannet_heartbeats_total", "Heartbeats of clients.", it.stats.heartbeats);
  to->Counter("gannet_slow_requests_total", "Requests that took longer than --slowlog_us.",
              it.slow_requests);
  to->Begin(MetricType::Counter, "gannet_refused_writes_total", "Writes that found no room.");
  to->Add({{"reason", "heap_full"}}, it.stats.refused_heap_full);
  to->Add({{"reason", "index_full"}}, it.stats.refused_index_full);
  to->Counter("gannet_refused_requests_total", "Requests that were malformed or against the rules.",
              it.stats.refused_requests);
  to->Counter("gannet_refused_connections_total", "Connection requests that were refused.",
              it.stats.refused_connections);
  to->Begin(MetricType::Counter, "gannet_device_work_total",
            "Doorbells and completions of the server's device.");
  to->Add({{"what", "reply_post"}}, it.stats.reply_posts);
  to->Add({{"what", "receive_post"}}, it.stats.receive_posts);
  to->Add({{"what", "send_completion"}}, it.stats.send_completions);
}

void AddClients(const ServerView& it, MetricFamilies* to) {
  to->Begin(MetricType::Counter, "gannet_client_gets_total",
            "GETs, as clients report them with their heartbeats.");
  to->Add({{"result", "hit"}}, it.clients.hits);
  to->Add({{"result", "miss"}}, it.clients.misses);
  to->Counter("gannet_client_gets_by_rpc_total",
              "Of these, GETs for which a client had to ask the server.", it.clients.by_rpc);
  to->Counter("gannet_client_reads_total", "One-sided READs, as clients report them.",
              it.clients.reads);
  to->Begin(MetricType::Histogram, "gannet_client_latency_seconds",
            "Latency as clients saw it, of a sample of their operations. The sum is estimated.");
  for (size_t kind = 0; kind < kLatencyKinds; ++kind) {
    to->Add(Histogram(it.latencies[kind], LatencyKindName(kind)));
  }
  to->Gauge("gannet_sessions", "Sessions, connected or gone for less than the grace period.",
            it.stats.sessions);
  to->Gauge("gannet_connections", "Connections of all sessions.", it.stats.connections);
  to->Gauge("gannet_session_bytes", "Memory for sessions, without the device's.",
            it.stats.session_bytes);
}

void AddMemory(const ServerView& it, MetricFamilies* to) {
  to->Gauge("gannet_items", "Items stored.", static_cast<double>(it.stats.items));
  to->Gauge("gannet_items_expiring", "Items stored that have a time to live.",
            static_cast<double>(it.stats.items_expiring));
  to->Gauge("gannet_items_leased", "Items of which clients may answer from copies.",
            static_cast<double>(it.stats.items_leased));
  to->Counter("gannet_lease_waits_total", "Writes that waited for the end of an item's lease.",
              it.stats.lease_waits);
  to->Counter("gannet_lease_waited_seconds_total", "What these waited, all together.",
              static_cast<double>(it.stats.lease_waited_ms) / 1e3);
  to->Gauge("gannet_items_on_disk", "Items whose values are in the tier.",
            static_cast<double>(it.stats.items_on_disk));
  to->Gauge("gannet_tier_disk", "The tier: 0 none, 1 works, 2 slow, 3 full, 4 failed.",
            static_cast<double>(it.stats.tier_disk));
  to->Gauge("gannet_tier_bytes", "Bytes of the tier.", static_cast<double>(it.stats.tier_bytes));
  to->Counter("gannet_tier_written_total", "Values written to the tier.", it.stats.tier_written);
  to->Counter("gannet_tier_evicted_total", "Values that went from the tier, for want of room.",
              it.stats.tier_evicted);
  to->Counter("gannet_tier_reads_total", "Reads of the tier.", it.stats.tier_reads);
  to->Counter("gannet_tier_reads_joined_total", "GETs that shared the read of another one.",
              it.stats.tier_reads_joined);
  to->Counter("gannet_tier_reads_failed_total", "Of the reads: those that found nothing.",
              it.stats.tier_reads_failed);
  to->Counter("gannet_tier_read_seconds_total", "What the reads took, all together.",
              static_cast<double>(it.stats.tier_read_us) / 1e6);
  to->Gauge("gannet_tier_page_cache", "1: the tier goes through the system's page cache.",
            static_cast<double>(it.stats.tier_page_cache));
  to->Gauge("gannet_tier_stub_bytes", "Bytes of memory for items on disk.",
            static_cast<double>(it.stats.tier_stub_bytes));
  to->Gauge("gannet_tier_stub_budget_bytes", "Bytes of memory that items on disk may take.",
            static_cast<double>(it.stats.tier_stub_budget));
  to->Counter("gannet_tier_promoted_total", "Values that came back into memory, as they are read.",
              it.stats.tier_promoted);
  to->Gauge("gannet_heap_bytes", "Bytes in blocks of items.",
            static_cast<double>(it.stats.heap_bytes));
  to->Gauge("gannet_heap_capacity_bytes", "Bytes that blocks of items may take.",
            static_cast<double>(it.stats.heap_total));
  to->Begin(MetricType::Gauge, "gannet_heap_class_bytes",
            "Bytes in blocks of items, by size class.");
  for (uint32_t size_class = 1; size_class < it.blocks.size(); ++size_class) {
    if (it.blocks[size_class].blocks == 0) continue;
    to->Add({{"block_bytes", absl::StrCat(SizeClassBytes(size_class))}},
            static_cast<double>(it.blocks[size_class].bytes));
  }
  to->Gauge("gannet_index_slots", "Items that the index has room for.",
            static_cast<double>(it.stats.slots_total));
  to->Gauge("gannet_index_slots_used", "Slots of the index in use.", it.stats.slots_used);
  to->Gauge("gannet_index_stash_used", "Items that did not fit into their window.",
            it.stats.stash_used);
  to->Counter("gannet_index_displacements_total",
              "Moves of items within the index that made room for another one.",
              it.stats.displacements);
  to->Counter("gannet_index_growths_total", "How often a larger index replaced the index.",
              it.stats.index_growths);
  to->Begin(MetricType::Counter, "gannet_items_removed_total", "Items that left, by reason.");
  to->Add({{"reason", "deleted"}}, it.stats.items_deleted);
  to->Add({{"reason", "expired"}}, it.stats.items_expired);
  to->Add({{"reason", "evicted"}}, it.stats.items_evicted);
  to->Counter("gannet_evicted_by_writes_total", "Of the evicted: by writes that found no room.",
              it.stats.evicted_by_writes);
  to->Gauge("gannet_eviction_watermark_bytes", "Bytes of the heap that are kept free.",
            it.stats.eviction_watermark);
  to->Gauge("gannet_evicted_age_seconds", "How long ago the items evicted of late were written.",
            static_cast<double>(it.stats.evicted_age_ms) / 1e3);
  to->Counter("gannet_items_moved_total", "Items moved so that free memory comes together.",
              it.stats.items_moved);
}

void AddDisk(const ServerView& it, MetricFamilies* to) {
  to->Gauge("gannet_disk_bytes", "Bytes of the journal and the snapshots; 0 without --data.",
            it.stats.disk_bytes);
  to->Gauge("gannet_disk_behind_bytes", "Bytes of the journal that a power cut would take.",
            it.stats.disk_behind_bytes);
  to->Gauge("gannet_disk_behind_seconds", "Age of the oldest of those.",
            static_cast<double>(it.stats.disk_behind_ms) / 1e3);
  to->Counter("gannet_disk_refused_writes_total", "Writes that the disk did not take.",
              it.stats.disk_refused);
  to->Counter("gannet_disk_snapshots_total", "Snapshots written.", it.stats.disk_snapshots);
}

void AddLocks(const ServerView& it, MetricFamilies* to) {
  to->Gauge("gannet_locks_held", "Locks that are held.", it.locks_held);
  to->Gauge("gannet_lock_held_max_seconds",
            "How long the longest of them is held, at least: since somebody first looked.",
            static_cast<double>(it.longest_lock_ms) / 1e3);
  to->Begin(MetricType::Counter, "gannet_locks_broken_total", "Locks that the server broke.");
  to->Add({{"reason", "holder_gone_or_forced"}}, it.stats.locks_broken);
  to->Add({{"reason", "lease_over"}}, it.stats.locks_expired);
}

// Of a server with several rails.
void AddRails(const ServerView& it, MetricFamilies* to) {
  to->Begin(MetricType::Gauge, "gannet_rail_up", "1 while the rail's port is up.");
  for (const ServerView::Rail& rail : it.rails)
    to->Add({{"rail", rail.address}, {"device", rail.device}}, rail.up ? 1 : 0);
  to->Begin(MetricType::Gauge, "gannet_rail_bytes_per_second", "What the rail's link carries.");
  for (const ServerView::Rail& rail : it.rails)
    to->Add({{"rail", rail.address}}, rail.mbit_per_second * 1e6 / 8);
  to->Begin(MetricType::Gauge, "gannet_rail_connections", "Connections of the rail.");
  for (const ServerView::Rail& rail : it.rails)
    to->Add({{"rail", rail.address}}, static_cast<double>(rail.connections));
  to->Begin(MetricType::Counter, "gannet_rail_requests_total",
            "Requests that came by the rail, without heartbeats.");
  for (const ServerView::Rail& rail : it.rails)
    to->Add({{"rail", rail.address}}, static_cast<double>(rail.requests));
  to->Begin(MetricType::Counter, "gannet_rail_path_migrations_total",
            "Connections that took their alternate path, by this rail.");
  for (const ServerView::Rail& rail : it.rails)
    to->Add({{"rail", rail.address}}, static_cast<double>(rail.moved));
  to->Begin(MetricType::Counter, "gannet_rail_path_migration_errors_total",
            "Connections by this rail that could not take their alternate path.");
  for (const ServerView::Rail& rail : it.rails)
    to->Add({{"rail", rail.address}}, static_cast<double>(rail.not_moved));
  to->Counter("gannet_lock_rail_changes_total",
              "How often another rail began to serve locks, and all were lost.",
              it.lock_rail_changes);
}

}  // namespace

std::string RenderMetrics(const ServerView& view) {
  MetricFamilies families;
  AddServer(view, &families);
  AddRequests(view, &families);
  AddClients(view, &families);
  AddMemory(view, &families);
  AddDisk(view, &families);
  AddLocks(view, &families);
  if (!view.rails.empty()) AddRails(view, &families);
  if (view.group) AddGroup(view, &families);
  return families.Text();
}

}  // namespace gannet
