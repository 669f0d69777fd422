#ifndef GANNET_SERVER_SESSIONS_LOCKS_LOCK_JANITOR_H_
#define GANNET_SERVER_SESSIONS_LOCKS_LOCK_JANITOR_H_

#include <cstddef>
#include <cstdint>

#include "common/base/boot_time.h"
#include "common/layout/lock_word_table.h"
#include "server/sessions/locks/lock_cas.h"
#include "server/sessions/session/connection_ids.h"

namespace gannet {

// Breaks the locks of dead connections. It looks through the lock words, and swaps each word that
// names a dead connection back to 0.
//
// Doing it once is not enough: a dead connection's compare-and-swap may be on its way while its
// queue pair goes to the error state. So after a death the janitor looks through the words again
// and again for kQuickNs, and from then on at leisure for ever. A look costs one load per word.
// Free words and words of living connections cost nothing more.
//
// A state machine: Poll does a bounded piece of work, and next_pass says when to call it next.
// Thread safety: the owner's thread only (ConnectionIds is shared by all workers).
class LockJanitor {
 public:
  static constexpr size_t kWordsPerPoll = 16384;
  static constexpr int64_t kQuickNs = 2'000'000'000;
  // The time from the start of one pass to the start of the next. 65,536 words are looked through
  // every 50 ms after a death, and every 2 s otherwise. With more words it takes longer, so that
  // the cost stays the same.
  static constexpr int64_t kQuickNsPerWord = 763;
  static constexpr int64_t kQuickPassNsMin = 10'000'000;
  static constexpr int64_t kLeisureNsPerWord = 30'517;
  static constexpr int64_t kLeisurePassNsMin = 2'000'000'000;

  // All arguments outlive the janitor.
  LockJanitor(const LockWordTable& words, const ConnectionIds* alive, LockCas* cas)
      : words_(words), alive_(alive), cas_(cas) {}

  // Swaps by this from now on. It outlives the janitor, or the next call. What the one before has
  // in flight is reported no more, or was.
  void UseCas(LockCas* cas) { cas_ = cas; }
  // Starts a pass at once, because a connection was retired.
  void Hasten(BootTime now);
  // Returns true if a pass is under way; then call again without sleeping.
  bool Poll(BootTime now);
  // When Poll has work again, if no pass is under way.
  BootTime next_pass() const { return next_pass_; }
  bool in_pass() const { return position_ < words_.size(); }

  // Counts a lock that somebody else broke.
  void CountBroken() { ++locks_broken_; }
  uint64_t locks_broken() const { return locks_broken_; }

 private:
  int64_t Period(BootTime now) const;
  // Returns false if the queue of swaps is full; then the same word must be looked at again.
  bool Examine(size_t index);

  const LockWordTable& words_;
  const ConnectionIds* const alive_;
  LockCas* cas_;
  size_t position_ = SIZE_MAX;  // of the pass under way; at or past the end if there is none
  BootTime next_pass_;
  BootTime quick_until_;
  uint64_t locks_broken_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_LOCKS_LOCK_JANITOR_H_
