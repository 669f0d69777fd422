// Connects to the giver's primary, follows its stream, and walks its region. A record goes to the
// intake and to the walk's filter at the same moment, so that the walk inserts nothing older than
// what the stream brought.

#include "server/group/move/giver_source.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/protocol/replica.h"
#include "common/protocol/versions.h"
#include "server/group/replica/group_directory.h"
#include "server/log/changes/update_body.h"
#include "server/log/stream/update_batch.h"

namespace gannet {
namespace {

// The ring is looked at so often: nobody tells when something comes.
constexpr int64_t kRingLookNs = kNsPerMs;
// What one Poll takes of the stream. Each record is shorter.
constexpr uint64_t kBytesPerPoll = 512 << 10;
static_assert(kBytesPerPoll > kRingRecordBytesMax);
// Nothing depends on how soon a silent giver is given up.
constexpr int64_t kPatienceNsMin = 2 * kNsPerSecond;

}  // namespace

GiverSource::GiverSource(const GroupContext& context, AuthFile* keys, PartitionIntake* intake,
                         const std::string& giver, const std::string& endpoint, BootTime now)
    : context_(context),
      intake_(intake),
      call_{.endpoint = endpoint, .token = context.random->NextNonzero()},
      dialer_(context, keys),
      heard_(now) {
  const GroupDirectory& directory = *context.group.directory;
  const GroupTerms own = directory.terms();
  times_.lease_ns = int64_t{own.lease_ms} * kNsPerMs;
  call_.ring_bytes = directory.RingBytesOf(giver).value_or(own.ring_bytes);
}

GiverSource::~GiverSource() = default;

int64_t GiverSource::PatienceNs() const { return std::max(2 * times_.grace_ns(), kPatienceNsMin); }

void GiverSource::Fail(absl::Status why) {
  if (status_.ok()) status_ = std::move(why);
}

void GiverSource::Poll(BootTime now) {
  next_at_ = now + (ending_ || (link_ && link_->welcomed()) ? kRingLookNs : times_.beacon_ns() / 4);
  if (!link_ && !ending_) Connect(now);
  if (!link_) return;
  link_->Poll(now);
  if (ending_ || !status_.ok()) return;
  while (const auto message = link_->Take()) OnMessage(*message);
  if (!link_->status().ok()) {
    return Fail(link_->refused() ? absl::UnavailableError(link_->why()) : link_->status());
  }
  if (link_->open() && !link_->said_hello()) SendHello();
  if (now - heard_ > PatienceNs()) {
    return Fail(absl::UnavailableError(absl::StrCat(call_.endpoint, " is silent")));
  }
  if (!link_->welcomed()) return;
  TakeStream();
  if (status_.ok()) Walk(now);
}

void GiverSource::Connect(BootTime now) {
  call_.deadline = now + PatienceNs();
  auto dialed = dialer_.Dial(call_);
  if (!dialed.ok()) return Fail(dialed.status());
  if (*dialed == nullptr) {
    if (now - heard_ > PatienceNs()) {
      Fail(absl::UnavailableError(absl::StrCat("cannot look up ", call_.endpoint)));
    }
    return;
  }
  link_ = *std::move(dialed);
  heard_ = now;
}

// The clock is read before, and a link has one hello. So the giver's clock in the welcome is later.
void GiverSource::SendHello() {
  ReceiverHello hello = NewReceiverHello();
  hello.stream_version_min = kStreamVersions.min;
  hello.stream_version_max = kStreamVersions.max;
  asked_at_ = context_.server->Time();
  SetName(&hello, context_.self.node);
  link_->SayHello(hello, context_.self.incarnation);
}

void GiverSource::OnMessage(const BackupLink::Message& message) {
  if (const auto* welcome = std::get_if<ReplicaWelcome>(&message)) return OnWelcome(*welcome);
  const auto* told = std::get_if<BackupLink::ToldBeacon>(&message);
  if (told != nullptr && !told->last) return OnBeacon(told->beacon);
  if (const auto* ended = std::get_if<MoveEnded>(&message)) {
    ended_ = *ended;
    clock_behind_end_ = ServerTime();
    return;
  }
  const auto* refused = std::get_if<BackupLink::Refused>(&message);
  if (refused != nullptr && refused->why) {
    return Fail(absl::UnavailableError(absl::StrCat(call_.endpoint, " refuses: ", *refused->why)));
  }
  const auto* other = std::get_if<BackupLink::OutOfPlace>(&message);
  const ReplicaKind kind = told != nullptr      ? ReplicaKind::kLastBeacon
                           : refused != nullptr ? ReplicaKind::kRefusal
                                                : other->kind.value_or(ReplicaKind{});
  Fail(absl::UnavailableError(absl::StrCat(call_.endpoint, " sends a message of kind ",
                                           static_cast<int>(kind), ", which is not expected")));
}

// The joiner hears of all that the stream brings, so it is there from the stream's begin on.
void GiverSource::OnWelcome(const ReplicaWelcome& welcome) {
  if (absl::Status accepted = link_->Accept(welcome); !accepted.ok()) {
    return Fail(std::move(accepted));
  }
  const BootTime now = context_.clocks.boot.Now();
  heard_ = now;
  times_ = TimesOf(welcome);
  reader_.emplace(link_->ring(), BeginOf(welcome));
  intake_->UseClock({asked_at_, ServerTime::FromMs(welcome.clock_ms)});
  auto joiner = dialer_.BeginWalk(*link_, {},
                                  {.target = intake_,
                                   .server_time = intake_,
                                   .clocks = context_.clocks,
                                   .now = now,
                                   .target_evicts = intake_->evicts()});
  if (!joiner.ok()) return Fail(joiner.status());
  joiner_ = *std::move(joiner);
}

void GiverSource::OnBeacon(const Beacon& beacon) {
  heard_ = context_.clocks.boot.Now();
  committed_ = std::max(committed_, beacon.committed);
  if (ended_) clock_behind_end_ = ServerTime::FromMs(beacon.clock_ms);
  // What was decided before the stream began, and was not published, is in neither.
  if (joiner_ && beacon.committed >= link_->welcome().first_lsn) joiner_->BeginWalk();
  link_->Answer(beacon, reader_->taken(), reader_->consumed());
}

// What the giver told to be the end of its closed partitions is committed.
void GiverSource::TakeStream() {
  for (; !late_.empty(); late_.pop_front()) {
    Late& late = late_.front();
    late.change.key = late.key;
    late.change.value = late.value;
    if (intake_->Wants(late.key) && !Give(late.change)) return;
  }
  reader_->Scan();
  if (intake_->full()) return;
  const uint64_t told = std::max({committed_, reader_->committed(), ended_ ? ended_->lsn : 0});
  const uint64_t committed = std::min(told, stop_at_);
  reader_->Take(std::min(committed, reader_->taken() + kBytesPerPoll),
                [this](const RingRecord& record, uint64_t, uint64_t) { OnRecord(record); });
}

void GiverSource::OnRecord(const RingRecord& record) {
  switch (record.kind) {
    case RingRecordKind::kPut:
    case RingRecordKind::kUpdate:
    case RingRecordKind::kDelete:
      return OnChange(record.change);
    case RingRecordKind::kUpdateBatch:
      for (const PlacedUpdate& update : UpdateBodies(std::as_bytes(std::span(record.part)))) {
        Change put;
        DecodeUpdateBody(update.body, &put);
        OnChange(put);
      }
      return;
    case RingRecordKind::kPart:
      if (parts_.Add(record)) return;
      return Fail(absl::DataLossError("the parts of a long value do not fit together"));
    case RingRecordKind::kLongPut: {
      const std::optional<Change> put = parts_.End(record);
      if (!put) return Fail(absl::DataLossError("parts of a long value are missing"));
      OnChange(*put);
      return parts_.Clear();
    }
    case RingRecordKind::kSessionBegun:
    case RingRecordKind::kSessionEnded:
    case RingRecordKind::kAnswers:
    case RingRecordKind::kWrap:
      return;
  }
}

void GiverSource::OnChange(const Change& change) {
  if (!intake_->Wants(change.key)) return;
  if (late_.empty() && Give(change)) return;
  late_.push_back({change, std::string(change.key), std::string(change.value)});
}

bool GiverSource::Give(const Change& change) {
  switch (intake_->Take(change)) {
    case ReplyStatus::kTryAgain:
    case ReplyStatus::kIndexFull:
      return false;
    case ReplyStatus::kOk:
    case ReplyStatus::kExists:
    case ReplyStatus::kNotFound:
      if (joiner_) joiner_->OnApplied(change);
      return true;
    default:
      Fail(absl::ResourceExhaustedError("the memory has no room for an item of the giver's"));
      return true;
  }
}

void GiverSource::Walk(BootTime now) {
  if (copied_) return;
  pauses_ = now < pace_.due();
  if (pauses_) {
    next_at_ = std::min(next_at_, pace_.due());
    return;
  }
  const BootTime began = context_.clocks.boot.Now();
  const Joiner::Step step = joiner_->Poll(now);
  pace_.OnWorked(began, context_.clocks.boot.Now(), context_.server->CoresAreScarce());
  switch (step) {
    case Joiner::Step::kGoesOn:
      next_at_ = std::min(next_at_, std::max(now, joiner_->deadline()));
      return;
    case Joiner::Step::kFailed:
      return Fail(joiner_->status());
    case Joiner::Step::kDone:
      break;
  }
  copied_ = true;
  joiner_.reset();
}

double GiverSource::walked() const {
  if (copied_) return 1;
  return joiner_ ? joiner_->done() : 0;
}

uint64_t GiverSource::behind() const {
  if (!reader_) return 0;
  const uint64_t known = std::max(committed_, reader_->end());
  return known - std::min(known, reader_->taken()) + late_.size();
}

bool GiverSource::HasUpTo(uint64_t lsn) const {
  return reader_ && late_.empty() && reader_->taken() >= lsn;
}

int64_t GiverSource::lease_ns() const {
  GANNET_CHECK(walked() > 0, "the giver did not tell yet");
  return times_.lease_ns + times_.lease_ns / 64;
}

void GiverSource::TellClosing() {
  GANNET_CHECK(walked() > 0, "nothing was copied yet");
  MoveClosing closing = NewMoveClosing();
  closing.epoch = link_->welcome().epoch;
  link_->Send(closing);
}

void GiverSource::BeginEnd() {
  if (std::exchange(ending_, true)) return;
  joiner_.reset();
  if (link_) link_->BeginFence();
}

void GiverSource::Arm(BootTime now) {
  if (joiner_ && !pauses_ && !ending_ && status_.ok()) {
    next_at_ = joiner_->PrepareToSleep(now) ? std::min(next_at_, joiner_->deadline()) : now;
  }
  if (link_ && !link_->Arm().ok()) Fail(absl::UnavailableError("the device lost a queue"));
}

void GiverSource::Woken() {
  if (link_) link_->Woken();
}

void GiverSource::AddFds(std::vector<int>* fds) const {
  if (link_) link_->AddFds(fds);
  if (joiner_ && !pauses_) joiner_->AddFds(fds);
}

}  // namespace gannet
