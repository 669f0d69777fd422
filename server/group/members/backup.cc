// A member that is not primary: it joins, follows its primary, survives another one, takes over, or
// keeps its items until there is a primary. JoinTurn works until it is in sync, BackupTurn
// afterwards, by what Takeover decides. A link that is over is fenced before anything of its ring
// is read for the last time, and before another one begins.

#include "server/group/members/backup.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "glog/logging.h"
#include "server/group/replica/group_standing.h"
#include "server/group/replica/restart.h"

namespace gannet {
namespace {

// So long after the last record.
constexpr int64_t kBusyNs = 20 * kNsPerMs;
// A member that joins finds a primary sooner, if there is one. Then it tells what it waits for.
constexpr int64_t kAloneNs = 2 * kNsPerSecond;

// Returns whether the disk has all that the primary is going to count on. The store has it.
bool IsKept(const GroupContext& context) {
  MemberDisk* const disk = context.disk;
  if (disk == nullptr || !disk->always()) return true;
  if (!disk->begun()) disk->Begin(context.group.directory->terms().history, 0);
  return disk->whole();
}

// Of those that have items of the same history as this process.
std::string BestFormerDisk(const GroupContext& context) {
  const std::optional<NodeSeen> own = context.group.directory->NodeOf(context.self.node);
  if (!own || !own->kept) return context.self.node;
  return BestDisk(context.group.directory->terms().members, own->kept->history,
                  *context.group.directory);
}

}  // namespace

Backup::Backup(const GroupContext& context, AuthFile* keys)
    : context_(context),
      kept_at_(context.disk != nullptr ? context.disk->former_path() : ""),
      times_{.lease_ns = int64_t{context.group.terms.lease_ms} * kNsPerMs},
      dialer_(context, keys),
      applier_(context),
      join_target_(context.store) {}

Backup::~Backup() = default;

void Backup::To(BackupState next) {
  state_.To(next);
  switch (next) {
    case BackupState::kCopied:
      LOG(INFO) << "copied " << joiner_->items() << " items, " << joiner_->bytes() << " bytes";
      break;
    case BackupState::kInSync:
      if (takeover_) break;  // an operator forces it
      LOG(INFO) << "becomes a backup, in sync, of " << known_.configuration.primary.node
                << ", primary of epoch " << known_.configuration.epoch;
      break;
    case BackupState::kKeeps:
      LOG(WARNING) << "is not in sync any more. Keeps its items until it finds a primary";
      break;
    case BackupState::kLeads:
      if (takeover_) break;
      Tell(known_.configuration.epoch == 1 ? "founds the group" : "begins the group anew");
      break;
    default:
      break;
  }
  if (next != BackupState::kCopied && next != BackupState::kInSync) return;
  applier_.TellJoiner(nullptr);
  joiner_.reset();
}

void Backup::End(std::string why) {
  why_ = std::move(why);
  To(BackupState::kEnds);
}

void Backup::Tell(const std::string& line) {
  if (std::exchange(told_, line) != line) LOG(INFO) << line;
}

Backup::Outcome Backup::Poll(BootTime now) {
  next_at_ = now + times_.beacon_ns();
  if (retired_) {
    retired_->Poll(now);
    if (retired_->fenced()) retired_.reset();
    next_at_ = std::min(next_at_, now + kLookNs);
  }
  PollLink(now);
  Apply();
  if (now < busy_until_) next_at_ = std::min(next_at_, now + kLookNs);
  if (state_.now() != BackupState::kEnds) Turn(now);
  if (state_.now() == BackupState::kLeads) return Outcome::kLead;
  return state_.now() == BackupState::kEnds ? Outcome::kEnd : Outcome::kGoesOn;
}

void Backup::Turn(BootTime now) {
  if (!applier_.status().ok()) return End(std::string(applier_.status().message()));
  if (takeover_) return BackupTurn(now);
  JoinTurn(now);
}

void Backup::Leave(BootTime now) {
  if (Hears(now)) takeover_->Leave(context_.group.directory->terms().min_copies);
}

void Backup::Apply() {
  if (!log_) return;
  const uint64_t before = log_->applied();
  log_->Apply([this](const RingRecord& record, uint64_t, uint64_t) { applier_.Apply(record); },
              [this](const ProvenUpdates& updates) { applier_.ApplyUpdates(updates); });
  if (log_->applied() != before) busy_until_ = next_at_ - times_.beacon_ns() + kBusyNs;
  // A touch that lets an item live longer may be on its way until then.
  if (told_clock_ != ServerTime() && log_->applied() >= told_committed_) {
    context_.server->FollowClock(std::exchange(told_clock_, ServerTime()));
  }
}

void Backup::PollLink(BootTime now) {
  if (!link_) return;
  BackupLink& end = *link_->end;
  end.Poll(now);
  while (const auto message = end.Take()) OnMessage(*message, now);
  if (end.status().ok() || link_->lost) return;
  link_->lost = true;
  if (end.said_hello() && !end.welcomed()) versions_.OnClosedWithoutAnswer();
  Tell(absl::StrCat("no link to the primary: ", end.why()));
}

void Backup::OnMessage(const BackupLink::Message& message, BootTime now) {
  if (const auto* welcome = std::get_if<ReplicaWelcome>(&message)) return OnWelcome(*welcome, now);
  if (const auto* told = std::get_if<BackupLink::ToldBeacon>(&message)) return OnBeacon(*told);
  if (const auto* refused = std::get_if<BackupLink::Refused>(&message)) {
    versions_.OnRefused();
    if (refused->why) Tell(absl::StrCat("the primary refuses this server: ", *refused->why));
  }
  const auto* other = std::get_if<BackupLink::OutOfPlace>(&message);
  const bool is_beacon = other != nullptr && other->kind == ReplicaKind::kBeacon;
  link_->lost = link_->lost || !is_beacon;
}

void Backup::OnWelcome(const ReplicaWelcome& welcome, BootTime now) {
  if (welcome.epoch != link_epoch_ || welcome.incarnation != link_->primary) {
    link_->lost = true;
    return;
  }
  if (const absl::Status accepted = link_->end->Accept(welcome); !accepted.ok()) {
    link_->lost = true;
    return Tell(std::string(accepted.message()));
  }
  versions_.OnStream(welcome.stream_version);
  heard_ = now;
  times_ = TimesOf(welcome);
  if (takeover_) takeover_->OnWelcome(times_);
  clock_.OnPrimary(ServerTime::FromMs(welcome.clock_ms), now);
  applier_.OnVersion(welcome.version_next);
  if (state_.now() == BackupState::kSeeks) BeginToFollow(welcome, now);
  if (state_.now() == BackupState::kEnds) return;
  const bool follows = log_->Follow(
      link_->end->ring(), BeginOf(welcome), welcome.tail_end,
      [this](const RingRecord& record, uint64_t, uint64_t) { applier_.Apply(record); });
  if (!follows) link_->lost = true;
  if (follows) stream_epoch_ = link_epoch_;
}

// What a former primary's stream brought behind what is applied may be in another order in this
// epoch.
uint64_t Backup::Received() {
  if (!log_) return 0;
  return stream_epoch_ == known_.configuration.epoch ? log_->Received() : log_->applied();
}

// The clock is read after the beacon was taken. A process that was stopped in between would begin
// to wait for G before the beacon was sent, and take over while its answer keeps the lease valid.
void Backup::OnBeacon(const BackupLink::ToldBeacon& told) {
  const Beacon& beacon = told.beacon;
  const BootTime now = context_.clocks.boot.Now();
  if (takeover_ && !takeover_->OnBeacon(now)) return;
  heard_ = now;
  const ServerTime clock = ServerTime::FromMs(beacon.clock_ms);
  clock_.OnPrimary(clock, now, told.last);
  log_->OnCommitted(beacon.committed);
  // What was decided before the stream began, and was not published, is in neither.
  if (state_.now() == BackupState::kFollows &&
      beacon.committed >= link_->end->welcome().first_lsn) {
    joiner_->BeginWalk();
    To(BackupState::kCopies);
  }
  told_clock_ = clock;
  told_committed_ = beacon.committed;
  Apply();
  link_->end->Answer(beacon, log_->applied(), log_->consumed());
}

void Backup::Retire() {
  link_->end->BeginFence();
  retired_ = std::move(link_->end);
  link_.reset();
}

void Backup::Connect(const GroupMember& primary, BootTime now) {
  const std::optional<std::string> address = context_.group.directory->AddressOf(primary);
  if (!address) {
    try_at_ = now + kRetryNs;
    return Tell(absl::StrCat("the address of the primary, ", primary.node, ", is not known yet"));
  }
  auto dialed = dialer_.Dial({.endpoint = *address,
                              .token = context_.random->NextNonzero(),
                              .ring_bytes = context_.group.terms.ring_bytes,
                              .deadline = now + times_.lease_ns});
  if (!dialed.ok()) {
    try_at_ = now + kRetryNs;
    return Tell(std::string(dialed.status().message()));
  }
  if (*dialed == nullptr) {
    try_at_ = now + (takeover_ ? kLookNs : kRetryNs);  // a primary waits for survivors
    return Tell(absl::StrCat("looks up the name of the primary, ", *address));
  }
  link_.emplace(Link{.end = *std::move(dialed), .primary = primary.incarnation});
  heard_ = now;
}

void Backup::SendHello(uint64_t epoch) {
  ReplicaHello hello = NewReplicaHello();
  hello.history = takeover_ ? history_ : 0;
  hello.epoch = epoch;
  hello.applied = hello.end = log_ ? log_->applied() : 0;
  hello.memory_bytes = context_.grant.region_bytes;
  hello.workers = context_.workers;
  hello.stream_version_min = versions_.Say().min;
  hello.stream_version_max = versions_.Say().max;
  link_epoch_ = epoch;
  link_->end->SayHello(hello, context_.self);
}

bool Backup::TakeAnswer() {
  const auto answer = context_.group.config_store->Poll();
  if (!answer) return false;
  const bool was_alone = std::exchange(asked_, Asked::kNothing) == Asked::kNow;
  if (answer->result == ConfigStore::Result::kUnknown) return false;
  known_ = answer->now;
  // Otherwise it may be older than what the primary did with this member in between.
  return was_alone;
}

void Backup::JoinTurn(BootTime now) {
  const bool was_read = TakeAnswer();
  if (const auto seen = context_.group.config_store->Seen();
      seen && seen->revision > known_.revision) {
    known_ = *seen;
  }
  const GroupConfiguration& configuration = known_.configuration;
  const bool seeks = state_.now() == BackupState::kSeeks;
  if (seeks && configuration.primary == context_.self) return To(BackupState::kLeads);
  if (!seeks && configuration.IsInSync(context_.self)) {
    To(BackupState::kInSync);
    takeover_.emplace(times_, context_.group.config_store, context_.self, known_, link_epoch_,
                      heard_, now);
    return BackupTurn(now);
  }
  if (link_ && !link_->lost && now - heard_ <= 2 * times_.grace_ns()) {
    if (asked_ == Asked::kNow) asked_ = Asked::kBeforeALink;
    if (link_->end->open() && !link_->end->said_hello()) SendHello(configuration.epoch);
    if (!seeks) CopyItems(now);
    return;
  }
  if (was_read) return OnRegister(known_, now);
  if (asked_ == Asked::kNothing && now >= try_at_) {
    context_.group.config_store->Read();
    asked_ = Asked::kNow;
  }
}

// The walk's filter hears of all that the stream brings, so the joiner is there when that begins.
void Backup::BeginToFollow(const ReplicaWelcome& welcome, BootTime now) {
  log_.emplace(welcome.first_lsn);
  history_ = welcome.history;
  context_.server->FollowClock(ServerTime::FromMs(welcome.clock_ms));
  auto joiner = dialer_.BeginWalk(*link_->end, {.target = &join_target_,
                                                .server_time = context_.server,
                                                .clocks = context_.clocks,
                                                .now = now});
  if (!joiner.ok()) return End(std::string(joiner.status().message()));
  joiner_ = *std::move(joiner);
  applier_.TellJoiner(joiner_.get());
  To(BackupState::kFollows);
}

void Backup::CopyItems(BootTime now) {
  if (state_.now() == BackupState::kReady) return;
  if (state_.now() == BackupState::kCopied) return TellThatItIsReady(now);
  switch (joiner_->Poll(now)) {
    case Joiner::Step::kGoesOn:
      return;
    case Joiner::Step::kFailed:
      return End(std::string(joiner_->status().message()));
    case Joiner::Step::kDone:
      break;
  }
  applier_.OnVersion(joiner_->version_next());
  To(BackupState::kCopied);
  TellThatItIsReady(now);
}

void Backup::TellThatItIsReady(BootTime now) {
  next_at_ = std::min(next_at_, now + kLookNs);
  if (!IsKept(context_)) return;
  To(BackupState::kReady);
  ReplicaReady ready = NewReplicaReady();
  ready.epoch = link_epoch_;
  link_->end->Send(ready);
}

// It was read after the link was gone, so it is known whether this member is in sync.
void Backup::OnRegister(const GroupRegister& known, BootTime now) {
  try_at_ = now + kRetryNs;
  if (state_.now() != BackupState::kSeeks) {
    return End("the link to the primary was lost before all items were there");
  }
  if (link_) return Retire();
  if (known.configuration.epoch == 0) return Found(known);
  if (TryToBeginAgain(known, now)) return;
  if (!retired_) Connect(known.configuration.primary, now);
}

bool Backup::TryToBeginAgain(const GroupRegister& known, BootTime now) {
  if (search_.alone_since == BootTime()) search_.alone_since = now;
  if (kept_at_.empty() || search_.claim_failed) return false;
  const GroupTerms terms = context_.group.directory->terms();
  const RestartPlan plan = PlanRestart(known.configuration, terms, *context_.group.directory);
  if (plan.leader != context_.self) {
    if (!plan.awaits.empty() && now - search_.alone_since > kAloneNs) {
      Tell(absl::StrCat("does not begin the group again with what disks have: ", plan.awaits,
                        ". If that does not change, begin with the disk that is best of those "
                        "that are known",
                        plan.best.empty() ? ": kvcli cluster status shows them"
                                          : absl::StrCat(", that of ", plan.best,
                                                         ": kvcli cluster force GROUP --from=",
                                                         plan.best, " --lose-data")));
    }
    return false;
  }
  if (search_.history == 0) search_.history = context_.random->NextNonzero();
  const uint64_t epoch = known.configuration.epoch + 1;
  if (search_.claimed_epoch != epoch) {
    LOG(WARNING) << "all who were in sync in epoch " << known.configuration.epoch
                 << " are gone, and have come back. Begins the group again with what " << kept_at_
                 << " has";
    if (const absl::Status claimed = context_.disk->Claim(terms.history, search_.history, epoch);
        !claimed.ok()) {
      search_.claim_failed = true;
      LOG(ERROR) << "cannot begin the group again: " << claimed.message();
      return false;
    }
    search_.claimed_epoch = epoch;
  }
  asked_ = Asked::kNow;
  context_.group.config_store->BeginAgain(
      known.revision, {.epoch = epoch, .primary = context_.self, .in_sync = {context_.self}},
      search_.history, plan.others);
  return true;
}

// A group that nobody has founded is empty. So the items of an earlier run do not belong to it,
// unless an operator says so.
void Backup::Found(const GroupRegister& known) {
  if (!kept_at_.empty()) {
    return Tell(absl::StrCat(
        "does not found the group, because ", kept_at_,
        " has items of an earlier run. To begin with the best disk that is known when all members "
        "have come back: kvcli cluster force GROUP --from=",
        BestFormerDisk(context_),
        " --lose-data. To begin empty: remove that directory, and start again"));
  }
  if (const auto nodes = context_.group.directory->WithItems(); !nodes.empty()) {
    return Tell(absl::StrCat(
        "does not found the group, because ", absl::StrJoin(nodes, ", "),
        " said that it had the group's items when etcd had lost the group. kvcli cluster status "
        "says what to do"));
  }
  asked_ = Asked::kNow;
  context_.group.config_store->Txn(
      known.revision, {.epoch = 1, .primary = context_.self, .in_sync = {context_.self}});
}

void Backup::BackupTurn(BootTime now) {
  const Takeover::Step step = takeover_->Poll(now);
  // The revision says whether it is the same. A copy costs a lot.
  if (known_.revision != takeover_->known().revision) known_ = takeover_->known();
  const bool was_in_sync = state_.now() == BackupState::kInSync;
  if (was_in_sync && takeover_->out()) To(BackupState::kOut);
  if (!was_in_sync && !takeover_->out()) To(BackupState::kInSync);
  // Nobody reads from the primary from when its lease is over until this member is out.
  if (takeover_->leaves_silently()) next_at_ = std::min(next_at_, now + kLookNs);
  switch (step) {
    case Takeover::Step::kFollow:
    case Takeover::Step::kWait:
      return;
    case Takeover::Step::kFence:
      TellWhyItLeaves(now);
      Fence();
      next_at_ = std::min(next_at_, now + kLookNs);
      return;
    case Takeover::Step::kConnect:
      ConnectAsSurvivor(now);
      next_at_ = std::min(next_at_, now + kLookNs);
      return;
    case Takeover::Step::kLead:
      return To(BackupState::kLeads);
    case Takeover::Step::kEnd:
      return KeepUntilAPrimaryLives(now);
  }
}

// The register may name a primary that is dead: a transaction may be executed after its sender's
// death. Then an operator may force this member, which is to have its items still. They are thrown
// away only once there is a primary to copy them from.
void Backup::KeepUntilAPrimaryLives(BootTime now) {
  if (state_.now() == BackupState::kOut) {
    next_at_ = std::min(next_at_, now + kLookNs);
    Fence();
    if (!link_ && state_.now() == BackupState::kOut) To(BackupState::kKeeps);
    return;
  }
  next_at_ = std::min(next_at_, now + kRetryNs);
  const GroupMember& primary = known_.configuration.primary;
  if (link_ && (link_->lost || link_->primary != primary.incarnation)) {
    if (!retired_) Retire();
    try_at_ = now + kRetryNs;
  } else if (link_ && link_->end->open()) {  // others than the primary refuse it
    End("this member is not in sync any more");
  } else if (!link_ && now >= try_at_ && !retired_) {
    Connect(primary, now);
  }
}

// From when the hello is sent, the primary may write.
void Backup::ConnectAsSurvivor(BootTime now) {
  const GroupConfiguration& configuration = known_.configuration;
  if (link_ && (link_->lost || link_->primary != configuration.primary.incarnation)) {
    if (!retired_) Retire();
    try_at_ = now + kRetryNs / 2;
    return;
  }
  if (!link_) {
    if (now >= try_at_ && !retired_) Connect(configuration.primary, now);
    return;
  }
  if (!link_->end->open()) return;
  takeover_->OnHello();
  SendHello(configuration.epoch);
}

// Once for each link.
void Backup::TellWhyItLeaves(BootTime now) {
  if (!link_ || std::exchange(left_epoch_, link_epoch_) == link_epoch_) return;
  const uint64_t epoch = known_.configuration.epoch;
  LOG(WARNING) << "leaves the primary of epoch " << link_epoch_ << ": "
               << (takeover_->leaves_silently() ? std::string("this server stops")
                   : epoch > link_epoch_
                       ? absl::StrCat(known_.configuration.primary.node, " is primary of epoch ",
                                      epoch)
                       : absl::StrCat("no beacon for ", (now - heard_) / kNsPerMs, " ms"));
}

// Nothing is read from the ring before both queue pairs are flushed.
void Backup::Fence() {
  if (link_) {
    link_->end->BeginFence();
    if (!link_->end->fenced()) return;
  }
  const bool fits = log_->Seal();
  link_.reset();
  if (!fits) return End("two streams do not fit together");
  takeover_->OnFenced();
}

bool Backup::Hears(BootTime now) const {
  return in_sync() && link_ && link_->end->welcomed() && !link_->lost &&
         link_epoch_ == known_.configuration.epoch && now - heard_ < times_.silence_ns() / 2;
}

BootTime Backup::SilentFrom() const {
  if (!takeover_) return BootTime::Never();
  const GroupConfiguration& configuration = known_.configuration;
  if (configuration.primary == context_.self) return {};  // it opens soon
  // Whoever is named in the register may serve already.
  if (configuration.epoch != link_epoch_ || takeover_->out()) return BootTime::Never();
  if (link_ && link_->lost) return {};
  return heard_ + times_.silence_ns() / 2;
}

uint8_t Backup::joined_percent() const {
  if (whole() || state_.now() == BackupState::kCopied || state_.now() == BackupState::kReady) {
    return 100;
  }
  return joiner_ ? static_cast<uint8_t>(100 * std::clamp(joiner_->done(), 0.0, 1.0)) : 0;
}

RingTail Backup::TakeTail() {
  GANNET_CHECK(state_.now() == BackupState::kLeads, "it is not to be primary");
  return log_ ? log_->TakeTail() : RingTail(0);
}

ServerTime Backup::ClockAtTakeover(BootTime now) const {
  return log_ ? clock_.AtTakeover(times_, now) : ServerTime();
}

absl::Status Backup::Arm(BootTime now) {
  if (joiner_) {
    next_at_ = joiner_->PrepareToSleep(now) ? std::min(next_at_, joiner_->deadline()) : now;
  }
  return link_ ? link_->end->Arm() : absl::OkStatus();
}

void Backup::Woken() {
  if (link_) link_->end->Woken();
}

std::vector<int> Backup::fds() const {
  std::vector<int> fds;
  if (link_) link_->end->AddFds(&fds);
  if (joiner_) joiner_->AddFds(&fds);
  return fds;
}

}  // namespace gannet
