#include "server/sessions/locks/lock_janitor.h"

#include <algorithm>

#include "common/base/words.h"
#include "common/layout/lock_word.h"

namespace gannet {

int64_t LockJanitor::Period(BootTime now) const {
  const int64_t words = static_cast<int64_t>(words_.size());
  if (now < quick_until_) return std::max(kQuickPassNsMin, words * kQuickNsPerWord);
  return std::max(kLeisurePassNsMin, words * kLeisureNsPerWord);
}

void LockJanitor::Hasten(BootTime now) {
  quick_until_ = now + kQuickNs;
  // A pass under way may already have passed words of the newly dead connection, so the next pass
  // follows at once.
  next_pass_ = now;
}

bool LockJanitor::Poll(BootTime now) {
  if (!in_pass()) {
    if (now < next_pass_) return false;
    position_ = 0;
    next_pass_ = now + Period(now);
  }
  const size_t end = std::min(position_ + kWordsPerPoll, words_.size());
  while (position_ < end && Examine(position_)) ++position_;
  // A refusal with nothing in flight means that swaps do not work any more. Waiting would help
  // nobody.
  if (position_ < end && cas_->in_flight() == 0) position_ = words_.size();
  return in_pass();
}

bool LockJanitor::Examine(size_t index) {
  // Relaxed: only the word itself matters, and the swap compares it again.
  const LockWord word(LoadWord(&words_[index]));
  if (word.free() || alive_->Alive(word.connection_id())) return true;
  return cas_->Start(index, word.word(), 0, [this, word](bool ok, uint64_t old) {
    if (ok && old == word.word()) ++locks_broken_;
  });
}

}  // namespace gannet
