#include "tests/simulation/scenario.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/protocol/limits.h"

namespace gannet::simulation {
namespace {

// Long stalls, a little shorter than the silence after which a peer is dead. A stalled client may
// have sent its last heartbeat long before.
constexpr int64_t kLongStallNs[] = {1'000 * kNsPerMs, 1'280 * kNsPerMs};
constexpr uint32_t kCrowdMax = 40;
// One of so many seeds has a server that leases items: those with this remainder. Seeds 173 and 198
// have none, as they alone show two mutants soon.
constexpr uint64_t kLeasesOf = 3, kLeasesAt = 1;

// Faults that only change the timing and make nothing fail.
constexpr const char* kHarmless[] = {
    "tear_read=0.2:20us",
    "delay_completion=0.1:200us",
    "delay_post=0.1:100us",
    "stall_peer=0.02:1ms",
    "rnr=0.02",
    "slow_connect=0.3:100ms",
    "refuse_connect=0.2",
};
// No fault of atomics: the server's own queue pair, which breaks locks, would fail too.
constexpr const char* kBreaking[] = {
    "error=send:0.02",
    "error=read:0.02",
    "error=write:0.1",
    "lost_ack=send:0.02",
    "lost_ack=read:0.02",
    "lost_ack=write:0.1",
    "error=any:0,lost_ack=send:0.1",
};

template <class T, size_t N>
T Choose(Run* run, const T (&choices)[N]) {
  return choices[run->Below(N)];
}

// Links of a run with rails. Some go down for longer than a queue pair tries, and than a silent
// peer is taken for alive.
void AddLinks(Run* run, Scenario* scenario) {
  for (uint64_t count = 1 + run->Below(5); count > 0; --count) {
    Event& event = scenario->events.emplace_back();
    event.type = Event::Type::kLinkDown;
    event.at_ns = static_cast<int64_t>(run->Below(static_cast<uint64_t>(scenario->active_ns)));
    event.duration_ns = run->LogUniform(1 * kNsPerMs, 3 * kNsPerSecond);
    scenario->active_ns = std::max(scenario->active_ns, event.at_ns + event.duration_ns);
  }
}

// Draws nothing, so that other seeds are as they were before there were leases.
void LeaseItems(uint64_t seed, Server::Options* server) {
  if (seed % kLeasesOf != kLeasesAt) return;
  server->item_lease_ms = 1 + static_cast<uint32_t>(seed / kLeasesOf % kItemLeaseMsMax);
  server->former_leases_ms = kItemLeaseMsMax;
}

}  // namespace

Scenario::Scenario(Run* run) : server{.clocks = run->clocks()} {
  server.workers = 1 + static_cast<uint32_t>(run->Below(2));
  server.memory_bytes = Choose<uint64_t>(run, {2 << 20, 4 << 20, 8 << 20});
  server.index_slots = Choose<uint64_t>(run, {0, 64, 512});
  server.index_grows = server.index_slots != 512;
  server.lock_words = Choose<uint64_t>(run, {2, 16, 256});
  server.huge_pages = HugePages::kOff;
  server.connections_max = 128;
  server.silence_ms = kSilenceMs;
  server.session_grace_ns = Choose<int64_t>(run, {30, 1, 5}) * kNsPerSecond;
  server.credits = Choose<uint16_t>(run, {32, 4, 2, 8});
  server.receives = Choose<uint32_t>(run, {1024, 16, 64});
  server.reply_buffers = Choose<uint32_t>(run, {512, 2, 8});
  server.lock_requests_max = Choose<uint32_t>(run, {1024, 1, 2});
  if (run->OneIn(3)) {
    server.lock_mode =
        Choose<LockMode>(run, {LockMode::kNicCas, LockMode::kRpcLoopback, LockMode::kRpcServer});
  }
  clients = 2 + static_cast<uint32_t>(run->Below(run->OneIn(4) ? 11 : 4));
  keys = 1 + static_cast<uint32_t>(run->Below(4));
  acts_per_client = static_cast<uint32_t>(run->LogUniform(4, 60));
  active_ns = run->LogUniform(2 * kNsPerMs, 4 * kNsPerSecond);
  calm_ns = run->LogUniform(10 * kNsPerMs, 8 * kNsPerSecond);
  if (run->OneIn(5)) {
    besiegers = 1 + static_cast<uint32_t>(run->Below(8));
    calm_ns = std::max(calm_ns, 3 * kNsPerSecond);
  }
  rude_peers_stay = besiegers > 0 || run->OneIn(2);
  hasty_percent = Choose<uint32_t>(run, {0, 20, 60});
  locks_percent = Choose<uint32_t>(run, {0, 20, 70});
  leases_percent = Choose<uint32_t>(run, {0, 30});
  ttl_percent = Choose<uint32_t>(run, {0, 10, 50});
  value_bytes_max = Choose<uint32_t>(run, {4'000, 20'000, 1 << 20});
  if (run->OneIn(2)) faults = Choose(run, kHarmless);
  breaking_faults = Choose(run, kBreaking);
  const uint64_t count = run->OneIn(4) ? 0 : 1 + run->Below(6);
  for (uint64_t i = 0; i < count; ++i) {
    Event& event = events.emplace_back();
    event.type = static_cast<Event::Type>(run->Below(static_cast<uint64_t>(Event::Type::kCount)));
    event.at_ns = static_cast<int64_t>(run->Below(static_cast<uint64_t>(active_ns)));
    event.duration_ns = run->OneIn(3) ? run->LogUniform(kLongStallNs[0], kLongStallNs[1])
                                      : run->LogUniform(1 * kNsPerMs, 3 * kNsPerSecond);
    if (event.type == Event::Type::kSuspend && run->OneIn(2)) event.duration_ns = 3 * kNsPerSecond;
  }
  // All stalls end with the active time at the latest. For half of the events the active time is
  // long enough to include all of them.
  for (const Event& event : events) {
    if (run->OneIn(2)) active_ns = std::max(active_ns, event.at_ns + event.duration_ns);
  }
  lock_thief = run->OneIn(4);
  fills = run->OneIn(4);
  crowded = run->OneIn(8);
  besieged = !crowded && server.workers == 1 && run->OneIn(3);
  if (crowded) {
    server.connections_max = kCrowdMax;
    clients = std::min<uint32_t>(clients, 3);
  }
  if (run->OneIn(6)) {
    server.evict = true;
    // Items under a lock are not evicted. With two words two locks may hold all of them, for as
    // long as their leases last.
    server.lock_words = std::max<uint64_t>(server.lock_words, 16);
    server.memory_bytes = Choose<uint64_t>(run, {2 << 20, 4 << 20});
    value_bytes_max = std::min<uint32_t>(value_bytes_max, 20'000);
    fills = besieged = false;
  }
  LeaseItems(run->seed(), &server);
  if (run->rails()) AddLinks(run, this);
  std::ranges::sort(events, {}, &Event::at_ns);
}

std::string Scenario::ToString() const {
  std::string text =
      absl::StrCat(clients, " clients, ", keys, " keys, ", acts_per_client, " acts, ",
                   active_ns / kNsPerMs, "+", calm_ns / kNsPerMs, " ms, workers ", server.workers,
                   ", memory ", server.memory_bytes >> 20, server.evict ? "M evicting" : "M",
                   ", slots ", server.index_slots, ", lock words ", server.lock_words);
  absl::StrAppend(&text, ", besiegers ", besiegers, ", credits ", server.credits, ", receives ",
                  server.receives, ", reply buffers ", server.reply_buffers, ", lock requests ",
                  server.lock_requests_max, ", hasty ", hasty_percent, ", locks ", locks_percent,
                  ", leases ", leases_percent, ", items leased for ", server.item_lease_ms,
                  ", ttl ", ttl_percent, ", values ", value_bytes_max, ", faults ", faults);
  for (const Event& event : events) {
    absl::StrAppend(&text, ", event ", static_cast<int>(event.type), "@", event.at_ns / kNsPerMs,
                    "+", event.duration_ns / kNsPerMs);
  }
  return text;
}

}  // namespace gannet::simulation
