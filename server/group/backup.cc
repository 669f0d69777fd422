#include "server/group/backup.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/nonzero_random.h"
#include "glog/logging.h"
#include "server/replica/group_standing.h"

namespace gannet {
namespace {

// So long after the last record.
constexpr int64_t kBusyNs = 20 * kNsPerMs;

}  // namespace

// A file that is wrong now leaves the keys as they were.
std::optional<AuthKey> ReplicaKeyOf(AuthFile* file) {
  if (file->Changed()) file->Reload().IgnoreError();
  const auto it = std::ranges::find_if(file->keys(), &AuthKey::replica);
  if (it == file->keys().end()) return std::nullopt;
  return *it;
}

Backup::Backup(Options options)
    : options_(std::move(options)),
      times_{.lease_ns = int64_t{options_.terms.lease_ms} * kNsPerMs},
      primary_address_(
          [](const std::string& endpoint) { return ResolveAll(endpoint, kDefaultPort); }),
      applier_(options_.store, options_.now_ms),
      join_target_(options_.store) {}

Backup::~Backup() = default;

Backup::Outcome Backup::End(std::string why) {
  why_ = std::move(why);
  return Outcome::kEnd;
}

void Backup::Tell(const std::string& line) {
  if (std::exchange(told_, line) != line) LOG(INFO) << line;
}

Backup::Outcome Backup::Poll(int64_t now) {
  next_ns_ = now + times_.beacon_ns();
  if (retired_) {
    retired_->Poll(now);
    if (retired_->fenced()) retired_.reset();
    next_ns_ = std::min(next_ns_, now + kLookNs);
  }
  PollLink(now);
  Apply();
  if (!applier_.status().ok()) return End(std::string(applier_.status().message()));
  if (now < busy_until_) next_ns_ = std::min(next_ns_, now + kLookNs);
  return takeover_ ? BackupTurn(now) : JoinTurn(now);
}

void Backup::Leave(int64_t now) {
  if (Hears(now)) takeover_->Leave();
}

void Backup::Apply() {
  if (!log_) return;
  const uint64_t before = log_->applied();
  log_->Apply([this](const RingRecord& record, uint64_t, uint64_t) { applier_.Apply(record); },
              [this](const ProvenUpdates& updates) { applier_.ApplyUpdates(updates); });
  if (log_->applied() != before) busy_until_ = next_ns_ - times_.beacon_ns() + kBusyNs;
  // A touch that lets an item live longer may be on its way until then.
  if (told_clock_ms_ != 0 && log_->applied() >= told_committed_) {
    options_.follow_clock(std::exchange(told_clock_ms_, 0));
  }
}

void Backup::PollLink(int64_t now) {
  if (!link_) return;
  link_->Poll(now);
  while (const auto message = link_->TakeMessage()) OnMessage(*message, now);
  if (link_->status().ok() || lost_) return;
  lost_ = true;
  if (hello_sent_ && !welcomed_) versions_.OnClosedWithoutAnswer();
  const std::string why = link_->refused() ? RejectReason(*link_->refused()) : "";
  Tell(absl::StrCat("no link to the primary: ",
                    why.empty() ? std::string(link_->status().message()) : why));
}

void Backup::OnMessage(std::span<const std::byte> message, int64_t now) {
  const std::optional<ReplicaKind> kind = KindOfReplicaMessage(message);
  if (kind == ReplicaKind::kWelcome && hello_sent_ && !welcomed_) {
    if (const auto welcome = DecodeReplicaWelcome(message); welcome.ok()) {
      return OnWelcome(*welcome, now);
    }
  } else if (kind == ReplicaKind::kBeacon && welcomed_) {
    if (const auto beacon = DecodeBeacon(message); beacon.ok()) return OnBeacon(*beacon, false);
  } else if (kind == ReplicaKind::kLastBeacon && welcomed_) {
    if (const auto beacon = DecodeLastBeacon(message); beacon.ok()) return OnBeacon(*beacon, true);
  } else if (kind == ReplicaKind::kRefusal) {
    versions_.OnRefused();
    if (const auto refusal = DecodeReplicaRefusal(message); refusal.ok()) {
      Tell(absl::StrCat("the primary refuses this server: ", std::string(ReasonOf(*refusal))));
    }
  }
  lost_ = lost_ || kind != ReplicaKind::kBeacon;
}

void Backup::OnWelcome(const ReplicaWelcome& welcome, int64_t now) {
  if (welcome.epoch != link_epoch_ || welcome.incarnation != primary_) {
    lost_ = true;
    return;
  }
  if (!kStreamVersions.Has(welcome.stream_version)) {
    lost_ = true;
    return Tell(absl::StrCat("the primary's stream has version ", welcome.stream_version));
  }
  versions_.OnStream(welcome.stream_version);
  welcomed_ = true;
  alone_since_ = 0;
  heard_ = now;
  times_.lease_ns = int64_t{welcome.lease_ms} * kNsPerMs;
  if (takeover_) takeover_->OnWelcome(times_);
  clock_.OnPrimary(welcome.clock_ms, now);
  applier_.OnVersion(welcome.version_next);
  if (!log_) {
    log_.emplace(welcome.first_lsn);
    begins_ = welcome.first_lsn;
    history_ = welcome.history;
    options_.follow_clock(welcome.clock_ms);
  }
  const RingReader::Begin begin = {
      .stream_id = welcome.stream_id, .lsn = welcome.first_lsn, .position = welcome.position};
  const bool follows = log_->Follow(
      link_->ring(), begin, welcome.tail_end,
      [this](const RingRecord& record, uint64_t, uint64_t) { applier_.Apply(record); });
  if (!follows) lost_ = true;
}

// The clock is read after the beacon was taken. A process that was stopped in between would begin
// to wait for G before the beacon was sent, and take over while its answer keeps the lease valid.
void Backup::OnBeacon(const Beacon& beacon, bool last) {
  if (beacon.epoch != link_epoch_) return;
  const int64_t now = options_.clock();
  if (takeover_ && !takeover_->OnBeacon(now)) return;
  heard_ = now;
  clock_.OnPrimary(beacon.clock_ms, now, last);
  log_->OnCommitted(beacon.committed);
  published_ = published_ || beacon.committed >= begins_;
  told_clock_ms_ = beacon.clock_ms;
  told_committed_ = beacon.committed;
  Apply();
  BeaconAnswer answer = NewBeaconAnswer();
  answer.epoch = beacon.epoch;
  answer.sequence = beacon.sequence;
  answer.applied = log_->applied();
  answer.consumed = log_->consumed();
  link_->Send(answer);
}

void Backup::Retire() {
  link_->BeginFence();
  retired_ = std::move(link_);
  hello_sent_ = welcomed_ = lost_ = false;
}

void Backup::Connect(const GroupMember& primary, int64_t now) {
  const std::optional<std::string> address = options_.directory->AddressOf(primary);
  if (!address) {
    try_at_ = now + kRetryNs;
    return Tell(absl::StrCat("the address of the primary, ", primary.node, ", is not known yet"));
  }
  const std::optional<SocketAddress> to = primary_address_.Find(*address);
  if (!to) {
    try_at_ = now + (takeover_ ? kLookNs : kRetryNs);  // a primary waits for survivors
    return Tell(absl::StrCat("looks up the name of the primary, ", *address));
  }
  const uint64_t token = NonzeroRandom(options_.random);
  BackupLink::Options link = {.device = options_.device,
                              .to = *to,
                              .endpoint = *address,
                              .token = token,
                              .ring_bytes = options_.terms.ring_bytes,
                              .wall_ms = options_.machine_ms,
                              .deadline_ns = now + times_.lease_ns};
  if (options_.keys != nullptr) link.key = ReplicaKeyOf(options_.keys);
  auto started = BackupLink::Start(link);
  if (!started.ok()) {
    try_at_ = now + kRetryNs;
    return Tell(std::string(started.status().message()));
  }
  link_ = *std::move(started);
  primary_ = primary.incarnation;
  primary_at_ = *to;
  heard_ = now;
}

void Backup::SendHello(uint64_t epoch) {
  ReplicaHello hello = NewReplicaHello();
  hello.incarnation = options_.self.incarnation;
  hello.history = takeover_ ? history_ : 0;
  hello.epoch = epoch;
  hello.applied = hello.end = log_ ? log_->applied() : 0;
  hello.ring_address = reinterpret_cast<uint64_t>(link_->ring().data());
  hello.ring_bytes = link_->ring().size();
  hello.ring_rkey = link_->ring_rkey();
  hello.memory_bytes = options_.memory_bytes;
  hello.workers = options_.workers;
  hello.stream_version_min = versions_.Say().min;
  hello.stream_version_max = versions_.Say().max;
  SetName(&hello, options_.self.node);
  link_epoch_ = epoch;
  hello_sent_ = true;
  link_->Send(hello);
}

Backup::Outcome Backup::BackupTurn(int64_t now) {
  const Takeover::Step step = takeover_->Poll(now);
  // The revision says whether it is the same. A copy costs a lot.
  if (known_.revision != takeover_->known().revision) known_ = takeover_->known();
  if (!why_.empty()) return Outcome::kEnd;
  switch (step) {
    case Takeover::Step::kFollow:
    case Takeover::Step::kWait:
      return Outcome::kGoesOn;
    case Takeover::Step::kFence:
      TellWhyItLeaves(now);
      Fence();
      next_ns_ = std::min(next_ns_, now + kLookNs);
      return Outcome::kGoesOn;
    case Takeover::Step::kConnect:
      ConnectAsSurvivor(now);
      next_ns_ = std::min(next_ns_, now + kLookNs);
      return Outcome::kGoesOn;
    case Takeover::Step::kLead:
      return Outcome::kLead;
    case Takeover::Step::kEnd:
      return KeepUntilAPrimaryLives(now);
  }
  return Outcome::kGoesOn;
}

// The register may name a primary that is dead: a transaction may be executed after its sender's
// death. Then an operator may force this member, which is to have its items still. They are thrown
// away only once there is a primary to copy them from.
Backup::Outcome Backup::KeepUntilAPrimaryLives(int64_t now) {
  next_ns_ = std::min(next_ns_, now + (left_ ? kRetryNs : kLookNs));
  if (!left_) {
    Fence();
    left_ = link_ == nullptr;
    if (left_) LOG(WARNING) << "is not in sync any more. Keeps its items until it finds a primary";
    return Outcome::kGoesOn;
  }
  const GroupMember& primary = known_.configuration.primary;
  if (link_ && (lost_ || primary_ != primary.incarnation)) {
    if (!retired_) Retire();
    try_at_ = now + kRetryNs;
  } else if (link_ && link_->open()) {  // others than the primary refuse it
    return End("this member is not in sync any more");
  } else if (!link_ && now >= try_at_ && !retired_) {
    Connect(primary, now);
  }
  return Outcome::kGoesOn;
}

// From when the hello is sent, the primary may write.
void Backup::ConnectAsSurvivor(int64_t now) {
  if (link_ && (lost_ || primary_ != known_.configuration.primary.incarnation)) {
    if (!retired_) Retire();
    try_at_ = now + kRetryNs / 2;
    return;
  }
  if (!link_) {
    if (now >= try_at_ && !retired_) Connect(known_.configuration.primary, now);
    return;
  }
  if (!link_->open()) return;
  takeover_->OnHello();
  SendHello(known_.configuration.epoch);
}

// Once for each link.
void Backup::TellWhyItLeaves(int64_t now) {
  if (!link_ || std::exchange(left_epoch_, link_epoch_) == link_epoch_) return;
  const uint64_t epoch = known_.configuration.epoch;
  LOG(WARNING) << "leaves the primary of epoch " << link_epoch_ << ": "
               << (epoch > link_epoch_
                       ? absl::StrCat(known_.configuration.primary.node, " is primary of epoch ",
                                      epoch)
                       : absl::StrCat("no beacon for ", (now - heard_) / kNsPerMs, " ms"));
}

// Nothing is read from the ring before both queue pairs are flushed.
void Backup::Fence() {
  if (link_) {
    link_->BeginFence();
    if (!link_->fenced()) return;
  }
  if (!log_->Seal()) why_ = "two streams do not fit together";
  link_.reset();
  hello_sent_ = welcomed_ = lost_ = false;
  takeover_->OnFenced();
}

bool Backup::Hears(int64_t now) const {
  return in_sync() && welcomed_ && !lost_ && link_epoch_ == known_.configuration.epoch &&
         now - heard_ < times_.silence_ns() / 2;
}

int64_t Backup::SilentFrom() const {
  if (!takeover_) return GroupStanding::kNever;
  const GroupConfiguration& configuration = known_.configuration;
  if (configuration.primary == options_.self) return 0;  // it opens soon
  // Whoever is named in the register may serve already.
  if (configuration.epoch != link_epoch_ || takeover_->out()) return GroupStanding::kNever;
  return lost_ ? 0 : heard_ + times_.silence_ns() / 2;
}

RingTail Backup::TakeTail() { return log_ ? log_->TakeTail() : RingTail(0); }

uint64_t Backup::ClockAtTakeover(int64_t now) const {
  return log_ ? clock_.AtTakeover(times_, now) : 0;
}

absl::Status Backup::Arm(int64_t now) {
  if (joiner_)
    next_ns_ = joiner_->PrepareToSleep(now) ? std::min(next_ns_, joiner_->deadline_ns()) : now;
  return link_ ? link_->Arm() : absl::OkStatus();
}

void Backup::Woken() {
  if (link_) link_->Woken();
}

std::vector<int> Backup::fds() const {
  std::vector<int> fds;
  if (link_) {
    const auto of_link = link_->fds();
    fds.assign(of_link.begin(), of_link.end());
  }
  if (joiner_) {
    for (const int fd : joiner_->fds()) {
      if (fd >= 0) fds.push_back(fd);
    }
  }
  return fds;
}

}  // namespace gannet
