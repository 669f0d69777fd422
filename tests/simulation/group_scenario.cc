#include "tests/simulation/group_scenario.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "tests/simulation/scenario.h"

namespace gannet::simulation {
namespace {

// 1/512, by which a clock may be too fast or too slow.
constexpr int64_t kDriftMax = (1 << 20) / 512;

// Faults that only change the timing.
constexpr const char* kHarmless[] = {
    "tear_read=0.2:20us",  "delay_completion=0.1:200us", "delay_post=0.1:100us",
    "stall_peer=0.02:1ms", "delay_completion=0.02:20ms", "slow_connect=0.3:100ms",
    "refuse_connect=0.2",
};
constexpr const char* kBreaking[] = {
    "error=send:0.02",    "error=write:0.05",    "error=read:0.02",
    "lost_ack=send:0.02", "lost_ack=write:0.05", "error=any:0,lost_ack=send:0.1",
};

template <class T, size_t N>
T Choose(Run* run, const T (&choices)[N]) {
  return choices[run->Below(N)];
}

}  // namespace

GroupScenario::GroupScenario(Run* run) {
  server.workers = 1 + static_cast<uint32_t>(run->Below(2));
  server.memory_bytes = Choose<uint64_t>(run, {4 << 20, 8 << 20});
  server.index_slots = Choose<uint64_t>(run, {64, 512});
  server.lock_words = Choose<uint64_t>(run, {2, 64});
  server.huge_pages = HugePages::kOff;
  server.connections_max = 128;
  server.silence_ms = kSilenceMs;
  server.credits = Choose<uint16_t>(run, {32, 4, 2});
  server.receives = 256;
  server.reply_buffers = 64;
  terms.history = 1 + run->Below(1'000);
  terms.lease_ms = Choose<uint32_t>(run, {600, 600, 200, 1'000});
  terms.ring_bytes = 1 << 20;
  terms.members = {"n1", "n2", "n3"};
  if (const char* given = std::getenv("GANNET_SIMULATION_DRIFT")) {
    drifts[run->Below(kServers)] = std::atoll(given);
  } else {
    for (int64_t& drift : drifts) drift = (static_cast<int64_t>(run->Below(3)) - 1) * kDriftMax;
  }
  third_comes_late = run->OneIn(3);
  clients = 1 + static_cast<uint32_t>(run->Below(kClientsMax));
  keys = 1 + static_cast<uint32_t>(run->Below(3));
  acts_per_client = static_cast<uint32_t>(run->LogUniform(10, 120));
  active_ns = run->LogUniform(500 * kNsPerMs, 8 * kNsPerSecond);
  calm_ns = run->LogUniform(10 * kNsPerMs, kNsPerSecond);
  hasty_percent = Choose<uint32_t>(run, {0, 20, 60});
  locks_percent = Choose<uint32_t>(run, {0, 20});
  value_bytes_max = Choose<uint32_t>(run, {1'000, 40'000, 400'000});
  if (run->OneIn(2)) faults = Choose(run, kHarmless);
  breaking_faults = Choose(run, kBreaking);
  const uint64_t count = run->OneIn(8) ? 0 : 1 + run->Below(8);
  for (uint64_t i = 0; i < count; ++i) {
    GroupEvent& event = events.emplace_back();
    event.type = run->OneIn(4) ? GroupEvent::Type::kStopWithin
                               : static_cast<GroupEvent::Type>(
                                     run->Below(static_cast<uint64_t>(GroupEvent::Type::kCount)));
    event.at_ns = static_cast<int64_t>(run->Below(static_cast<uint64_t>(active_ns)));
    // About as long as what others wait for, or anything.
    const int64_t lease_ns = int64_t{terms.lease_ms} * kNsPerMs;
    event.duration_ns =
        run->OneIn(2)
            ? lease_ns / 4 + static_cast<int64_t>(run->Below(static_cast<uint64_t>(2 * lease_ns)))
            : run->LogUniform(1 * kNsPerMs, 3 * kNsPerSecond);
    // Then it goes on when its primary's lease is over, and its own patience.
    if (event.type == GroupEvent::Type::kStopWithin && run->OneIn(2)) {
      event.duration_ns =
          lease_ns + static_cast<int64_t>(run->Below(static_cast<uint64_t>(lease_ns)));
    }
  }
  std::sort(events.begin(), events.end(),
            [](const GroupEvent& a, const GroupEvent& b) { return a.at_ns < b.at_ns; });
}

std::string GroupScenario::ToString() const {
  std::string text = absl::StrCat(
      clients, " clients, ", keys, " keys, ", acts_per_client, " acts, ", active_ns / kNsPerMs, "+",
      calm_ns / kNsPerMs, " ms, workers ", server.workers, ", memory ", server.memory_bytes >> 20,
      "M, slots ", server.index_slots, ", credits ", server.credits,
      third_comes_late ? ", two at first" : "", ", lease ", terms.lease_ms, " ms, drifts ",
      drifts[0], " ", drifts[1], " ", drifts[2]);
  absl::StrAppend(&text, ", hasty ", hasty_percent, ", locks ", locks_percent, ", values ",
                  value_bytes_max, ", faults ", faults);
  for (const GroupEvent& event : events) {
    absl::StrAppend(&text, ", event ", static_cast<int>(event.type), "@", event.at_ns / kNsPerMs,
                    "+", event.duration_ns / kNsPerMs);
  }
  return text;
}

}  // namespace gannet::simulation
