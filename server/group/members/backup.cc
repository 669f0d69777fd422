// A member that is not primary: it joins, follows its primary, survives another one, takes over, or
// keeps its items until there is a primary. JoinTurn works until it is in sync, BackupTurn
// afterwards, by what Takeover decides. A link that is over is fenced before anything of its ring
// is read for the last time, and before another one begins.

#include "server/group/members/backup.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "glog/logging.h"

namespace gannet {
namespace {

// Returns whether the disk has all that the primary is going to count on. The store has it.
bool IsKept(const GroupContext& context) {
  MemberDisk* const disk = context.disk;
  if (disk == nullptr || !disk->always()) return true;
  if (!disk->begun()) disk->Begin(context.group.directory->terms().history, 0);
  return disk->whole();
}

}  // namespace

Backup::Backup(const GroupContext& context, AuthFile* keys)
    : context_(context),
      times_{.lease_ns = int64_t{context.group.terms.lease_ms} * kNsPerMs},
      entry_(context, &log_),
      links_(context, keys, &log_),
      copy_(context) {}

Backup::~Backup() = default;

void Backup::To(BackupState next) {
  state_.To(next);
  switch (next) {
    case BackupState::kInSync:
      copy_.EndWalk();
      if (takeover_) break;  // an operator forces it
      LOG(INFO) << "becomes a backup, in sync, of " << known().configuration.primary.node
                << ", primary of epoch " << known().configuration.epoch;
      break;
    case BackupState::kKeeps:
      LOG(WARNING) << "is not in sync any more. Keeps its items until it finds a primary";
      break;
    case BackupState::kLeads:
      if (takeover_) break;
      log_.Add(known().configuration.epoch == 1 ? "founds the group" : "begins the group anew");
      break;
    default:
      break;
  }
}

void Backup::End(std::string why) {
  why_ = std::move(why);
  To(BackupState::kEnds);
}

Backup::Outcome Backup::Poll(BootTime now) {
  next_at_ = now + times_.beacon_ns();
  // What is due and is not done then has a time of its own.
  if (const BootTime at = links_.AnotherAt(times_); at > now) next_at_ = std::min(next_at_, at);
  if (links_.flushes()) next_at_ = std::min(next_at_, now + kLookNs);
  links_.Poll(now);
  while (const auto message = links_.Take()) {
    if (const auto* welcome = std::get_if<ReplicaWelcome>(&*message)) OnWelcome(*welcome, now);
    // If the welcome's stream cannot be followed, an answer would say that it is.
    const auto* told = std::get_if<BackupLink::ToldBeacon>(&*message);
    if (told != nullptr && links_.usable()) OnBeacon(*told);
  }
  copy_.Apply(now);
  if (copy_.busy(now)) next_at_ = std::min(next_at_, now + kLookNs);
  if (state_.now() != BackupState::kEnds) Turn(now);
  if (state_.now() == BackupState::kLeads) return Outcome::kLead;
  return state_.now() == BackupState::kEnds ? Outcome::kEnd : Outcome::kGoesOn;
}

void Backup::Turn(BootTime now) {
  const absl::Status& applied = copy_.applier().status();
  if (!applied.ok()) return End(std::string(applied.message()));
  if (takeover_) return BackupTurn(now);
  JoinTurn(now);
}

void Backup::Leave(BootTime now) {
  if (Hears(now)) takeover_->Leave(context_.group.directory->terms().min_copies);
}

void Backup::OnWelcome(const ReplicaWelcome& welcome, BootTime now) {
  if (!links_.Accept(welcome, now)) return;
  if (goes_on_at_ && BeginOf(welcome) != *goes_on_at_) return links_.Lose();
  anew_since_.reset();
  times_ = TimesOf(welcome);
  if (takeover_) takeover_->OnWelcome(times_);
  copy_.OnWelcome(welcome, now);
  if (state_.now() == BackupState::kSeeks) {
    if (const absl::Status begun = copy_.Begin(links_, welcome, now); !begun.ok()) {
      return End(std::string(begun.message()));
    }
    To(BackupState::kFollows);
  }
  if (state_.now() == BackupState::kEnds) return;
  if (!copy_.Follow(*links_.link())) return links_.Lose();
  // The former link may not have brought its word.
  if (state_.now() == BackupState::kReady) links_.SayReady();
}

// The clock is read after the beacon was taken. A process that was stopped in between would begin
// to wait for G before the beacon was sent, and take over while its answer keeps the lease valid.
void Backup::OnBeacon(const BackupLink::ToldBeacon& told) {
  const Beacon& beacon = told.beacon;
  const BootTime now = context_.clocks.boot.Now();
  if (takeover_ && !takeover_->OnBeacon(now)) return;
  links_.Hear(now);
  copy_.OnBeacon(told, now);
  BackupLink& link = *links_.link();
  // What was decided before the stream began, and was not published, is in neither.
  if (state_.now() == BackupState::kFollows && beacon.committed >= link.welcome().first_lsn) {
    copy_.walk()->BeginWalk();
    To(BackupState::kCopies);
  }
  link.Answer(beacon, copy_.applied(), copy_.consumed());
}

// Whoever is in sync says so by the history of what it has. Who has followed this primary before
// says where it goes on.
void Backup::SayHello() {
  goes_on_at_ = copy_.GoesOnAt(known().configuration.epoch);
  if (goes_on_at_) return links_.SayResume(known().configuration.epoch, *goes_on_at_);
  links_.SayHello(known().configuration.epoch, takeover_ ? copy_.history() : 0, copy_.applied());
}

void Backup::JoinTurn(BootTime now) {
  const bool was_read = entry_.Poll();
  const GroupConfiguration& configuration = entry_.known().configuration;
  const bool seeks = state_.now() == BackupState::kSeeks;
  if (seeks && configuration.primary == context_.self) return To(BackupState::kLeads);
  if (!seeks && configuration.IsInSync(context_.self)) {
    To(BackupState::kInSync);
    const bool said_hello = links_.link() != nullptr && links_.link()->said_hello();
    takeover_.emplace(times_, context_.group.config_store, context_.self, entry_.known(),
                      said_hello ? links_.epoch() : 0, links_.heard(), now);
    return BackupTurn(now);
  }
  if (!seeks && MakesLinkAnew(now)) return;
  if (links_.usable() && now - links_.heard() <= 2 * times_.grace_ns()) {
    entry_.OnLink();
    if (links_.link()->open() && !links_.link()->said_hello()) SayHello();
    if (!seeks) CopyItems(now);
    return;
  }
  if (was_read) return OnRegister(now);
  entry_.AskIfDue(now);
}

// The primary keeps the joiner's place in its ring for a while. What is in the former ring is read
// to its end first, and kept: the primary counts on it.
bool Backup::MakesLinkAnew(BootTime now) {
  if (links_.IsDueForAnother(times_, now)) {
    if (!anew_since_) anew_since_ = now;
    if (now - *anew_since_ > times_.grace_ns()) return false;
    next_at_ = std::min(next_at_, now + kLookNs);
    if (!links_.Fence()) return true;
    const bool fits = copy_.Seal();
    links_.Drop();
    if (!fits) End("two streams do not fit together");
    return true;
  }
  if (links_.link() != nullptr || !anew_since_ || now - *anew_since_ > times_.grace_ns()) {
    return false;
  }
  next_at_ = std::min(next_at_, now + kLookNs);
  links_.Connect(known().configuration.primary, times_.lease_ns, now);
  return true;
}

void Backup::CopyItems(BootTime now) {
  if (state_.now() == BackupState::kReady) return;
  if (state_.now() != BackupState::kCopied) {
    const absl::StatusOr<bool> copied = copy_.Walk(now);
    if (!copied.ok()) return End(std::string(copied.status().message()));
    if (!*copied) return;
    To(BackupState::kCopied);
  }
  next_at_ = std::min(next_at_, now + kLookNs);
  if (!IsKept(context_) || !links_.link()->welcomed()) return;
  To(BackupState::kReady);
  links_.SayReady();
}

// It was read after the link was gone, so it is known whether this member is in sync.
void Backup::OnRegister(BootTime now) {
  entry_.Rest(now + kRetryNs);
  if (state_.now() != BackupState::kSeeks) {
    return End("the link to the primary was lost before all items were there");
  }
  if (links_.link() != nullptr) return links_.Retire(now + kRetryNs);
  if (entry_.TryToLead(now)) return;
  links_.Connect(known().configuration.primary, times_.lease_ns, now);
}

void Backup::BackupTurn(BootTime now) {
  const Takeover::Step step = takeover_->Poll(now);
  const bool was_in_sync = state_.now() == BackupState::kInSync;
  if (was_in_sync && takeover_->out()) To(BackupState::kOut);
  if (!was_in_sync && !takeover_->out()) To(BackupState::kInSync);
  // Nobody reads from the primary from when its lease is over until this member is out.
  if (takeover_->leaves_silently()) next_at_ = std::min(next_at_, now + kLookNs);
  switch (step) {
    case Takeover::Step::kFollow:
      // Nor is a beacon heard by then, and the link is whole.
      if (takeover_->leaves_silently() || !links_.IsDueForAnother(times_, now)) return;
      LOG(WARNING) << "makes the link to the primary anew over another rail: "
                   << (links_.usable() ? "nothing comes by this one" : "it is over");
      takeover_->MakeLinkAnew();
      next_at_ = now;
      return;
    case Takeover::Step::kWait:
      return;
    case Takeover::Step::kFence:
      if (!takeover_->makes_link_anew()) TellWhyItLeaves(now);
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
    if (links_.link() == nullptr && state_.now() == BackupState::kOut) To(BackupState::kKeeps);
    return;
  }
  next_at_ = std::min(next_at_, now + kRetryNs);
  const GroupMember& primary = known().configuration.primary;
  if (links_.link() == nullptr) {
    links_.Connect(primary, times_.lease_ns, now);
  } else if (!links_.IsUsableFor(primary)) {
    links_.Retire(now + kRetryNs);
  } else if (links_.link()->open()) {  // others than the primary refuse it
    End("this member is not in sync any more");
  }
}

// From when the hello is sent, the primary may write.
void Backup::ConnectAsSurvivor(BootTime now) {
  const GroupMember& primary = known().configuration.primary;
  if (links_.link() == nullptr) return links_.Connect(primary, times_.lease_ns, now);
  if (!links_.IsUsableFor(primary) || links_.IsDueForAnother(times_, now)) {
    return links_.Retire(now + kRetryNs / 2);
  }
  if (!links_.link()->open()) return;
  takeover_->OnHello();
  SayHello();
}

// Once for each link.
void Backup::TellWhyItLeaves(BootTime now) {
  const uint64_t left = links_.epoch();
  if (links_.link() == nullptr || std::exchange(left_epoch_, left) == left) return;
  const uint64_t epoch = known().configuration.epoch;
  LOG(WARNING) << "leaves the primary of epoch " << left << ": "
               << (takeover_->leaves_silently() ? std::string("this server stops")
                   : epoch > left
                       ? absl::StrCat(known().configuration.primary.node, " is primary of epoch ",
                                      epoch)
                       : absl::StrCat("no beacon for ", (now - links_.heard()) / kNsPerMs, " ms"));
}

// Nothing is read from the ring before both queue pairs are flushed.
void Backup::Fence() {
  if (!links_.Fence()) return;
  const bool fits = copy_.Seal();
  links_.Drop();
  if (!fits) return End("two streams do not fit together");
  takeover_->OnFenced();
}

bool Backup::Hears(BootTime now) const {
  return in_sync() && links_.usable() && links_.link()->welcomed() &&
         links_.epoch() == known().configuration.epoch &&
         now - links_.heard() < times_.silence_ns() / 2;
}

BootTime Backup::SilentFrom() const {
  if (!takeover_) return BootTime::Never();
  const GroupConfiguration& configuration = known().configuration;
  if (configuration.primary == context_.self) return {};  // it opens soon
  // Whoever is named in the register may serve already.
  if (configuration.epoch != links_.epoch() || takeover_->out()) return BootTime::Never();
  if (links_.link() != nullptr && !links_.usable()) return {};
  return links_.heard() + times_.silence_ns() / 2;
}

RingTail Backup::TakeTail() {
  GANNET_CHECK(state_.now() == BackupState::kLeads, "it is not to be primary");
  return copy_.TakeTail();
}

absl::Status Backup::Arm(BootTime now) {
  if (Joiner* const walk = copy_.walk()) {
    next_at_ = walk->PrepareToSleep(now) ? std::min(next_at_, walk->deadline()) : now;
  }
  BackupLink* const link = links_.link();
  return link != nullptr ? link->Arm() : absl::OkStatus();
}

void Backup::Woken() {
  if (BackupLink* const link = links_.link()) link->Woken();
}

std::vector<int> Backup::fds() const {
  std::vector<int> fds;
  if (const BackupLink* const link = links_.link()) link->AddFds(&fds);
  if (const Joiner* const walk = copy_.walk()) walk->AddFds(&fds);
  return fds;
}

}  // namespace gannet
