#include "tests/server/group/replica/simulated_member.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/server_time.h"

namespace gannet {
SimulatedMember::SimulatedMember(SimulatedWorld* world, size_t node)
    : world_(world),
      node_(node),
      self_{.node = "n" + std::to_string(node), .incarnation = ++world->incarnations},
      store_(&world->time, &world->shared, self_) {}

BootTime SimulatedMember::Clock() const {
  const int64_t now = world_->time.now();
  return BootTime::FromNs(1'000'000'000'000LL * static_cast<int64_t>(node_ + 1) + now +
                          now / 512 * world_->rates[node_]);
}

void SimulatedMember::Found(const GroupRegister& known) {
  primary_ = std::make_unique<SimulatedPrimary>(world_, this, known, RingTail(0), 1);
}

void SimulatedMember::Tell(SimulatedMember* to, std::function<void()> what) {
  world_->time.After(world_->time.Delay(), [this, to, what = std::move(what)] {
    if (!to->alive() || world_->cut[node_][to->node()]) return;
    to->Deliver(what);
  });
}

void SimulatedMember::TellReliably(SimulatedMember* to, std::function<void()> what) {
  const int64_t delay = world_->time.Delay();
  const auto arrive = [this, to, what = std::move(what)] {
    if (!to->alive()) return;
    if (world_->cut[node_][to->node()]) return TellReliably(to, what);
    to->Deliver(what);
  };
  world_->time.After(world_->cut[node_][to->node()] ? 20 * SimulatedTime::kMs : delay, arrive);
}

void SimulatedMember::Turn() {
  if (!alive_ || world_->time.now() < stopped_until_) return;
  if (world_->time.OneIn(100)) store_.Look();
  if (!counts_next_) {
    for (const auto& message : std::exchange(inbox_, {})) {
      message();
      if (!alive_) return;
    }
    if (primary_ && world_->time.Fault(150)) {
      counts_next_ = true;
      StopUntil(world_->time.now() + world_->time.BelowMs(2'000));
      return;
    }
  }
  counts_next_ = false;
  if (primary_) {
    if (leaving_) primary_->HandOverToSomebody();
    primary_->Turn();
    if (primary_->deposed()) End();
  } else if (takeover_) {
    BackupTurn();
  } else if (leaving_ && !ready_) {
    End();
  } else {
    JoinTurn();
  }
}

void SimulatedMember::End() {
  alive_ = false;
  if (link_ && !link_->fenced) {
    link_->fenced = true;
    TellReliably(link_->primary, [link = link_] {
      if (link->primary->primary()) link->primary->primary()->OnBroken(link);
    });
  }
  takeover_.reset();
  log_.reset();
  primary_.reset();
  inbox_.clear();
  world_->time.After(world_->time.BelowMs(500), [this] {
    world_->members.push_back(std::make_unique<SimulatedMember>(world_, node_));
  });
}

std::function<void(const RingRecord&, uint64_t, uint64_t)> SimulatedMember::Apply() {
  return [this](const RingRecord& record, uint64_t lsn, uint64_t) {
    world_->OnApplied(std::string(record.change.key), lsn);
  };
}

void SimulatedMember::Connect(const GroupMember& primary, bool joins) {
  link_ = std::make_shared<SimulatedLink>();
  link_->backup = this;
  link_->ring.resize(SimulatedWorld::kRingBytes / 8);
  heard_ = Clock();
  for (const auto& member : world_->members) {
    if (member->self() == primary) link_->primary = member.get();
  }
  TellReliably(link_->primary, [link = link_, joins] {
    if (link->primary->primary()) link->primary->primary()->OnHello(link, joins);
  });
}

void SimulatedMember::OnWelcome(const LinkPtr& link, const RingReader::Begin& begin,
                                uint64_t tail_end, uint64_t clock_ms) {
  if (link != link_) return;
  link->welcomed = true;
  heard_ = Clock();
  if (!log_) {
    log_.emplace(begin.lsn);
    begins_ = begin.lsn;
    walked_at_ = world_->time.now() + world_->time.BelowMs(300);
  }
  clock_.OnPrimary(ServerTime::FromMs(clock_ms), Clock());
  if (!log_->Follow(SimulatedWorld::BytesOf(&link->ring), begin, tail_end, Apply())) {
    world_->Wrong("the next primary's stream begins behind the end of a ring");
  }
  if (log_->applied() < tail_end) ++world_->tallies.rests;
}

void SimulatedMember::OnBeacon(const LinkPtr& link, uint64_t sequence, uint64_t committed,
                               uint64_t clock_ms, bool last) {
  if (link != link_ || !link->welcomed || link->fenced) return;
  if (takeover_ && !takeover_->OnBeacon(Clock())) return;
  heard_ = Clock();
  clock_.OnPrimary(ServerTime::FromMs(clock_ms), Clock(), last);
  log_->OnCommitted(committed);
  published_ = published_ || committed >= begins_;
  if (world_->time.Fault(30)) return;
  Tell(link->primary, [link, sequence, consumed = log_->consumed()] {
    if (auto* primary = link->primary->primary()) primary->OnAnswer(link, sequence, consumed);
  });
}

void SimulatedMember::JoinTurn() {
  if (log_) log_->Apply(Apply());
  std::optional<GroupRegister> known = store_.Seen();
  const bool lonely = link_ && (link_->broken || Clock() - heard_ > 2 * world_->times.grace_ns());
  bool was_read = false;
  if (const auto answer = store_.Poll()) {
    reading_ = false;
    was_read = answer->result == ConfigStore::Result::kRead;
    if (was_read) known = answer->now;
    was_read = was_read && !followed_since_read_;
  }
  if (log_ && known && known->configuration.IsInSync(self_)) {
    takeover_.emplace(world_->times, &store_, self_, *known, link_epoch_, heard_, Clock());
    ++world_->tallies.joins;
    return;
  }
  // It was read after the link was gone, so it joins as another member.
  if (lonely && was_read) return End();
  if (link_ && !lonely) {
    followed_since_read_ = true;
    if (!log_ || ready_ || !published_ || world_->time.now() < walked_at_) return;
    ready_ = true;
    TellReliably(link_->primary, [link = link_] {
      if (link->primary->primary()) link->primary->primary()->OnReady(link);
    });
    return;
  }
  if (!link_ && was_read) {
    link_epoch_ = known->configuration.epoch;
    return Connect(known->configuration.primary, true);
  }
  if (reading_) return;
  store_.Read();
  reading_ = true;
  followed_since_read_ = false;
}

void SimulatedMember::BackupTurn() {
  if (link_) log_->Apply(Apply());
  const bool hears = link_ && link_->welcomed && Clock() - heard_ < world_->times.silence_ns() / 2;
  if (leaving_ && hears) takeover_->Leave(world_->min_copies);
  switch (takeover_->Poll(Clock())) {
    case Takeover::Step::kFollow:
    case Takeover::Step::kWait:
      return;
    case Takeover::Step::kFence:
      return Fence();
    case Takeover::Step::kConnect:
      takeover_->OnHello();
      return Connect(takeover_->known().configuration.primary, false);
    case Takeover::Step::kLead:
      return Lead();
    case Takeover::Step::kEnd:
      return Out();
  }
}

void SimulatedMember::Out() {
  const GroupConfiguration& now = world_->shared.now.configuration;
  if (now.IsInSync(self_)) {
    // A primary that does not know that it left, nor that it had joined, may have added it again.
    if (leaving_) return;
    world_->Wrong("a member in sync throws its copy away");
  }
  if (!leaving_) return End();
  if (link_) return Fence();
  const bool primary_lives = std::ranges::any_of(world_->members, [&](const auto& it) {
    return it->self() == now.primary && it->alive() && it->primary();
  });
  if (!primary_lives) return;
  ++world_->tallies.leaves;
  End();
}

// Fencing takes a while.
void SimulatedMember::Fence() {
  const int64_t now = world_->time.now();
  if (fenced_at_ == 0) fenced_at_ = now + world_->time.BelowMs(world_->time.Fault(3) ? 300 : 3);
  if (now < fenced_at_) return;
  fenced_at_ = 0;
  link_->fenced = true;
  TellReliably(link_->primary, [link = link_] {
    if (link->primary->primary()) link->primary->primary()->OnBroken(link);
  });
  if (!log_->Seal()) world_->Wrong("two streams do not fit together");
  link_.reset();
  takeover_->OnFenced();
}

void SimulatedMember::Lead() {
  const GroupRegister known = takeover_->known();
  RingTail tail = log_->TakeTail();
  if (tail.begin() != log_->applied()) world_->Wrong("a tail begins elsewhere");
  const bool is_primary = world_->shared.now.configuration.primary == self_;
  if (is_primary && SimulatedWorld::NumberOf(tail.end()) < world_->committed.size()) {
    world_->Wrong("what was committed is lost");
  }
  const uint64_t clock_ms = clock_.AtTakeover(world_->times, Clock()).ms();
  if (is_primary && static_cast<int64_t>(clock_ms) < world_->primary_clock_ms) {
    world_->Wrong("the new primary's clock is behind the former one's");
  }
  ++world_->tallies.takeovers;
  takeover_.reset();
  log_.reset();
  primary_ = std::make_unique<SimulatedPrimary>(world_, this, known, std::move(tail), clock_ms);
}

}  // namespace gannet
