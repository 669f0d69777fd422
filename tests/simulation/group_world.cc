#include "tests/simulation/group_world.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/server_list.h"
#include "common/base/server_time.h"

namespace gannet::simulation {
namespace {

constexpr int64_t kDrainNsMax = 8 * kNsPerSecond;
constexpr int64_t kConnectNsMax = 8 * kNsPerSecond;
constexpr int64_t kQuietNs = 1 * kNsPerSecond;
// Long enough for transactions that were forgotten, takeovers one after the other, and joining. No
// seed was seen that took longer than 5 s.
constexpr int64_t kMendedNsMax = 10 * kNsPerSecond;
constexpr int64_t kMendedByOperatorNsMax = 30 * kNsPerSecond;
// Longer than a run.
constexpr int64_t kLateNs = 1'000 * kNsPerSecond;
constexpr size_t kItemBytesMax = 1 << 20;
constexpr uint64_t kNearCacheBytes = 128 << 10;

GroupRegisterService RegisterOfCluster(Run* run, const GroupScenario& scenario) {
  std::vector<GroupRegisterService::Group> groups;
  for (size_t i = 0; i < scenario.groups.size(); ++i) {
    groups.push_back({scenario.names[i], scenario.groups[i]});
  }
  return {run, groups, scenario.map};
}

}  // namespace

// A client's clock, at which the client may be stopped.
class GroupWorld::GuestClock final : public ClientClock {
 public:
  GuestClock(GroupWorld* world, uint32_t node) : world_(world), node_(node) {}
  int64_t MonotonicNs() const override {
    LetTimePass();
    const bool before = world_->run_->OneIn(2);
    if (before) world_->OnClock(node_);
    const int64_t now_ns = world_->run_->clock()->MonotonicNs();
    if (!before) world_->OnClock(node_);
    return now_ns;
  }
  WallTime Wall() const override { return Run::Wall(); }

 private:
  // More than a client looks at a clock that stands still before it goes on.
  static constexpr uint32_t kReadsMax = 20'000;

  // Whoever reads the clock again and again waits for the device, as a session does that is
  // dropped.
  void LetTimePass() const {
    Run* const run = world_->run_;
    reads_ = run->now_ns() == last_ns_ ? reads_ + 1 : 0;
    if (reads_ > kReadsMax) run->Idle();
    last_ns_ = run->now_ns();
  }

  GroupWorld* const world_;
  const uint32_t node_;
  mutable uint32_t reads_ = 0;  // at the same time, but for what it let pass itself
  mutable int64_t last_ns_ = 0;
};

GroupWorld::GroupWorld(Run* run, GroupScenario::Kind kind, uint32_t steps)
    : run_(run),
      scenario_(run, kind, steps),
      began_ns_(run->now_ns()),
      history_(run, scenario_.hot_key() ? kKeysMax : scenario_.keys, kKeysMax),
      register_(scenario_.moves() ? RegisterOfCluster(run, scenario_)
                                  : GroupRegisterService(run, scenario_.groups.front())) {
  run_->Note(scenario_.ToString());
  run_->SetFaults(scenario_.faults);
  health_.SetBreaking(true, run_->now_ns());
  if (scenario_.moves()) history_.SetSeveralGroups();
  if (scenario_.kind == GroupScenario::Kind::kBadEtcd) register_.UseRealStores();
  for (uint32_t node = 0; node < scenario_.servers(); ++node) servers_.push_back(MakeServer(node));
  if (scenario_.last_comes_late) servers_.back()->Kill(kLateNs);
  guests_.resize(scenario_.clients);
  for (uint32_t i = 0; i < scenario_.clients; ++i) {
    Guest& guest = guests_[i];
    guest.node = scenario_.servers() + i;
    guest.clock = std::make_unique<GuestClock>(this, guest.node);
    MakeGuest(&guest);
  }
}

std::unique_ptr<GroupServer> GroupWorld::MakeServer(uint32_t node) {
  ++happened_.processes;
  const uint32_t group = scenario_.group_of[node];
  return std::make_unique<GroupServer>(
      GroupServer::Options{
          .node = node,
          .group = group,
          .group_name = scenario_.moves() ? scenario_.names[group] : "",
          .starts = register_.Has(group),
          .stream_version = scenario_.versions[node],
          .clock_ahead_ms = scenario_.clocks_ahead_ms[group],
          .drift = scenario_.drifts[node],
          .server = scenario_.server,
          .terms = scenario_.groups[group],
          .reaches = [this, node](const std::string& name) { return Reaches(node, name); },
          .on_clock = [this](uint32_t at) { OnClock(at); }},
      run_, &register_);
}

bool GroupWorld::Reaches(uint32_t node, const std::string& name) const {
  for (uint32_t other = 0; other < scenario_.servers(); ++other) {
    if (GroupServer::NameOf(other) == name) return !cut_[node][other] && !cut_[other][node];
  }
  return false;
}

GroupWorld::~GroupWorld() {
  faulty_ = false;
  guests_.clear();
  servers_.clear();
}

void GroupWorld::MakeGuest(Guest* guest) {
  guest->client.reset();
  run_->OnNode(guest->node);
  SimulatedClient::Options options{.number = ++last_client_,
                                   .endpoint = EndpointFor(last_client_),
                                   .keys = scenario_.keys,
                                   .value_bytes_max = scenario_.value_bytes_max,
                                   .hasty_percent = scenario_.hasty_percent,
                                   .locks_percent = scenario_.locks_percent,
                                   .ttl_percent = scenario_.ttl_percent,
                                   .loose_expiry = true,
                                   .groups = scenario_.moves() ? 2u : 1u,
                                   .impatient_locks = scenario_.moves(),
                                   .auth_file = scenario_.server.auth_file,
                                   .clock = guest->clock.get()};
  if (!scenario_.moves()) {
    options.had_copies_since = [this](int64_t ns) { return had_copies_ns_ >= ns; };
  }
  if (scenario_.kind == GroupScenario::Kind::kWalk) {
    options.has_group = [this](std::string_view name) { return register_.Has(name); };
  }
  options.depth = static_cast<uint32_t>(run_->LogUniform(1, 32));
  options.signal_every = run_->OneIn(2) ? 32 : SendChain::kMax;
  options.completions = run_->OneIn(2) ? 1 + static_cast<uint32_t>(run_->Below(16)) : 0;
  options.nic_locks = !run_->OneIn(3);
  options.location_cache_bytes = run_->OneIn(2) ? 4096 : 0;
  options.near_cache_bytes = scenario_.leases() ? kNearCacheBytes : 0;
  options.hot_key = scenario_.hot_key();
  if (options.hot_key) options.depth = std::max(options.depth, 2u);
  guest->client = std::make_unique<SimulatedClient>(options, run_, &history_, &health_);
}

// Every other client lists one member, and learns of the rest. The last one may come late. The
// others list all members of a group.
std::string GroupWorld::EndpointFor(uint32_t client) const {
  std::string endpoint(kGroupPrefix);
  if (client % 2 == 0) return absl::StrCat(endpoint, servers_[client / 2 % 2]->address());
  // The third group is not always there.
  const uint32_t group =
      client / 2 % std::min<uint32_t>(2, static_cast<uint32_t>(scenario_.groups.size()));
  for (const auto& server : servers_) {
    if (server->group() == group) absl::StrAppend(&endpoint, server->address(), ",");
  }
  endpoint.pop_back();
  return endpoint;
}

void GroupWorld::Execute() {
  acting_ = true;
  if (scenario_.kind == GroupScenario::Kind::kWalk) {
    Walk();
  } else {
    pace_.StepUntil(began_ns_ + scenario_.active_ns, [] { return false; });
    Settle();
    CheckAtTheEnd();
  }
  CountWhatHappened();
}

void GroupWorld::AwaitWhole() {
  // A transaction whose sender is dead may still take out the last one that lives.
  const int64_t patience_ns = etcd_lost_ ? kMendedByOperatorNsMax : kMendedNsMax;
  pace_.StepUntil(run_->now_ns() + patience_ns, [this] {
    lost_ = !SomebodyLives(kNobody);
    return Whole() && !etcd_lost_;
  });
  if (!over() && (!Whole() || etcd_lost_))
    run_->Fail(Check::kWhole, "not all are in sync, or nobody serves");
}

void GroupWorld::Settle() {
  MendAll();
  const int64_t mended_ns = run_->now_ns();
  AwaitWhole();
  happened_.whole_ns = std::max(happened_.whole_ns, run_->now_ns() - mended_ns);
  if (scenario_.moves()) AwaitMoves();
  pace_.StepUntil(run_->now_ns() + kConnectNsMax, [this] {
    return std::all_of(guests_.begin(), guests_.end(),
                       [](const Guest& guest) { return guest.client->ready(); });
  });
  health_.SetBreaking(false, run_->now_ns());
  patient_ = true;
  if (scenario_.moves_when_calm) WishMoves();
  pace_.StepUntil(run_->now_ns() + scenario_.calm_ns, [] { return false; });
  acting_ = false;
  pace_.StepUntil(run_->now_ns() + kDrainNsMax, [this] { return AllIdle(); });
  if (!over() && !AllIdle()) run_->Fail(Check::kEnds, "operations go on for ever");
  if (scenario_.moves()) AwaitMoves();
  AwaitWhole();  // an acknowledgement that was lost before may have broken a link meanwhile
  pace_.StepUntil(run_->now_ns() + kQuietNs, [] { return false; });
}

void GroupWorld::TakeTurn() {
  register_.Step();
  HandleEvents();
  PollSomebody();
  Act();
  WatchLeases();
  WatchCopies();
}

bool GroupWorld::Stands(uint32_t node) const {
  return standing_[node].within || run_->now_ns() < standing_[node].until_ns;
}

void GroupWorld::PollSomebody() {
  const uint64_t of_servers = 2 * servers_.size();
  const uint64_t who = run_->Below(of_servers + guests_.size());
  if (who >= of_servers) return PollGuest(&guests_[who - of_servers]);
  const size_t node = who / 2;
  if (servers_[node]->up()) PollPart(node, run_->Below(servers_[node]->parts()));
}

void GroupWorld::PollEverybody() {
  for (size_t node = 0; node < servers_.size(); ++node) {
    for (size_t part = 0; servers_[node]->up() && part < servers_[node]->parts(); ++part) {
      PollPart(node, part);
    }
    if (!servers_[node]->up()) PollPart(node, 0);
  }
  for (Guest& guest : guests_) PollGuest(&guest);
}

void GroupWorld::PollPart(size_t node, size_t part) {
  if (Stands(static_cast<uint32_t>(node)) || over()) return;
  GroupServer& server = *servers_[node];
  if (!server.up() && !register_.Has(server.group())) return;
  const auto stopped = standing_[node].parts.find(part);
  if (stopped != standing_[node].parts.end() && run_->now_ns() < stopped->second) return;
  const bool was_up = server.up();
  if (was_up) CheckWhyItEnds(&server);
  server.Continue();
  if (was_up != server.up()) {
    happened_.processes += server.up();
    if (!SomebodyLives(kNobody)) lost_ = true;
  }
  if (server.up() && part < server.parts()) server.Poll(part);
}

// Who is in sync has items that others may not have.
void GroupWorld::CheckWhyItEnds(GroupServer* server) {
  if (!server->member().ended()) return;
  const GroupConfiguration& now = register_.now(server->group());
  const std::string& why = server->member().why();
  const bool out = why == "this member is not in sync any more";
  if (now.IsInSync(server->self()) && (server->member().replaced() || out)) {
    run_->Fail(Check::kStays, absl::StrCat("node ", server->node(), " ends: ", why));
  }
}

void GroupWorld::PollGuest(Guest* guest) {
  if (Stands(guest->node) || over()) return;
  run_->OnNode(guest->node);
  guest->client->Poll();
  if (guest->client->dead()) MakeGuest(guest);
}

void GroupWorld::Act() {
  if (!acting_ || over()) return;
  Guest& guest = guests_[run_->Below(guests_.size())];
  const int64_t now_ns = run_->now_ns();
  if (now_ns < guest.next_act_ns || Stands(guest.node)) return;
  run_->OnNode(guest.node);
  guest.client->Act(patient_);
  const int64_t span_ns = patient_ ? scenario_.calm_ns : scenario_.active_ns;
  guest.next_act_ns =
      now_ns + (guest.client->hurries() ? ShortGapNs(run_)
                                        : GapNs(run_, span_ns, scenario_.acts_per_client));
}

int64_t GroupWorld::NextTime() const {
  int64_t next_ns = register_.next_ns();
  if (faulty_ && next_event_ < scenario_.events.size()) {
    next_ns = std::min(next_ns, began_ns_ + scenario_.events[next_event_].at_ns);
  }
  if (etcd_lost_) next_ns = std::min(next_ns, operator_ns_);
  if (faulty_ && happened_.steps < piece_end_) next_ns = std::min(next_ns, next_step_ns_);
  if (!mends_.empty()) next_ns = std::min(next_ns, mends_.begin()->first);
  for (const Guest& guest : guests_) {
    if (acting_ && !Stands(guest.node)) next_ns = std::min(next_ns, guest.next_act_ns);
  }
  return std::max(next_ns, run_->now_ns() + 1);
}

void GroupWorld::WatchLeases() {
  std::array<uint64_t, GroupScenario::kNodesMax> leader{};  // by group: who has the lease
  for (const auto& server : servers_) {
    if (!server->up() || !server->HasLease()) continue;
    uint64_t& of_group = leader[server->group()];
    if (of_group != 0) run_->Fail(Check::kOneLease, "two servers have a lease");
    of_group = server->self().incarnation;
  }
  if (scenario_.moves()) WatchOwners(leader);
}

void GroupWorld::WatchCopies() {
  const auto copies = std::ranges::count_if(servers_, [this](const auto& server) {
    return server->group() == 0 && server->up() && register_.now().IsInSync(server->self());
  });
  if (copies >= scenario_.groups.front().min_copies) had_copies_ns_ = run_->now_ns();
}

bool GroupWorld::AllIdle() const {
  return std::all_of(guests_.begin(), guests_.end(),
                     [](const Guest& guest) { return guest.client->idle(); });
}

void GroupWorld::CountWhatHappened() {
  for (uint32_t group = 0; group < scenario_.groups.size(); ++group) {
    if (register_.Has(group)) happened_.epochs += register_.now(group).epoch;
  }
  if (register_.has_map()) happened_.maps = register_.map().revision;
  happened_.lost = lost_;
  happened_.leasing = scenario_.leases();
  for (const Guest& guest : guests_) {
    happened_.disbelieved += guest.client->disbelieved();
    happened_.near_answers += guest.client->near_answers();
  }
}

void GroupWorld::CheckAtTheEnd() {
  if (run_->failed() || pace_.never_ends()) return;
  if (lost_) {
    // What was seen until then must hold all the same.
    guests_.clear();
    return history_.Check();
  }
  for (const Guest& guest : guests_) {
    if (!guest.client->CheckIsBack()) return;
  }
  for (const auto& server : servers_) {
    if (!register_.Has(server->group())) continue;
    if (!server->up()) {
      return run_->Fail(Check::kWhole, absl::StrCat("node ", server->node(), " has no process"));
    }
    if (server->busy() > 0) {
      run_->Fail(Check::kEverythingBack,
                 absl::StrCat("node ", server->node(), ": ", server->busy()));
    }
  }
  // Every client must still be able to read every key.
  for (Guest& guest : guests_) {
    run_->OnNode(guest.node);
    guest.client->ReadAll();
  }
  pace_.StepUntil(run_->now_ns() + kDrainNsMax, [this] { return AllIdle(); });
  if (scenario_.kind == GroupScenario::Kind::kTwoGroups) CheckPlacesKept();
  history_.Check();
  CheckCopies();
  if (scenario_.moves()) CheckPlaces();
}

ServerTime GroupWorld::Late() const {
  constexpr uint64_t kDayMs = 86'400'000;
  return run_->Time() + kDayMs;
}

std::string GroupWorld::ItemAt(uint32_t node, const std::string& key) const {
  std::string value(kItemBytesMax, '\0');
  const ReadOutcome read =
      servers_[node]->store().Get(key, std::as_writable_bytes(std::span(value)), Late());
  if (read.status == ReplyStatus::kNotFound) return "";
  value.resize(read.status == ReplyStatus::kOk ? read.value_bytes : 0);
  return absl::StrCat(static_cast<int>(read.status), " ", read.version, " ", value.size(), " ",
                      Xxh3(value.data(), value.size(), 0));
}

// What was committed long ago was applied everywhere.
void GroupWorld::CheckCopies() {
  for (const std::string& key : AllKeys()) {
    std::array<std::optional<std::string>, GroupScenario::kNodesMax> first;  // by group
    for (const auto& server : servers_) {
      if (!register_.Has(server->group())) continue;
      const std::string seen = ItemAt(server->node(), key);
      std::optional<std::string>& of_group = first[server->group()];
      if (!of_group) of_group = seen;
      if (seen == *of_group) continue;
      run_->Fail(Check::kCopies, absl::StrCat("of '", key, "' another node has ", *of_group,
                                              ", node ", server->node(), " has ", seen));
    }
  }
}

}  // namespace gannet::simulation
