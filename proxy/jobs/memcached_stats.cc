#include <unistd.h>

#include <ctime>

#include "absl/strings/str_cat.h"
#include "common/layout/item.h"
#include "proxy/jobs/memcached_commands.h"

namespace gannet::proxy::memcached {
namespace {

template <class Value>
void Line(Job& job, const char* name, const Value& value) {
  job.reply += absl::StrCat("STAT ", name, " ", value, "\r\n");
}

void OfProxy(Job& job) {
  const Service& service = *job.service;
  const std::time_t now = std::time(nullptr);
  Line(job, "pid", getpid());
  Line(job, "uptime", now - service.started);
  Line(job, "time", now);
  Line(job, "version", service.version);
  Line(job, "pointer_size", 8 * sizeof(void*));
  Line(job, "max_connections", service.connections_max);
  Line(job, "curr_connections", service.Sum(&Counters::connections));
  Line(job, "total_connections", service.Sum(&Counters::connections_made));
  const uint64_t gets = service.Sum(&Counters::gets);
  const uint64_t hits = service.Sum(&Counters::hits);
  Line(job, "cmd_get", gets);
  Line(job, "cmd_set", service.Sum(&Counters::sets));
  Line(job, "get_hits", hits);
  Line(job, "get_misses", gets - std::min(gets, hits));
  Line(job, "cas_hits", service.Sum(&Counters::cas_hits));
  Line(job, "cas_misses", service.Sum(&Counters::cas_misses));
  Line(job, "cas_badval", service.Sum(&Counters::cas_badval));
  Line(job, "gannet_buffer_bytes", service.memory->taken());
  Line(job, "gannet_buffer_bytes_max", service.memory->max());
  Line(job, "threads", service.threads.size());
}

// Sums of all servers. Servers that do not answer are left out, and counted.
void OfServers(Job& job) {
  ServerStats sum;
  uint64_t unreachable = 0;
  for (const Operation& asked : job.answers()) {
    if (asked.code != absl::StatusCode::kOk) {
      ++unreachable;
      continue;
    }
    sum.items += asked.stats.items;
    sum.heap_bytes += asked.stats.heap_bytes;
    sum.heap_total += asked.stats.heap_total;
    sum.items_evicted += asked.stats.items_evicted;
    sum.rpcs += asked.stats.rpcs;
    sum.cpu_us += asked.stats.cpu_us;
  }
  Line(job, "curr_items", sum.items);
  Line(job, "bytes", sum.heap_bytes);
  Line(job, "limit_maxbytes", sum.heap_total);
  Line(job, "evictions", sum.items_evicted);
  Line(job, "gannet_servers", job.service->servers.size());
  Line(job, "gannet_servers_unreachable", unreachable);
  Line(job, "gannet_rpcs", sum.rpcs);
  Line(job, "gannet_server_cpu_us", sum.cpu_us);
}

void Told(Job& job) {
  OfProxy(job);
  OfServers(job);
  job.reply += "END\r\n";
  if (job.scratch.is_binary) binary::MakeStatsFrames(job);
}

void Ask(Job& job) {
  job.BeginOnEach(Operation::Kind::kStats);
  job.Then(Told);
}

// As far as memcached's settings mean something here.
void Settings(Job& job) {
  const Service& service = *job.service;
  Line(job, "maxbytes", 0);
  Line(job, "maxconns", service.connections_max);
  Line(job, "verbosity", 0);
  Line(job, "num_threads", service.threads.size());
  Line(job, "cas_enabled", "yes");
  Line(job, "auth_enabled_sasl", "no");
  Line(job, "auth_enabled_ascii", "no");
  Line(job, "item_size_max", kValueBytesMax);
  Line(job, "flush_enabled", "yes");
  Line(job, "lru_crawler", "no");
  Line(job, "lru_segmented", "no");
}

// There are no slabs, and so no items of them.
void Slabs(Job& job) {
  Line(job, "active_slabs", 0);
  Line(job, "total_malloced", 0);
}

}  // namespace

void PrepareStats(Job& job) {
  const std::string_view what = job.scratch.is_binary    ? job.words()[2]
                                : job.words().size() > 1 ? job.words()[1]
                                                         : std::string_view();
  if (what.empty()) return job.Then(Ask);
  if (what == "settings") Settings(job);
  if (what == "slabs") Slabs(job);
  job.reply += what == "reset" ? "RESET\r\n" : "END\r\n";
  if (job.scratch.is_binary) binary::MakeStatsFrames(job);
}

}  // namespace gannet::proxy::memcached
