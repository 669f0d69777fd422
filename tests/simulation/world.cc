#include "tests/simulation/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/words.h"
#include "common/layout/lock_word.h"
#include "tests/simulation/room.h"

namespace gannet::simulation {
namespace {

constexpr int64_t kDrainNsMax = 8 * kNsPerSecond;
// Long enough to find the locks of dead clients, which the server looks for every 2 s.
constexpr int64_t kQuietNs = 5 * kNsPerSecond;
constexpr int64_t kConnectNsMax = 8 * kNsPerSecond;
constexpr int64_t kSilenceNs = int64_t{kSilenceMs} * kNsPerMs;
constexpr uint64_t kNearCacheBytes = 64 << 10;
// A server that saw its lock rail die closes that rail's connections, also those that were made
// meanwhile because the link is back.
constexpr int64_t kLinkSettlesNs = kNsPerSecond / 2;
// The buffers for long values of each worker.
constexpr size_t kStagingBuffers = 4;

}  // namespace

World::World(Run* run)
    : run_(run),
      scenario_(run),
      began_ns_(run->now_ns()),
      history_(run, scenario_.keys, kKeysMax),
      server_(scenario_.server, run, &history_) {
  run_->Note(scenario_.ToString());
  run_->SetFaults(scenario_.faults);
  for (uint32_t i = 0; i < scenario_.clients; ++i) {
    // Some clients begin at once, others during the run.
    int64_t act_ns = static_cast<int64_t>(
        run->Below(static_cast<uint64_t>(scenario_.active_ns / (run->OneIn(2) ? 1 : 100) + 1)));
    if (run->OneIn(3)) act_ns = 0;  // acts before it is connected
    guests_.push_back({NewClient(), run_->now_ns() + act_ns, 0});
  }
}

void World::Besiege() {
  if (scenario_.lock_thief) {
    peers_.push_back(std::make_unique<RudePeer>(RudePeer::Kind::kUsesOthersLocks,
                                                server_.endpoint(), run_, &history_));
  }
  for (uint32_t i = 0; i < scenario_.besiegers; ++i) {
    peers_.push_back(std::make_unique<RudePeer>(RudePeer::Kind::kTakesNoReplies, server_.endpoint(),
                                                run_, &history_));
  }
}

SimulatedClient::Options World::NewClientOptions() {
  SimulatedClient::Options options{.number = ++last_client_,
                                   .endpoint = server_.endpoint(),
                                   .keys = scenario_.keys,
                                   .value_bytes_max = scenario_.value_bytes_max,
                                   .hasty_percent = scenario_.hasty_percent,
                                   .locks_percent = scenario_.locks_percent,
                                   .leases_percent = scenario_.leases_percent,
                                   .ttl_percent = scenario_.ttl_percent,
                                   .tallies = !scenario_.server.evict};
  options.depth = static_cast<uint32_t>(run_->LogUniform(1, 64));
  const bool async = run_->OneIn(2);
  options.queue_pairs_max = async && !scenario_.crowded ? ClientSession::kConnectionsMax : 1;
  options.signal_every = async ? 32 : SendChain::kMax;
  options.completions = async ? 1 + static_cast<uint32_t>(run_->Below(16)) : 0;
  options.nic_locks = !run_->OneIn(3);
  options.location_cache_bytes = run_->OneIn(2) ? 4096 : 0;
  options.near_cache_bytes = scenario_.server.item_lease_ms != 0 ? kNearCacheBytes : 0;
  return options;
}

std::unique_ptr<SimulatedClient> World::NewClient(const SimulatedClient::Options& options) {
  return std::make_unique<SimulatedClient>(options, run_, &history_, &server_.health());
}

void World::Execute() {
  acting_ = true;
  Besiege();
  pace_.StepUntil(began_ns_ + scenario_.active_ns, [] { return false; });
  EndStalls();
  if (!scenario_.rude_peers_stay) peers_.clear();
  patient_ = true;
  pace_.StepUntil(run_->now_ns() + scenario_.calm_ns, [] { return false; });
  acting_ = false;
  server_.EndLeases();
  pace_.StepUntil(run_->now_ns() + kDrainNsMax, [this] { return AllIdle(); });
  if (!over() && !AllIdle()) run_->Fail(Check::kEnds, "operations go on for ever");
  peers_.clear();
  pace_.StepUntil(run_->now_ns() + kConnectNsMax, [this] {
    return std::all_of(guests_.begin(), guests_.end(),
                       [](const Guest& guest) { return guest.client->ready(); });
  });
  pace_.StepUntil(run_->now_ns() + kQuietNs, [] { return false; });
  CheckAtTheEnd();
}

void World::TakeTurn() {
  HandleEvents();
  PollSomebody();
  Act();
}

size_t World::participants() const { return server_.parts() + guests_.size() + peers_.size(); }

void World::PollSomebody() {
  if (suspended()) return;
  uint64_t who = run_->Below(participants());
  if (who < server_.parts()) return PollPart(who);
  who -= server_.parts();
  if (who < guests_.size()) return PollGuest(&guests_[who]);
  peers_[who - guests_.size()]->Poll();
}

void World::PollEverybody() {
  if (suspended()) return;
  for (size_t part = 0; part < server_.parts(); ++part) PollPart(part);
  for (Guest& guest : guests_) PollGuest(&guest);
  for (const auto& peer : peers_) peer->Poll();
}

void World::PollPart(size_t part) {
  server_.Continue();
  if (!server_.stalled(part)) server_.Poll(part);
}

void World::PollGuest(Guest* guest) {
  server_.WatchGaps();
  if (run_->now_ns() < guest->stalled_until_ns) return;
  guest->client->Poll();
  if (guest->client->dead()) guest->client = NewClient();
}

void World::Act() {
  if (!acting_ || suspended()) return;
  Guest& guest = guests_[run_->Below(guests_.size())];
  const int64_t now_ns = run_->now_ns();
  if (now_ns < guest.next_act_ns || now_ns < guest.stalled_until_ns) return;
  guest.client->Act(patient_);
  const int64_t span_ns = patient_ ? scenario_.calm_ns : scenario_.active_ns;
  guest.next_act_ns =
      now_ns + (guest.client->hurries() ? ShortGapNs(run_)
                                        : GapNs(run_, span_ns, scenario_.acts_per_client));
}

uint64_t World::near_answers() const {
  uint64_t answers = 0;
  for (const Guest& guest : guests_) answers += guest.client->near_answers();
  return answers;
}

// Returns the next time at which somebody begins something.
int64_t World::NextTime() const {
  if (suspended()) return suspended_until_ns_;
  int64_t next_ns = INT64_MAX;
  if (next_event_ < scenario_.events.size()) {
    next_ns = began_ns_ + scenario_.events[next_event_].at_ns;
  }
  for (const Guest& guest : guests_) {
    if (acting_) next_ns = std::min(next_ns, std::max(guest.next_act_ns, guest.stalled_until_ns));
  }
  return std::max(next_ns, run_->now_ns() + 1);
}

void World::HandleEvents() {
  const int64_t now_ns = run_->now_ns();
  if (suspended()) return;
  if (suspended_ns_ != 0) Resume();
  // The peers may hold all buffers until they are disconnected.
  const size_t buffers = std::min<size_t>(scenario_.server.reply_buffers, kStagingBuffers);
  if (peers_.size() >= buffers) server_.health().Disturb(now_ns);
  if (breaking_until_ns_ != 0 && now_ns >= breaking_until_ns_) {
    breaking_until_ns_ = 0;
    run_->SetFaults(scenario_.faults);
    ForgetLinks(now_ns);
    TellHealth(now_ns);
  }
  BringLinksUp(now_ns);
  if (next_event_ == scenario_.events.size()) return;
  const Event& event = scenario_.events[next_event_];
  if (now_ns < began_ns_ + event.at_ns) return;
  ++next_event_;
  Happen(event);
}

// New faults brought them up.
void World::ForgetLinks(int64_t now_ns) {
  const bool down = std::ranges::any_of(link_down_until_ns_, [](int64_t ns) { return ns != 0; });
  if (down) links_settle_ns_ = now_ns + kLinkSettlesNs;
  link_down_until_ns_ = {};
}

void World::BringLinksUp(int64_t now_ns) {
  for (size_t rail = 0; rail < link_down_until_ns_.size(); ++rail) {
    int64_t& until_ns = link_down_until_ns_[rail];
    if (until_ns == 0 || now_ns < until_ns) continue;
    until_ns = 0;
    run_->SetLink(static_cast<int>(rail), true);
    links_settle_ns_ = now_ns + kLinkSettlesNs;
  }
  if (links_settle_ns_ == 0 || now_ns < links_settle_ns_) return;
  links_settle_ns_ = 0;
  TellHealth(now_ns);
}

void World::TellHealth(int64_t now_ns) {
  const bool down = std::ranges::any_of(link_down_until_ns_, [](int64_t ns) { return ns != 0; });
  server_.health().SetBreaking(breaking_until_ns_ != 0 || down || links_settle_ns_ != 0, now_ns);
}

void World::Happen(const Event& event) {
  const int64_t now_ns = run_->now_ns();
  const int64_t until_ns = now_ns + event.duration_ns;
  run_->Note(absl::StrCat("event ", static_cast<int>(event.type)));
  Guest& guest = guests_[run_->Below(guests_.size())];
  switch (event.type) {
    case Event::Type::kSuspend:
      return Suspend(event.duration_ns);
    case Event::Type::kStallServer:
      for (size_t part = 0; part < server_.parts(); ++part) server_.Stall(part, until_ns);
      return;
    case Event::Type::kStallWorker:
      return server_.Stall(1 + run_->Below(server_.parts() - 1), until_ns);
    case Event::Type::kStallClient:
      guest.stalled_until_ns = until_ns;
      return;
    case Event::Type::kRestart:
      return server_.Restart(event.duration_ns);
    case Event::Type::kBreak:
      return guest.client->Break();
    case Event::Type::kReplaceClient:
      guest.client.reset();
      guest.client = NewClient();
      return;
    case Event::Type::kBreakingFaults:
      run_->SetFaults(scenario_.breaking_faults);
      ForgetLinks(now_ns);
      breaking_until_ns_ = until_ns;
      return TellHealth(now_ns);
    case Event::Type::kRudePeer: {
      const auto kind =
          static_cast<RudePeer::Kind>(run_->Below(static_cast<uint64_t>(RudePeer::Kind::kCount)));
      for (uint64_t n = 1 + run_->Below(4); n > 0; --n) {
        peers_.push_back(std::make_unique<RudePeer>(kind, server_.endpoint(), run_, &history_));
      }
      return;
    }
    case Event::Type::kLinkDown: {
      const uint64_t rail = run_->Below(link_down_until_ns_.size());
      run_->SetLink(static_cast<int>(rail), false);
      link_down_until_ns_[rail] = until_ns;
      return TellHealth(now_ns);
    }
    case Event::Type::kCount:
      return;
  }
}

// Suspends everybody while operations are under way.
void World::Suspend(int64_t ns) {
  for (Guest& guest : guests_) {
    if (run_->now_ns() < guest.stalled_until_ns) continue;
    guest.client->Act(patient_);
    PollGuest(&guest);
  }
  suspended_ns_ = ns;
  suspended_until_ns_ = run_->now_ns() + ns;
}

// Everybody lost the same time, so nobody has an excuse. But a gap counts as silence, up to a sixth
// of the allowed silence.
void World::Resume() {
  const int64_t suspended_ns = std::exchange(suspended_ns_, 0);
  const int64_t ns = std::max<int64_t>(suspended_ns - Liveness::WatchStepNs(kSilenceNs), 0);
  server_.Suspend(ns);
  for (Guest& guest : guests_) guest.client->Suspend(ns);
}

void World::EndStalls() {
  suspended_until_ns_ = 0;
  if (suspended_ns_ != 0) Resume();
  next_event_ = scenario_.events.size();
  breaking_until_ns_ = 0;
  run_->SetFaults(scenario_.faults);
  ForgetLinks(run_->now_ns());
  TellHealth(run_->now_ns());
  for (Guest& guest : guests_) guest.stalled_until_ns = 0;
  for (size_t part = 0; part < server_.parts(); ++part) server_.EndStall(part);
  if (!server_.up()) server_.ContinueNow();
}

bool World::AllIdle() const {
  return std::all_of(guests_.begin(), guests_.end(),
                     [](const Guest& guest) { return guest.client->idle(); });
}

void World::CheckAtTheEnd() {
  if (over()) return;
  for (const Guest& guest : guests_) {
    if (!guest.client->CheckIsBack()) return;
  }
  if (server_.busy() > 0) {
    run_->Fail(Check::kEverythingBack, absl::StrCat("server: ", server_.busy()));
  }
  CheckLockWords();
  // Every client must still be able to read every key.
  for (Guest& guest : guests_) guest.client->ReadAll();
  pace_.StepUntil(run_->now_ns() + kDrainNsMax, [this] { return AllIdle(); });
  history_.Check();
  if (scenario_.crowded) CheckRefusals();
  if (scenario_.besieged) CheckSiege();
  if (!over() && scenario_.fills)
    CheckRoom(run_, &server_.store(), &server_.writes(), server_.now().server_time);
  if (!over() && !scenario_.crowded) CheckBatch();
}

void World::CheckLockWords() {
  const auto& words = server_.lock_words();
  for (size_t i = 0; i < words.size(); ++i) {
    const uint64_t word = LoadWord(&words[i]);
    const bool held = std::any_of(guests_.begin(), guests_.end(),
                                  [word](const Guest& guest) { return guest.client->Holds(word); });
    if (word != 0 && !held) {
      run_->Fail(Check::kLocksHaveHolders,
                 absl::StrCat("lock word ", i, " is held by connection ",
                              LockWord(word).connection_id(), ", and no client knows of it"));
    }
  }
}

}  // namespace gannet::simulation
