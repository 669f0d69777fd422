// The walk inserts an item only if the stream brought nothing for its key. Short items come by the
// run they are READ in; long values are READ behind it, in batches, and then their commit words
// again.

#include "server/group/members/joiner.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/layout/large_proof.h"
#include "common/layout/stub.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<Joiner>> Joiner::Begin(Options options) {
  std::unique_ptr<Joiner> made(new Joiner(std::move(options)));
  const Options& given = made->options_;
  std::vector<WalkSession::Way> ways = {{.server = given.primary, .device = given.device}};
  ways.insert(ways.end(), given.other_ways.begin(), given.other_ways.end());
  GANNET_ASSIGN_OR_RETURN(made->session_, WalkSession::Begin({.ways = std::move(ways),
                                                              .pd = given.pd,
                                                              .keys = given.keys,
                                                              .wall = given.clocks.wall,
                                                              .idle = given.idle},
                                                             given.now));
  GANNET_RETURN_IF_ERROR(made->session_->Make(kItems, uint64_t{kBuffers} * kBufferBytes));
  made->deadline_ = given.now;
  return made;
}

void Joiner::OnApplied(const Change& change) {
  version_max_ = std::max(version_max_, change.version);
  filter_.OnApplied(change, options_.target->HashOf(change.key));
}

Joiner::Step Joiner::Fail(absl::Status status) {
  if (step_ == Step::kFailed) return step_;
  status_ = std::move(status);
  return step_ = Step::kFailed;
}

Joiner::Step Joiner::Poll(BootTime now) {
  if (step_ != Step::kGoesOn) return step_;
  if (filter_.full()) {
    return Fail(
        absl::ResourceExhaustedError(absl::StrCat("more than ", options_.filter_hashes_max,
                                                  " keys were deleted, or put with a time to live, "
                                                  "while the items were copied: join again")));
  }
  session_->Poll(now);
  deadline_ = session_->deadline();
  if (session_->ready() && may_walk_) {
    WalkOn(now);
  } else if (session_->ready()) {
    session_->Acknowledge(session_->view().index.generation);
  }
  if (!session_->status().ok()) return Fail(session_->status());
  return step_;
}

void Joiner::AddFds(std::vector<int>* fds) const {
  for (const int fd : session_->fds()) {
    if (fd >= 0) fds->push_back(fd);
  }
}

bool Joiner::PrepareToSleep(BootTime now) {
  session_->Arm();
  return Poll(now) == Step::kGoesOn && !session_->completed() && deadline() > now;
}

void Joiner::WalkOn(BootTime now) {
  if (!walk_) {
    walk_.emplace(&session_->view(), nullptr, 0, IndexWalk::Windows::kReadAgain);
    driver_.emplace(&*walk_, static_cast<WalkReader*>(this), kBuffers, now.ns());
    run_generation_ = session_->view().index.generation;
  }
  now_ = now;
  run_began_ = options_.server_time->Time();
  waits_for_slot_ = false;
  if (driver_->reads()) driver_->OnRead(session_->done());
  auto outcome = WalkDriver::Outcome::kGoesOn;
  while (outcome == WalkDriver::Outcome::kGoesOn && session_->ready()) outcome = driver_->Step();
  switch (outcome) {
    case WalkDriver::Outcome::kGoesOn:
    case WalkDriver::Outcome::kWaits:
    case WalkDriver::Outcome::kStopped:  // it has failed
    case WalkDriver::Outcome::kFailed:   // the same
      break;
    case WalkDriver::Outcome::kDone:
      step_ = Step::kDone;
      break;
    case WalkDriver::Outcome::kChangesTooFast:
      Fail(absl::AbortedError("the primary's index changes too fast for a walk"));
      break;
    case WalkDriver::Outcome::kUnknownSlot:
      Fail(absl::UnimplementedError(
          "the primary has items of a kind that only newer versions know: upgrade this member"));
      break;
  }
  if (waits_for_slot_) deadline_ = std::min(deadline_, now + kTryAgainNs);
  CheckAdvance(now);
}

void Joiner::CheckAdvance(BootTime now) {
  const int64_t stuck_ns = driver_->StuckNs(now.ns());
  if (step_ != Step::kGoesOn || stuck_ns <= options_.stuck_ns_max) return;
  if (waits_for_slot_) {
    Fail(absl::ResourceExhaustedError("the index has no slot for an item of the primary"));
  } else {
    Fail(absl::AbortedError("what is READ of the primary changes too fast, or takes too long"));
  }
}

bool Joiner::WantIndex() {
  if (now_ >= look_again_) {
    session_->WantIndex();
    look_again_ = now_ + kTryAgainNs;
    deadline_ = now_;  // the next Poll asks
  }
  deadline_ = std::min(deadline_, look_again_);
  return true;
}

// The READs of the run before are done. All that follow are of the index that the view had when
// that began, or of a later one.
void Joiner::OnRunBegins() {
  session_->Acknowledge(run_generation_);
  run_generation_ = session_->view().index.generation;
}

bool Joiner::BeginReads(std::span<const PlacedRead> reads) {
  posted_at_ = now_;
  for (const auto& [place, read] : reads) {
    session_->AddRead(place, read.offset, read.bytes, kItems, uint64_t{place} * kBufferBytes);
  }
  session_->Post();
  return true;
}

// No server of a group has a tier, so its items are never stubs.
WalkReader::Taken Joiner::OnItem(size_t i, const IndexWalk::Item& item) {
  if (IsStub(walk_->items()[i])) {
    Fail(absl::UnimplementedError("the primary has values on a disk, and a group has no tier"));
    return Taken::kStop;
  }
  if (IsLargeClass(walk_->items()[i].size_class())) {
    OnLongHead(static_cast<uint32_t>(i), item);
    return Taken::kYes;
  }
  if (Insert(item.header, item.key, item.value)) return Taken::kYes;
  return step_ == Step::kFailed ? Taken::kStop : Taken::kLater;
}

// The run's long values are READ, and then their commit words again, in batches.
bool Joiner::FinishItems() {
  while (session_->ready()) {
    switch (long_reads_) {
      case LongReads::kNothing:
        if (BeginBatch()) break;
        return step_ == Step::kGoesOn;
      case LongReads::kValues:
        ReadValues();
        return false;
      case LongReads::kCommits:
        if (session_->in_flight() > 0 || !TakeValues()) return false;
        long_reads_ = LongReads::kNothing;
        break;
    }
  }
  return false;
}

// The value of a key that the stream brought something for, or that is here already, is not READ.
void Joiner::OnLongHead(uint32_t item, const IndexWalk::Item& head) {
  const uint64_t end = LargeValueOffset(head.key.size()) + head.header.value_bytes;
  if (end > walk_->items()[item].read_bytes()) return walk_->OnItemLost(item);
  version_max_ = std::max(version_max_, head.header.version);
  JoinTarget& target = *options_.target;
  if (!target.Wants(head.key) || IsExpired(head.header)) return;
  if (filter_.Has(target.HashOf(head.key)) || target.Has(head.key, run_began_)) return;
  longs_.push_back({.item = item, .header = head.header, .key = std::string(head.key), .at = 0});
}

bool Joiner::BeginBatch() {
  batch_begin_ = next_long_ = next_taken_ = batch_end_;
  next_piece_ = 0;
  if (batch_begin_ == longs_.size()) {
    longs_.clear();
    batch_end_ = 0;
    return false;
  }
  absl::Status status = MakeRoomForValue(longs_[batch_begin_].header.value_bytes);
  if (!status.ok()) {
    Fail(std::move(status));
    return false;
  }
  uint64_t at = 0;
  for (; batch_end_ < longs_.size() && batch_end_ - batch_begin_ < kBuffers; ++batch_end_) {
    Long& it = longs_[batch_end_];
    if (at + it.header.value_bytes > session_->size(kValues)) break;
    it.at = at;
    at += it.header.value_bytes;
  }
  long_reads_ = LongReads::kValues;
  return true;
}

absl::Status Joiner::MakeRoomForValue(uint64_t bytes) {
  if (session_->size(kValues) >= bytes) return absl::OkStatus();
  return session_->Make(kValues, std::max(std::bit_ceil(bytes), kValuesBytesMin));
}

void Joiner::ReadValues() {
  uint64_t bytes = 0;
  while (next_long_ < batch_end_ && session_->room() > 0 && bytes < kValueBytesPerPoll) {
    const Long& it = longs_[next_long_];
    const uint64_t offset =
        walk_->items()[it.item].offset() + LargeValueOffset(it.key.size()) + next_piece_;
    const uint64_t left = it.header.value_bytes - next_piece_;
    const auto piece = static_cast<uint32_t>(std::min<uint64_t>(left, kPieceBytes));
    session_->AddRead(0, offset, piece, kValues, it.at + next_piece_);
    bytes += piece;
    next_piece_ += piece;
    if (piece < left) continue;
    next_piece_ = 0;
    ++next_long_;
  }
  session_->Post();
  if (bytes > 0 || session_->in_flight() > 0) return;
  // All values are here: READ their commit words again.
  for (size_t i = batch_begin_; i < batch_end_; ++i) {
    const auto to = static_cast<uint32_t>(i - batch_begin_);
    session_->AddRead(0, walk_->items()[longs_[i].item].offset(), sizeof(ItemHeader::commit),
                      kItems, uint64_t{to} * kBufferBytes);
  }
  session_->Post();
  long_reads_ = LongReads::kCommits;
}

bool Joiner::TakeValues() {
  for (; next_taken_ < batch_end_; ++next_taken_) {
    const Long& it = longs_[next_taken_];
    uint64_t commit = 0;
    std::memcpy(&commit, buffer(static_cast<uint32_t>(next_taken_ - batch_begin_)), sizeof(commit));
    if (commit != it.header.commit) {
      walk_->OnItemLost(it.item);
      continue;
    }
    const char* value = reinterpret_cast<const char*>(session_->data(kValues) + it.at);
    if (!Insert(it.header, it.key, {value, it.header.value_bytes})) return false;
  }
  return true;
}

bool Joiner::Insert(const ItemHeader& header, std::string_view key, std::string_view value) {
  version_max_ = std::max(version_max_, header.version);
  JoinTarget& target = *options_.target;
  if (!target.Wants(key) || IsExpired(header) || filter_.Has(target.HashOf(key))) return true;
  const Change put{.kind = Change::Kind::kPut,
                   .version = header.version,
                   .expiry = header.expiry(),
                   .flags = header.flags,
                   .key = key,
                   .value = value};
  switch (target.Insert(put, run_began_)) {
    case ReplyStatus::kOk:
      ++items_;
      bytes_ += key.size() + value.size();
      return true;
    case ReplyStatus::kExists:
      return true;
    case ReplyStatus::kTryAgain:
    case ReplyStatus::kIndexFull:
      waits_for_slot_ = true;
      return false;
    default:
      Fail(absl::ResourceExhaustedError("the memory has no room for an item of the primary"));
      return false;
  }
}

}  // namespace gannet
