#include "tests/simulation/group_scenario.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/protocol/limits.h"
#include "common/protocol/versions.h"
#include "tests/simulation/group_server.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/simulated_client.h"
#include "tests/simulation/tallies.h"

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

std::vector<std::string> AllKeys() {
  std::vector<std::string> names = {std::string(Tallies::kCounterKey),
                                    std::string(Tallies::kValueKey)};
  for (uint32_t key = 0; key < kKeysMax; ++key) names.push_back(KeyName(key));
  return names;
}

GroupEvent GroupEvent::AnyFault(Run* run, int64_t lease_ns) {
  GroupEvent event;
  event.type =
      run->OneIn(4) ? Type::kStopWithin : static_cast<Type>(run->Below(GroupEvent::kOfOneGroup));
  // About as long as what others wait for, or anything.
  event.duration_ns =
      run->OneIn(2)
          ? lease_ns / 4 + static_cast<int64_t>(run->Below(static_cast<uint64_t>(2 * lease_ns)))
          : run->LogUniform(1 * kNsPerMs, 3 * kNsPerSecond);
  // Then it goes on when its primary's lease is over, and its own patience.
  if (event.type == Type::kStopWithin && run->OneIn(2)) {
    event.duration_ns =
        lease_ns + static_cast<int64_t>(run->Below(static_cast<uint64_t>(lease_ns)));
  }
  return event;
}

GroupScenario::GroupScenario(Run* run, Kind k, uint32_t n)
    : kind(k), steps(n), server{.clocks = run->clocks()} {
  // By the seed, so that runs without keys stay what they were.
  if (run->seed() % 2 == 1) server.auth_file = key_file.path();
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
  DrawGroups(run, kind);
  clients = 1 + static_cast<uint32_t>(run->Below(std::min(kClientsMax, kNodesMax - servers())));
  keys = 1 + static_cast<uint32_t>(run->Below(3));
  acts_per_client = static_cast<uint32_t>(run->LogUniform(10, 120));
  active_ns = run->LogUniform(500 * kNsPerMs, 8 * kNsPerSecond);
  calm_ns = run->LogUniform(10 * kNsPerMs, kNsPerSecond);
  hasty_percent = Choose<uint32_t>(run, {0, 20, 60});
  locks_percent = Choose<uint32_t>(run, {0, 20});
  value_bytes_max = Choose<uint32_t>(run, {1'000, 40'000, 400'000});
  if (run->OneIn(2)) faults = Choose(run, kHarmless);
  breaking_faults = Choose(run, kBreaking);
  if (moves()) DrawMap(run);
  if (kind == Kind::kWalk) {
    clients = std::min(kClientsMax, kNodesMax - servers());
    acts_per_client = static_cast<uint32_t>(run->LogUniform(2, 30));
    active_ns = kNsPerSecond;
  } else if (kind == Kind::kHotKey) {
    DrawHotKey(run);
  } else {
    DrawEvents(run);
    if (moves()) DrawMoves(run);
    AddLossOfCopies(run->seed());
    if (kind == Kind::kBadEtcd) DrawTroublesOfEtcd(run);
  }
  LeaseItems(run->seed());
  std::sort(events.begin(), events.end(),
            [](const GroupEvent& a, const GroupEvent& b) { return a.at_ns < b.at_ns; });
}

void GroupScenario::DrawGroups(Run* run, Kind kind) {
  std::vector<uint32_t> sizes = {3};
  if (kind == Kind::kTwoGroups) {
    constexpr std::pair<uint32_t, uint32_t> kSizes[] = {{1, 1}, {2, 2}, {2, 2}, {2, 2},
                                                        {2, 1}, {1, 2}, {3, 2}, {2, 3}};
    const auto chosen = Choose(run, kSizes);
    sizes = {chosen.first, chosen.second};
  }
  if (kind == Kind::kBadEtcd) {
    const std::vector<uint32_t> chosen[] = {{2, 2}, {3, 2}, {2, 3}, {3, 1}};
    sizes = chosen[run->Below(std::size(chosen))];
  }
  if (kind == Kind::kWalk) {
    const std::vector<uint32_t> chosen[] = {{2, 2, 2}, {2, 2, 2}, {2, 2, 1}, {3, 2, 1}};
    sizes = chosen[run->Below(std::size(chosen))];
  }
  for (const uint32_t size : sizes) {
    GroupTerms& terms = groups.emplace_back();
    terms.history = 1 + run->Below(1'000);
    terms.lease_ms = Choose<uint32_t>(run, {600, 600, 200, 1'000});
    terms.ring_bytes = 1 << 20;
    for (uint32_t i = 0; i < size; ++i) {
      terms.members.push_back(GroupServer::NameOf(servers()));
      group_of.push_back(static_cast<uint32_t>(groups.size() - 1));
      versions.push_back(kStreamVersions.max);
      // Members are upgraded during a walk.
      if (kind == Kind::kWalk && !run->OneIn(4)) versions.back() = kStreamVersions.min;
    }
  }
  drifts.resize(servers());
  if (const char* given = std::getenv("GANNET_SIMULATION_DRIFT")) {
    drifts[run->Below(servers())] = std::atoll(given);
  } else {
    for (int64_t& drift : drifts) drift = (static_cast<int64_t>(run->Below(3)) - 1) * kDriftMax;
  }
  ChooseClocks(run->seed());
  last_comes_late = kind == Kind::kOneGroup && run->OneIn(3);
}

// Not drawn, so that all else of a seed's run is as it was when no item expired, and one copy was
// enough.
void GroupScenario::ChooseClocks(uint64_t seed) {
  constexpr uint64_t kHourMs = 3'600'000;
  clocks_ahead_ms.resize(groups.size());
  if (kind == Kind::kWalk || kind == Kind::kHotKey) return;
  constexpr uint32_t kTtlPercents[] = {0, 30};
  ttl_percent = kTtlPercents[seed / 3 % 2];
  if (kind == Kind::kTwoGroups && seed % 3 != 0) clocks_ahead_ms[seed % 3 - 1] = kHourMs;
  if (kind == Kind::kOneGroup && seed % 3 != 0) groups.front().min_copies = 2;
}

// So that copies are missing. Not drawn either.
void GroupScenario::AddLossOfCopies(uint64_t seed) {
  if (groups.front().min_copies == 1) return;
  constexpr int64_t kParts = 8;
  const auto part = static_cast<int64_t>(seed % kParts);
  events.push_back({.type = GroupEvent::Type::kKillBackups, .at_ns = active_ns * part / kParts});
}

std::optional<uint32_t> GroupScenario::hot_key() const {
  if (kind != Kind::kHotKey) return std::nullopt;
  return kKeysMax - 1;
}

// Leases on items that are as long as they may be outlive their primary's lease the longest.
void GroupScenario::DrawHotKey(Run* run) {
  clients = 2 + static_cast<uint32_t>(run->Below(std::min(kClientsMax, kNodesMax - servers()) - 1));
  acts_per_client = static_cast<uint32_t>(run->LogUniform(10, 40));
  active_ns = (3 + static_cast<int64_t>(run->Below(5))) * kNsPerSecond;
  faults = "";  // the next primary is to be found soon
  groups.front().lease_ms = run->OneIn(4) ? 600 : 200;
  server.item_lease_ms =
      run->OneIn(4) ? 20 + static_cast<uint32_t>(run->Below(80)) : kItemLeaseMsMax;
  server.leased_items = 16;
  server.former_leases_ms = kItemLeaseMsMax;
}

// Not drawn either. Of such seeds some have keys, time to live, and clocks that are ahead. Leases
// that are shorter are too short for clients, as clocks are rounded.
void GroupScenario::LeaseItems(uint64_t seed) {
  constexpr uint64_t kLeasesOf = 3;
  constexpr uint32_t kLeaseMsMin = 20;
  constexpr uint64_t kStep = 7;
  if (kind == Kind::kHotKey || seed / 3 % kLeasesOf != 0) return;
  server.item_lease_ms =
      kLeaseMsMin + static_cast<uint32_t>(seed * kStep % (kItemLeaseMsMax + 1 - kLeaseMsMin));
  server.leased_items = 16;
  server.former_leases_ms = kItemLeaseMsMax;
}

void GroupScenario::DrawEvents(Run* run) {
  const int64_t lease_ns = int64_t{groups.front().lease_ms} * kNsPerMs;
  const uint64_t count = run->OneIn(8) ? 0 : 1 + run->Below(8);
  for (uint64_t i = 0; i < count; ++i) {
    GroupEvent& event = events.emplace_back(GroupEvent::AnyFault(run, lease_ns));
    event.at_ns = static_cast<int64_t>(run->Below(static_cast<uint64_t>(active_ns)));
  }
}

void GroupScenario::DrawTroublesOfEtcd(Run* run) {
  using Type = GroupEvent::Type;
  for (uint64_t more = 1 + run->Below(4); more > 0; --more) {
    events.push_back({.type = run->OneIn(2) ? Type::kLoseEtcd : Type::kGarbage,
                      .at_ns = static_cast<int64_t>(run->Below(static_cast<uint64_t>(active_ns))),
                      .duration_ns = run->LogUniform(10 * kNsPerMs, 3 * kNsPerSecond),
                      .while_closed = run->OneIn(4)});
  }
}

// The third group's name comes first, so all groups have other places in the map when it comes.
void GroupScenario::DrawMap(Run* run) {
  for (const std::string& key : AllKeys()) {
    const auto partition = static_cast<uint16_t>(PartitionOf(key));
    if (std::ranges::find(partitions, partition) == partitions.end()) {
      partitions.push_back(partition);
    }
  }
  names = {"g1", "g2", "g0"};
  names.resize(groups.size());
  map.groups = {"g1", "g2"};
  map.partitions.assign(kPartitions, 0);
  if (run->OneIn(2)) {
    for (uint16_t& owner : map.partitions) owner = static_cast<uint16_t>(run->Below(2));
  }
}

// Partitions move there and back. Half of the faults wait until one is closed, and there are some
// more of those that hit who moves them.
void GroupScenario::DrawMoves(Run* run) {
  using Type = GroupEvent::Type;
  for (GroupEvent& event : events) event.while_closed = run->OneIn(2);
  const int64_t lease_ns = int64_t{groups.front().lease_ms} * kNsPerMs;
  for (uint64_t more = run->Below(5); more > 0; --more) {
    constexpr Type kTypes[] = {Type::kKill,       Type::kKillSoon,    Type::kStop,
                               Type::kStopWithin, Type::kStopPart,    Type::kHandOver,
                               Type::kCutOff,     Type::kRegisterAway};
    GroupEvent& event = events.emplace_back(GroupEvent::AnyFault(run, lease_ns));
    event.type = Choose(run, kTypes);
    event.at_ns = static_cast<int64_t>(run->Below(static_cast<uint64_t>(active_ns)));
    event.while_closed = true;
  }
  const uint64_t count = 1 + run->Below(6);
  for (uint64_t i = 0; i < count; ++i) {
    const auto at_ns = static_cast<int64_t>(run->Below(static_cast<uint64_t>(active_ns)));
    events.push_back({.type = Type::kMove, .at_ns = at_ns});
    if (!run->OneIn(4)) continue;
    events.push_back({.type = Type::kStopMoves,
                      .at_ns = at_ns + run->LogUniform(kNsPerMs, 2 * kNsPerSecond),
                      .while_closed = run->OneIn(2)});
  }
  moves_when_calm = run->OneIn(2);
}

std::string GroupScenario::ToString() const {
  std::string text = absl::StrCat(
      clients, " clients, ", keys, " keys, ", acts_per_client, " acts, ", active_ns / kNsPerMs, "+",
      calm_ns / kNsPerMs, " ms, workers ", server.workers, ", memory ", server.memory_bytes >> 20,
      "M, slots ", server.index_slots, ", credits ", server.credits,
      last_comes_late ? ", two at first" : "", with_keys() ? ", with keys" : "");
  for (const GroupTerms& group : groups) {
    absl::StrAppend(&text, ", group of ", group.members.size(), " with lease ", group.lease_ms,
                    " ms, ", group.min_copies, " copies");
  }
  absl::StrAppend(&text, ", drifts ", absl::StrJoin(drifts, " "), ", versions ",
                  absl::StrJoin(versions, " "), ", steps ", steps);
  absl::StrAppend(&text, ", hasty ", hasty_percent, ", locks ", locks_percent, ", ttl ",
                  ttl_percent, ", clocks ahead ", absl::StrJoin(clocks_ahead_ms, " "), ", values ",
                  value_bytes_max, ", items leased for ", server.item_lease_ms, ", faults ",
                  faults);
  for (const GroupEvent& event : events) {
    absl::StrAppend(&text, ", event ", static_cast<int>(event.type), "@", event.at_ns / kNsPerMs,
                    "+", event.duration_ns / kNsPerMs, event.while_closed ? " while closed" : "");
  }
  return text;
}

}  // namespace gannet::simulation
