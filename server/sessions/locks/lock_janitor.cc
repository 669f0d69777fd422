#include "server/sessions/locks/lock_janitor.h"

#include <algorithm>

#include "common/base/words.h"
#include "common/layout/lock_word.h"

namespace gannet {

int64_t LockJanitor::Period(int64_t now_ns) const {
  const int64_t words = static_cast<int64_t>(words_.size());
  if (now_ns < quick_until_ns_) return std::max(kQuickPassNsMin, words * kQuickNsPerWord);
  return std::max(kLeisurePassNsMin, words * kLeisureNsPerWord);
}

void LockJanitor::Hasten(int64_t now_ns) {
  quick_until_ns_ = now_ns + kQuickNs;
  // A pass under way may already have passed words of the newly dead connection, so the next pass
  // follows at once.
  next_pass_ns_ = now_ns;
}

bool LockJanitor::Poll(int64_t now_ns) {
  if (!in_pass()) {
    if (now_ns < next_pass_ns_) return false;
    position_ = 0;
    next_pass_ns_ = now_ns + Period(now_ns);
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
