#include "server/group/joiner.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/layout/large_proof.h"
#include "common/rdma/status.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<Joiner>> Joiner::Begin(Options options) {
  std::unique_ptr<Joiner> made(new Joiner(std::move(options)));
  const Options& given = made->options_;
  if (given.pd == nullptr) {
    made->own_pd_.reset(ibv_alloc_pd(given.device.verbs));
    if (made->own_pd_ == nullptr) return LastErrnoStatus("ibv_alloc_pd");
  }
  GANNET_ASSIGN_OR_RETURN(made->buffers_,
                          RegisteredBuffer::Create(made->pd(), uint64_t{kBuffers} * kBufferBytes));
  made->free_buffers_.resize(kBuffers);
  std::iota(made->free_buffers_.begin(), made->free_buffers_.end(), 0u);
  GANNET_ASSIGN_OR_RETURN(made->session_, FetchSession::Begin({.device = given.device,
                                                               .pd = made->pd(),
                                                               .server = given.primary,
                                                               .keys = given.keys,
                                                               .idle = given.idle},
                                                              given.now_ns));
  made->deadline_ns_ = given.now_ns;
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

Joiner::Step Joiner::Poll(int64_t now_ns) {
  if (step_ != Step::kGoesOn) return step_;
  if (filter_.full()) {
    return Fail(
        absl::ResourceExhaustedError(absl::StrCat("more than ", options_.filter_hashes_max,
                                                  " keys were deleted, or put with a time to live, "
                                                  "while the items were copied: join again")));
  }
  session_->Poll(now_ns);
  deadline_ns_ = session_->deadline_ns();
  if (session_->ready() && may_walk_) {
    WalkOn(now_ns);
  } else if (session_->ready()) {
    session_->Acknowledge(session_->view().index.generation);
  }
  if (!session_->status().ok()) return Fail(session_->status());
  return step_;
}

bool Joiner::PrepareToSleep(int64_t now_ns) {
  session_->Arm();
  return Poll(now_ns) == Step::kGoesOn && !session_->completed() && deadline_ns_ > now_ns;
}

void Joiner::WalkOn(int64_t now_ns) {
  if (!walk_) {
    walk_.emplace(&session_->view(), nullptr, 0, IndexWalk::Windows::kReadAgain);
    run_generation_ = session_->view().index.generation;
    advanced_ns_ = now_ns;
  }
  wall_ms_ = options_.wall_ms();
  waits_for_slot_ = false;
  if (reads_ == Reads::kItems) {
    copied_.insert(copied_.end(), session_->done().begin(), session_->done().end());
  }
  for (bool goes_on = true; goes_on && session_->ready() && step_ == Step::kGoesOn;) {
    switch (reads_) {
      case Reads::kNothing:
        goes_on = PlanReads(now_ns);
        break;
      case Reads::kBuckets:
        goes_on = OnBuckets();
        break;
      case Reads::kItems:
        goes_on = OnItems();
        break;
      case Reads::kValues:
        goes_on = OnValues();
        break;
      case Reads::kCommits:
        goes_on = OnCommits();
        break;
    }
  }
  if (waits_for_slot_) deadline_ns_ = std::min(deadline_ns_, now_ns + kTryAgainNs);
  CheckAdvance(now_ns);
}

void Joiner::CheckAdvance(int64_t now_ns) {
  if (std::exchange(advances_, walk_->advances()) != walk_->advances()) advanced_ns_ = now_ns;
  if (step_ != Step::kGoesOn || now_ns - advanced_ns_ <= options_.stuck_ns_max) return;
  if (waits_for_slot_) {
    Fail(absl::ResourceExhaustedError("the index has no slot for an item of the primary"));
  } else {
    Fail(absl::AbortedError("what is READ of the primary changes too fast, or takes too long"));
  }
}

bool Joiner::PlanReads(int64_t now_ns) {
  switch (walk_->step()) {
    case IndexWalk::Step::kReadBuckets:
      PostBuckets(now_ns);
      return true;
    case IndexWalk::Step::kReadItems:
      next_item_ = 0;
      reads_ = Reads::kItems;
      return true;
    case IndexWalk::Step::kWantIndex:
      return WantIndex(now_ns);
    case IndexWalk::Step::kDone:
      step_ = Step::kDone;
      return false;
    case IndexWalk::Step::kChangesTooFast:
      Fail(absl::AbortedError("the primary's index changes too fast for a walk"));
      return false;
    case IndexWalk::Step::kUnknownSlot:
      Fail(absl::UnimplementedError(
          "the primary has items of a kind that only newer versions know: upgrade this member"));
      return false;
  }
  return false;
}

bool Joiner::WantIndex(int64_t now_ns) {
  deadline_ns_ = std::min(deadline_ns_, look_again_ns_);
  if (now_ns < look_again_ns_) return false;
  walk_->Resume();
  if (walk_->step() != IndexWalk::Step::kWantIndex) return true;
  session_->WantIndex();
  look_again_ns_ = now_ns + kTryAgainNs;
  deadline_ns_ = now_ns;  // the next Poll asks
  return false;
}

// When a run begins, the READs of the one before it are done. All that follow are of the index that
// the view had then, or of a later one.
void Joiner::PostBuckets(int64_t now_ns) {
  if (walk_->begins_run()) {
    session_->Acknowledge(run_generation_);
    run_generation_ = session_->view().index.generation;
  }
  const IndexWalk::Read read = walk_->buckets();
  posted_ns_ = now_ns;
  session_->AddRead(0, read.offset, read.bytes, buffer(0), buffers_.lkey());
  session_->Post();
  reads_ = Reads::kBuckets;
}

bool Joiner::OnBuckets() {
  if (session_->in_flight() > 0) return false;
  walk_->OnBuckets({buffer(0), walk_->buckets().bytes}, posted_ns_, options_.clock_ns());
  reads_ = Reads::kNothing;
  return true;
}

bool Joiner::OnItems() {
  if (!TakeCopied()) return false;
  const std::vector<Slot>& slots = walk_->items();
  while (next_item_ < slots.size() && !free_buffers_.empty()) {
    const uint32_t to = free_buffers_.back();
    free_buffers_.pop_back();
    item_of_buffer_[to] = next_item_;
    const Slot slot = slots[next_item_++];
    session_->AddRead(to, slot.offset(), IndexWalk::ReadBytesOf(slot), buffer(to), buffers_.lkey());
  }
  session_->Post();
  if (free_buffers_.size() < kBuffers) return false;
  batch_end_ = 0;
  return BeginBatch();
}

bool Joiner::TakeCopied() {
  while (!copied_.empty()) {
    const uint32_t from = copied_.back();
    const uint32_t i = item_of_buffer_[from];
    const Slot slot = walk_->items()[i];
    const auto item = walk_->OnItem(i, {buffer(from), IndexWalk::ReadBytesOf(slot)});
    if (item && IsLargeClass(slot.size_class())) {
      OnLongHead(i, *item);
    } else if (item && !Insert(item->header, item->key, item->value)) {
      return false;
    }
    copied_.pop_back();
    free_buffers_.push_back(from);
  }
  return true;
}

// The value of a key that the stream brought something for, or that is here already, is not READ.
void Joiner::OnLongHead(uint32_t item, const IndexWalk::Item& head) {
  const uint64_t end = LargeValueOffset(head.key.size()) + head.header.value_bytes;
  if (end > walk_->items()[item].read_bytes()) return walk_->OnItemLost(item);
  version_max_ = std::max(version_max_, head.header.version);
  JoinTarget& target = *options_.target;
  if (!target.Wants(head.key) || IsExpired(head.header)) return;
  if (filter_.Has(target.HashOf(head.key)) || target.Has(head.key, wall_ms_)) return;
  longs_.push_back({.item = item, .header = head.header, .key = std::string(head.key), .at = 0});
}

// Begins to READ as many of the run's next long values as there is room for. If there are none, the
// run's items are done.
bool Joiner::BeginBatch() {
  batch_begin_ = next_long_ = next_taken_ = batch_end_;
  next_piece_ = 0;
  if (batch_begin_ == longs_.size()) {
    longs_.clear();
    reads_ = Reads::kNothing;
    walk_->OnItemsDone();
    return true;
  }
  absl::Status status = MakeRoomForValue(longs_[batch_begin_].header.value_bytes);
  if (!status.ok()) {
    Fail(std::move(status));
    return false;
  }
  uint64_t at = 0;
  for (; batch_end_ < longs_.size() && batch_end_ - batch_begin_ < kBuffers; ++batch_end_) {
    Long& it = longs_[batch_end_];
    if (at + it.header.value_bytes > values_.size()) break;
    it.at = at;
    at += it.header.value_bytes;
  }
  reads_ = Reads::kValues;
  return true;
}

absl::Status Joiner::MakeRoomForValue(uint64_t bytes) {
  if (values_.mr != nullptr && values_.size() >= bytes) return absl::OkStatus();
  values_.mr.reset();  // before its memory
  GANNET_ASSIGN_OR_RETURN(
      values_, RegisteredBuffer::Create(pd(), std::max(std::bit_ceil(bytes), kValuesBytesMin)));
  return absl::OkStatus();
}

bool Joiner::OnValues() {
  uint64_t bytes = 0;
  while (next_long_ < batch_end_ && session_->room() > 0 && bytes < kValueBytesPerPoll) {
    const Long& it = longs_[next_long_];
    const uint64_t offset =
        walk_->items()[it.item].offset() + LargeValueOffset(it.key.size()) + next_piece_;
    const uint64_t left = it.header.value_bytes - next_piece_;
    const auto piece = static_cast<uint32_t>(std::min<uint64_t>(left, kPieceBytes));
    session_->AddRead(0, offset, piece, values_.data() + it.at + next_piece_, values_.lkey());
    bytes += piece;
    next_piece_ += piece;
    if (piece < left) continue;
    next_piece_ = 0;
    ++next_long_;
  }
  session_->Post();
  if (bytes > 0 || session_->in_flight() > 0) return false;
  // All values are here: READ their commit words again.
  for (size_t i = batch_begin_; i < batch_end_; ++i) {
    const auto to = static_cast<uint32_t>(i - batch_begin_);
    session_->AddRead(0, walk_->items()[longs_[i].item].offset(), sizeof(ItemHeader::commit),
                      buffer(to), buffers_.lkey());
  }
  session_->Post();
  reads_ = Reads::kCommits;
  return false;
}

bool Joiner::OnCommits() {
  if (session_->in_flight() > 0 || !TakeValues()) return false;
  return BeginBatch();
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
    const char* value = reinterpret_cast<const char*>(values_.data() + it.at);
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
                   .expiry_ms = header.expiry_ms(),
                   .flags = header.flags,
                   .key = key,
                   .value = value};
  switch (target.Insert(put, wall_ms_)) {
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
