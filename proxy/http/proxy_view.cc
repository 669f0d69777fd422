#include "proxy/http/proxy_view.h"

#include <algorithm>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "common/http/metric_families.h"
#include "proxy/jobs/memory_limit.h"

namespace gannet::proxy {
namespace {

using prometheus::MetricType;

double CpuSeconds() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

void AddProcess(const ProxyView& it, MetricFamilies* to) {
  to->Begin(MetricType::Gauge, "gannet_proxy_info", "The proxy.");
  to->Add({{"version", it.version}}, 1);
  to->Gauge("gannet_proxy_uptime_seconds", "Time since the proxy started.",
            std::time(nullptr) - it.service->started);
  to->Counter("gannet_proxy_cpu_seconds_total", "CPU time of the process, user and system.",
              CpuSeconds());
  to->Gauge("gannet_proxy_threads", "Threads that serve connections.", it.loops.size());
}

void AddConnections(const Service& service, MetricFamilies* to) {
  to->Gauge("gannet_proxy_connections", "Connections of applications.",
            service.Sum(&Counters::connections));
  to->Gauge("gannet_proxy_connections_max", "Connections that there may be.",
            service.connections_max);
  to->Counter("gannet_proxy_connections_made_total", "Connections that were accepted.",
              service.Sum(&Counters::connections_made));
  to->Gauge("gannet_proxy_buffer_bytes",
            "Bytes of --buffers in use. A thread takes up to half a MiB ahead.",
            service.memory->taken());
  to->Gauge("gannet_proxy_buffer_max_bytes", "Bytes that they may hold: --buffers.",
            service.memory->max());
}

void AddCommands(const Service& service, MetricFamilies* to) {
  to->Begin(MetricType::Counter, "gannet_proxy_commands_total", "Commands, by protocol.");
  to->Add({{"protocol", "redis"}}, service.Sum(&Counters::redis_commands));
  to->Add({{"protocol", "memcached"}}, service.Sum(&Counters::memcached_commands));
  to->Add({{"protocol", "memcached_binary"}}, service.Sum(&Counters::binary_commands));
  const uint64_t gets = service.Sum(&Counters::gets);
  const uint64_t hits = service.Sum(&Counters::hits);
  to->Begin(MetricType::Counter, "gannet_proxy_gets_total", "Keys whose values were asked for.");
  to->Add({{"result", "hit"}}, hits);
  to->Add({{"result", "miss"}}, gets - std::min(gets, hits));
  to->Counter("gannet_proxy_sets_total", "Keys that commands set.", service.Sum(&Counters::sets));
  to->Counter("gannet_proxy_error_replies_total", "Replies that are errors.",
              service.Sum(&Counters::error_replies));
}

void AddStore(const ProxyView& it, MetricFamilies* to) {
  const Service& service = *it.service;
  to->Begin(MetricType::Counter, "gannet_proxy_store_errors_total",
            "Operations that the servers did not do, by reason.");
  to->Add({{"reason", "unreachable"}}, service.Sum(&Counters::store_unreachable));
  to->Add({{"reason", "late"}}, service.Sum(&Counters::store_late));
  to->Add({{"reason", "lost"}}, service.Sum(&Counters::store_lost));
  to->Add({{"reason", "full"}}, service.Sum(&Counters::store_full));
  to->Add({{"reason", "denied"}}, service.Sum(&Counters::store_denied));
  uint64_t in_flight = 0;
  uint64_t queued = 0;
  uint64_t for_memory = 0;
  for (const LoopStatus* loop : it.loops) {
    in_flight += loop->in_flight.Get();
    queued += loop->queued.Get();
    for_memory += loop->for_memory.Get();
  }
  to->Begin(MetricType::Gauge, "gannet_proxy_operations",
            "Operations that wait: for a server, for a place, or for memory of --buffers.");
  to->Add({{"waits_for", "server"}}, in_flight);
  to->Add({{"waits_for", "place"}}, queued);
  to->Add({{"waits_for", "memory"}}, for_memory);
}

// Every thread has the same servers, and a connection of its own to each.
void AddServers(const ProxyView& it, MetricFamilies* to) {
  const std::vector<std::string>& servers = it.service->servers;
  std::vector<bool> is_up(servers.size(), true);
  for (const LoopStatus* loop : it.loops) {
    const std::vector<ServerInfo> seen = loop->servers();
    for (size_t i = 0; i < servers.size(); ++i) {
      is_up[i] = is_up[i] && i < seen.size() && seen[i].connected;
    }
  }
  to->Begin(MetricType::Gauge, "gannet_proxy_server_up",
            "1 if all threads are connected to the server, 0 if one has lost it.");
  for (size_t i = 0; i < servers.size(); ++i) to->Add({{"server", servers[i]}}, is_up[i] ? 1 : 0);
}

}  // namespace

std::string ProxyView::Metrics() const {
  MetricFamilies families;
  AddProcess(*this, &families);
  AddConnections(*service, &families);
  AddCommands(*service, &families);
  AddStore(*this, &families);
  AddServers(*this, &families);
  return families.Text();
}

std::string ProxyView::WhatHangs(int64_t now_ms) const {
  for (size_t i = 0; i < loops.size(); ++i) {
    const int64_t silent_ms = now_ms - static_cast<int64_t>(loops[i]->round_ms.Get());
    if (silent_ms <= kHangsMs) continue;
    return absl::StrCat("thread ", i + 1, " of ", loops.size(), " has hung for ", silent_ms / 1000,
                        " s");
  }
  return "";
}

std::string ProxyView::WhyNotReady() const {
  for (const LoopStatus* loop : loops) {
    std::string why;
    bool any = false;
    for (const ServerInfo& server : loop->servers()) {
      any = any || server.connected;
      absl::StrAppend(&why, why.empty() ? "" : "; ", server.endpoint, ": ", server.why_not);
    }
    if (!any) return absl::StrCat("no server can be reached: ", why);
  }
  return "";
}

}  // namespace gannet::proxy
