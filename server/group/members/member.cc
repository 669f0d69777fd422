// One Poll of a member: takes what other threads put into the inbox, follows the register, and
// does what its role asks: join, back up, lead, or end. Then it tells observers what it is.

#include "server/group/members/member.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"

namespace gannet {
namespace {

constexpr int64_t kAnnounceNs = kNsPerSecond;
constexpr int64_t kNewsNs = 100 * kNsPerMs;  // clients need not know of a change sooner

}  // namespace

Member::~Member() = default;

absl::StatusOr<std::unique_ptr<Member>> Member::Create(const GroupContext& context,
                                                       GroupStream* stream, uint64_t first_version,
                                                       MemberTask* task) {
  std::unique_ptr<Member> member(new Member(context, stream, first_version, task));
  const std::string& auth_file = context.group.auth_file;
  if (!auth_file.empty()) {
    GANNET_ASSIGN_OR_RETURN(member->keys_, AuthFile::Open(auth_file));
    if (!ReplicaKeyOf(&*member->keys_)) {
      return absl::InvalidArgumentError(
          absl::StrCat(auth_file, " has no key with the right \"replica\", which the ",
                       "servers of a group need: add a line of kvcli genkey --replica"));
    }
  }
  member->backup_ = std::make_unique<Backup>(context, member->keys_ ? &*member->keys_ : nullptr);
  context.store->PauseEvictions(true);
  return member;
}

void Member::Refuse(ReplicaArrival arrival) {
  const struct Reject reject = NewReject(RejectCode::kNotPrimary, context_.standing->elsewhere());
  context_.listener->Reject(std::move(arrival.incoming), std::as_bytes(std::span(&reject, 1)));
  context_.server->Forget(arrival.name);
}

void Member::TakeInbox(BootTime now) {
  if (!inbox_.has_mail()) return;
  MemberInbox::Mail mail = inbox_.Take();
  for (ReplicaArrival& arrival : mail.arrivals) {
    if (primary_ != nullptr && !ended()) {
      primary_->OnArrival(std::move(arrival), now);
    } else {
      Refuse(std::move(arrival));
    }
  }
  if (primary_ == nullptr) return;
  for (const uint64_t name : mail.gone) primary_->OnGone(name, now);
}

// Who may be counted on keeps what it has until it is known that nobody does. A node is in sync
// once.
bool Member::MayBeCountedOn() const {
  if (primary_ != nullptr || backup_->whole()) return true;
  const std::vector<GroupMember>& in_sync = backup_->known().configuration.in_sync;
  return backup_->may_count() &&
         std::ranges::find(in_sync, context_.group.node, &GroupMember::node) == in_sync.end();
}

bool Member::Poll(BootTime now) {
  TakeInbox(now);
  if (ended()) return false;
  if (!MayBeCountedOn() && context_.group.directory->Replaced()) {
    End(absl::StrCat(
        "another process is called ", context_.group.node,
        ", too, and has come later or is in sync. Only one may run: stop one of them"));
    return false;
  }
  Announce(now);
  // Workers that sleep have to see it, too (PartitionEnd).
  bool published = news_.TellPartitions();
  if (now >= news_at_) {
    news_at_ = now + kNewsNs;
    news_.TellMap();
    news_.TellOfPolicy();
    TellMembers();
  }
  if (leaves_.load(std::memory_order_relaxed)) LeaveTurn(now);
  if (primary_ != nullptr) {
    published |= primary_->Turn(now);
    if (primary_->deposed()) End("another member is primary now");
    if (HasTask()) {
      const GroupRegister own = primary_->known();
      task_->Poll(now, own);
    }
  } else {
    const Backup::Outcome outcome = backup_->Poll(now);
    if (context_.disk != nullptr && backup_->in_sync() && !context_.disk->begun()) {
      context_.disk->Begin(context_.group.directory->terms().history, 0);
    }
    switch (outcome) {
      case Backup::Outcome::kGoesOn:
        break;
      case Backup::Outcome::kLead:
        Lead(now);
        break;
      case Backup::Outcome::kEnd:
        End(backup_->why());
        break;
    }
  }
  LeaveIfTheDiskFailed(now);
  context_.standing->SetAwaitsFrom(AwaitsPrimaryFrom());
  if (primary_ != nullptr) {
    TellOthers(primary_->known().configuration);
  } else {
    TellOthers(backup_->known().configuration);
  }
  return published;
}

void Member::TellMembers() {
  std::vector<std::string> members = context_.group.directory->terms().members;
  MutexLock lock(mutex_);
  if (members != members_) members_ = std::move(members);
}

BootTime Member::AwaitsPrimaryFrom() const {
  if (ended()) return BootTime::Never();
  if (primary_ != nullptr) return primary_->open() ? BootTime::Never() : BootTime();
  return backup_->SilentFrom();
}

void Member::End(const std::string& why) {
  replaced_ = context_.group.directory->Replaced();
  context_.standing->SetServes(false);
  context_.standing->SetAwaitsFrom(BootTime::Never());
  context_.standing->SetLeaseEnd(BootTime());
  why_ = why;
  const char* const role =
      primary_ != nullptr ? "primary" : (backup_->whole() ? "a backup" : "a joining member");
  LOG(WARNING) << "is not " << role << " any more, and starts again: " << why;
  ended_.store(true, std::memory_order_release);
}

void Member::Announce(BootTime now) {
  if (context_.disk != nullptr) context_.disk->behind();  // gives up one that hangs
  if (now < announce_at_) return;
  announce_at_ = now + kAnnounceNs;
  const uint64_t history = context_.group.directory->terms().history;
  const bool whole = primary_ != nullptr || backup_->whole();
  // Of a backup, all counts that it has in memory: it may be all that is left of what was
  // acknowledged. Of one that joins, its former run counts: an operator may begin with that.
  uint64_t has = 0;
  if (primary_ != nullptr) {
    has = primary_->Look().committed;
  } else if (backup_->whole()) {
    has = backup_->copy().Received(backup_->known().configuration.epoch);
  } else if (context_.disk != nullptr) {
    has = context_.disk->FormerLsn(history);
  }
  if (whole) context_.group.directory->AnnounceItems(primary_ != nullptr && primary_->MayAdopt());
  if (context_.disk != nullptr && whole) {
    context_.disk->Note(history, primary_ != nullptr ? has : backup_->copy().applied());
  }
  if (context_.disk != nullptr && !context_.disk->begun()) {
    // Of a group that nobody has founded, no run can be. Operators compare those of other
    // histories.
    const bool founded = primary_ != nullptr || backup_->known().configuration.epoch > 0;
    const uint64_t of = founded ? history : context_.disk->former_history();
    if (const auto kept = context_.disk->Former(of)) {
      context_.group.directory->AnnounceKept(*kept);
    }
  }
  const Role role = RoleNow();
  const uint64_t epoch = primary_ != nullptr ? primary_->known().configuration.epoch
                                             : backup_->known().configuration.epoch;
  if (std::exchange(announced_as_, {role, epoch}) != std::pair(role, epoch)) {
    context_.group.directory->AnnounceSoon();
  }
  context_.group.directory->Announce(
      context_.self,
      absl::StrJoin(context_.rails, ",",
                    [](std::string* to, const LinkRail& rail) { to->append(rail.address); }),
      has);
  NoteWhyNotAnnounced();
}

void Member::NoteWhyNotAnnounced() {
  std::string why = context_.group.directory->WhyNotAnnounced();
  if (why == not_announced_) return;
  if (not_announced_.empty()) {
    LOG(WARNING) << "etcd takes nothing. While that is so, nobody can take over: " << why;
  } else if (why.empty()) {
    LOG(INFO) << "etcd takes again what it is told";
  }
  not_announced_ = std::move(why);
  seen_epoch_.reset();  // observers are told
}

Member::Role Member::RoleNow() const {
  if (ended()) return Role::kEnded;
  if (primary_ != nullptr) return Role::kPrimary;
  return backup_->in_sync() ? Role::kBackup : Role::kJoining;
}

// A backup throws its copy away, so it leaves only while it hears the primary.
void Member::LeaveIfTheDiskFailed(BootTime now) {
  if (context_.disk == nullptr || !context_.disk->refuses() || ended()) return;
  if (primary_ != nullptr) {
    primary_->StepDown(now, "its disk has failed");
  } else if (!backup_->whole() || backup_->Hears(now)) {
    End("its disk has failed, and --sync=always wants one");
  }
}

// One that is silent at this moment may only be busy. The link to one that is dead breaks. So does
// that to the successor, once it is named.
bool Member::MayStepDown(const Seen& seen) {
  const auto may_follow = [](const Primary::Seen::Backup& it) { return it.in_sync && it.linked; };
  return seen.role == Role::kPrimary &&
         (seen.as_primary.hands_over || std::ranges::any_of(seen.as_primary.backups, may_follow));
}

Member::Leaving Member::Leave() {
  if (ended() || may_stop_.load(std::memory_order_relaxed)) return Leaving::kDone;
  leaves_.store(true, std::memory_order_relaxed);
  context_.server->WakeMember();
  return MayStepDown(Look()) ? Leaving::kHandsOver : Leaving::kAwaitsOthers;
}

// Whether the map gives the group any partition. One that was removed has none.
bool Member::HasPartitions() const {
  const SeenMap* const seen = context_.group.directory->Config();
  if (seen == nullptr) return true;
  const auto& [groups, partitions] = std::tie(seen->config.groups, seen->config.partitions);
  const auto found = std::ranges::find(groups, context_.group.name);
  return found != groups.end() && std::ranges::count(partitions, found - groups.begin()) > 0;
}

// One that has told the primary that it has all items waits until it knows whether it is in sync:
// the primary may stop, too, and hand over to it. One that joins has nothing yet. If the group has
// no other node, nobody else will ever have the items.
void Member::LeaveTurn(BootTime now) {
  if (primary_ != nullptr) {
    primary_->StepDown(now, "this server stops");
  } else {
    backup_->Leave(now);
  }
  const bool has_items = primary_ != nullptr || backup_->may_count();
  const bool has_others = context_.group.directory->terms().members.size() > 1;
  may_stop_.store(!has_items || !has_others || !HasPartitions(), std::memory_order_relaxed);
}

absl::Status Member::Restore(uint64_t history, uint64_t epoch) {
  if (context_.disk == nullptr || context_.disk->begun()) return absl::OkStatus();
  if (!context_.disk->former_path().empty()) {
    Applier* const applier = &backup_->copy().applier();
    GANNET_RETURN_IF_ERROR(context_.disk->Restore(
        [applier](const Change& change) { return applier->Restore(change); }));
  }
  context_.disk->Begin(history, epoch);
  return absl::OkStatus();
}

void Member::Lead(BootTime now) {
  const GroupRegister known = backup_->known();
  const uint64_t epoch = known.configuration.epoch;
  // An operator may have changed them since this server joined.
  const GroupTerms terms = context_.group.directory->terms();
  if (const absl::Status status = Restore(terms.history, epoch); !status.ok()) {
    return End(absl::StrCat("cannot restore the items: ", status.message()));
  }
  context_.standing->SetHistory(terms.history);
  // Who takes over, or is handed over to, goes on with the history that its items are of. Then the
  // former primary has no lease any more, without which nobody answers from a copy. The clock is
  // read now: this process may have been stopped since `now`, and the former one have lived.
  if (backup_->copy().history() != terms.history) {
    former_leases_end_ = context_.clocks.boot.Now() + context_.former_leases_ns;
  }
  const RingTail tail = backup_->TakeTail();
  // The old primary's clock goes on here, or the founder's own.
  if (const ServerTime clock = backup_->ClockAtTakeover(now); clock != ServerTime()) {
    context_.server->StartClock(clock);
  }
  backup_->copy().applier().OnVersion(first_version_);
  LOG(INFO) << "becomes primary of epoch " << epoch << ", with " << tail.end() - tail.begin()
            << " bytes of records that are still to be committed";
  led_epoch_ = epoch;
  auto primary =
      Primary::Create(context_, this, terms, context_.random->NextNonzero(), known, tail);
  if (!primary.ok()) {
    // It is primary by the register, and cannot be. Whoever is in sync takes over.
    return End(std::string(primary.status().message()));
  }
  primary_ = *std::move(primary);
}

void Member::Open(const RingTail& tail) {
  Applier& applier = backup_->copy().applier();
  tail.ForEach([&applier](const RingRecord& record, uint64_t, uint64_t) { applier.Apply(record); });
  context_.store->BeginVersions(applier.version_next());
  context_.store->KeepRoom();
  context_.store->PauseEvictions(false);
  SessionCopies& sessions = applier.sessions();
  sessions.ForgetUndone();
  // An operator has begun the group again: clients begin anew, and their requests with 1.
  if (backup_->copy().history() != context_.standing->history()) sessions = SessionCopies();
  std::vector<SessionCopy> copies = sessions.All();
  if (!primary_->stream()->has_copies()) DoubtAnswers(&copies);
  context_.server->Adopt(std::move(copies));
  primary_->BeginSessions(std::move(sessions));
  if (context_.disk != nullptr) context_.disk->Lead();
  stream_->Lead(primary_->stream());
  context_.server->BeginEpoch(led_epoch_);
}

bool Member::MayOpen(BootTime now) {
  if (now < former_leases_end_) return false;
  return context_.disk == nullptr || context_.disk->MayOpen(led_epoch_);
}

void Member::TellOthers(const GroupConfiguration& configuration) {
  news_.TellElsewhere(configuration);
  TellObservers(configuration);
}

void Member::TellObservers(const GroupConfiguration& configuration) {
  applied_.store(backup_->copy().applied(), std::memory_order_relaxed);
  if (primary_ == nullptr && !backup_->in_sync()) {
    joined_percent_.store(backup_->copy().joined_percent(), std::memory_order_relaxed);
  }
  // An epoch has one primary. All else costs a backup more than what it applies in most Polls.
  const Role role = RoleNow();
  const bool follows = role == Role::kBackup || role == Role::kJoining;
  if (follows && seen_epoch_ == configuration.epoch && seen_role_ == role) return;
  Seen seen = {.role = role,
               .node = context_.group.node,
               .incarnation = context_.self.incarnation,
               .primary = configuration.primary.node,
               .epoch = configuration.epoch,
               .not_announced = not_announced_};
  if (role == Role::kPrimary) {
    seen.open = primary_->open();
    seen.as_primary = primary_->Look();
    MoveProgress& moves = seen.moves.emplace();
    if (task_ != nullptr) task_->Tell(&moves);
  }
  seen_epoch_ = configuration.epoch;
  seen_role_ = seen.role;
  MutexLock lock(mutex_);
  seen_ = std::move(seen);
}

Member::Seen Member::Look() const {
  MutexLock lock(mutex_);
  Seen seen = seen_;
  seen.members = members_;
  const bool applies = seen.role == Role::kJoining || seen.role == Role::kBackup;
  seen.applied = applies ? applied_.load(std::memory_order_relaxed) : 0;
  if (seen.role == Role::kJoining) {
    seen.joined_percent = joined_percent_.load(std::memory_order_relaxed);
  }
  return seen;
}

absl::Status Member::Arm(BootTime now) {
  if (HasTask()) task_->Arm(now);
  return primary_ != nullptr ? primary_->Arm() : backup_->Arm(now);
}

void Member::Woken() {
  if (HasTask()) task_->Woken();
  if (primary_ != nullptr) return primary_->Woken();
  backup_->Woken();
}

std::vector<int> Member::fds() const {
  std::vector<int> fds = primary_ != nullptr ? primary_->fds() : backup_->fds();
  if (context_.group.config_store->fd() >= 0) fds.push_back(context_.group.config_store->fd());
  if (HasTask()) task_->AddFds(&fds);
  return fds;
}

BootTime Member::next_at() const {
  const BootTime next = primary_ != nullptr ? primary_->next_at() : backup_->next_at();
  return HasTask() ? std::min(next, task_->next_at()) : next;
}

}  // namespace gannet
