#include "tests/model/lookup_reader.h"

#include "tests/model/lookup_writer.h"

namespace gannet::model::lookup {
namespace {

bool InBucket(Word word, int bucket) {
  return word >= SlotWord(bucket, 0) && word <= ChecksumWord(bucket);
}

enum class Proof { kThisKey, kOtherKey, kDeadOrTorn };

Proof ProveItem(const Rules& rules, const std::array<uint16_t, kWords>& copy, int block) {
  const uint16_t commit = copy[CommitWord(block)];
  const bool live = rules.state_in_commit_word ? IsLive(commit) : copy[StateWord(block)] == 1;
  const uint16_t key = copy[KeyWord(block)];
  const bool whole = !rules.item_checksum || commit == LiveCommit(key, copy[ValueWord(block)]);
  if (!live || !whole) return Proof::kDeadOrTorn;
  return key == KeyContent(kKeyK) ? Proof::kThisKey : Proof::kOtherKey;
}

}  // namespace

bool Reader::MaySample(const State& state, Word word) {
  if ((state.sampled >> word & 1) != 0) return false;
  switch (state.phase) {
    case Phase::kIdle:
    case Phase::kDone:
      return false;
    case Phase::kWindow:
    case Phase::kAgain:
      return InBucket(word, kHome) || InBucket(word, kNext);
    case Phase::kStash:
      return InBucket(word, kStash);
    case Phase::kItems:
    case Phase::kStashItems:
      return word >= CommitWord(0) &&
             (state.blocks >> ((word - CommitWord(0)) / kItemWords) & 1) != 0;
  }
  return false;
}

Reader::State Reader::Advance() {
  for (int word = 0; word < kWords; ++word) {
    copy_[word] = (state_.sampled >> word & 1) != 0 ? state_.copy[word] : state_.memory[word];
  }
  state_.copy = {};
  state_.sampled = 0;
  switch (state_.phase) {
    case Phase::kIdle:
      state_.seen = 1 << state_.truth;
      Post(Phase::kWindow);
      break;
    case Phase::kWindow:
      AfterWindow();
      break;
    case Phase::kStash:
      AfterStash();
      break;
    case Phase::kItems:
    case Phase::kStashItems:
      AfterItems();
      break;
    case Phase::kAgain:
      AfterAgain();
      break;
    case Phase::kDone:
      break;
  }
  return state_;
}

void Reader::AfterWindow() {
  state_.window_exact = WindowExact();
  state_.first[kHome] = BucketContent(copy_, kHome);
  state_.first[kNext] = BucketContent(copy_, kNext);
  state_.blocks = Candidates(kHome) | Candidates(kNext);
  state_.window_matched = state_.blocks != 0;
  if (state_.window_matched) return Post(Phase::kItems);
  AfterWindowItems();
}

// A slot matched, so the item decides. A dead or torn item is never a miss.
void Reader::AfterItems() {
  bool all_other_keys = true;
  for (int block = 0; block < kBlocks; ++block) {
    if ((state_.blocks >> block & 1) == 0) continue;
    const Proof proof = ProveItem(rules_, copy_, block);
    if (proof == Proof::kThisKey) {
      const bool was_its_value = (state_.seen >> copy_[ValueWord(block)] & 1) != 0;
      return Finish(was_its_value ? Verdict::kHit : Verdict::kWrongHit);
    }
    all_other_keys &= proof == Proof::kOtherKey;
  }
  state_.blocks = 0;
  if (!all_other_keys) return Finish(Verdict::kRetry);
  state_.phase == Phase::kItems ? AfterWindowItems() : AfterStashItems();
}

void Reader::AfterWindowItems() {
  if (!state_.window_exact) return Finish(Verdict::kRetry);
  if (StashTagOf(state_.first[kHome])) return Post(Phase::kStash);
  if (state_.window_matched && rules_.window_again) return Post(Phase::kAgain);
  Finish(Verdict::kMiss);
}

void Reader::AfterStash() {
  state_.blocks = Candidates(kStash);
  if (state_.blocks != 0) return Post(Phase::kStashItems);
  ConfirmStashMiss();
}

void Reader::AfterStashItems() {
  if (rules_.ask_when_stash_matched) return Finish(Verdict::kRetry);
  ConfirmStashMiss();
}

void Reader::ConfirmStashMiss() {
  if (rules_.window_again) return Post(Phase::kAgain);
  Finish(Verdict::kMiss);
}

void Reader::AfterAgain() {
  const bool identical = WindowExact() && BucketContent(copy_, kHome) == state_.first[kHome] &&
                         BucketContent(copy_, kNext) == state_.first[kNext];
  Finish(identical ? Verdict::kMiss : Verdict::kRetry);
}

bool Reader::BucketExact(int bucket) const {
  return !rules_.bucket_checksum || copy_[ChecksumWord(bucket)] == BucketContent(copy_, bucket);
}

bool Reader::WindowExact() const {
  const bool counters_agree = MovesOf(copy_[MetaWord(kHome)]) == MovesOf(copy_[MetaWord(kNext)]);
  return BucketExact(kHome) && BucketExact(kNext) && (counters_agree || !rules_.compare_counters);
}

uint8_t Reader::Candidates(int bucket) const {
  uint8_t blocks = 0;
  for (int slot = 0; slot < kSlots; ++slot) {
    const uint16_t content = copy_[SlotWord(bucket, slot)];
    if (content != 0) blocks |= 1 << (content - 1);
  }
  return blocks;
}

void Reader::Finish(Verdict verdict) {
  if (verdict == Verdict::kMiss && (state_.seen & 1) == 0) verdict = Verdict::kFalseMiss;
  state_ = {};  // it does not matter what the writer does next
  state_.phase = Phase::kDone;
  state_.verdict = verdict;
}

}  // namespace gannet::model::lookup
