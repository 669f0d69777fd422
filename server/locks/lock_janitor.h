#ifndef GANNET_SERVER_LOCKS_LOCK_JANITOR_H_
#define GANNET_SERVER_LOCKS_LOCK_JANITOR_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "server/locks/lock_cas.h"
#include "server/session/connection_ids.h"

namespace gannet {

// Breaks the locks of dead connections: looks through the lock words and swaps each that names a
// connection which is not alive back to 0.
//
// Once is not enough. A compare-and-swap of the dead may be on its way while its queue pair goes to
// the error state, so after a death the words are looked through again and again for kQuickNs, and
// at leisure for ever after. A look costs one load a word; nothing is done for free words and for
// words of the living.
//
// A state machine: Poll does a bounded piece of work, and says when it wants to be called next.
// Thread safety: the owner's thread only (ConnectionIds is shared by all workers).
class LockJanitor {
 public:
  static constexpr size_t kWordsPerPoll = 16384;
  static constexpr int64_t kQuickNs = 2'000'000'000;
  // From the start of one pass to the start of the next: 65,536 words are looked through every 50
  // ms after a death, every 2 s otherwise; more words more seldom, so that the cost stays the same.
  static constexpr int64_t kQuickNsPerWord = 763;
  static constexpr int64_t kQuickPassNsMin = 10'000'000;
  static constexpr int64_t kLeisureNsPerWord = 30'517;
  static constexpr int64_t kLeisurePassNsMin = 2'000'000'000;

  // All outlive the janitor.
  LockJanitor(std::span<const uint64_t> words, const ConnectionIds* alive, LockCas* cas)
      : words_(words), alive_(alive), cas_(cas) {}

  // A connection was retired: start a pass at once.
  void Hasten(int64_t now_ns);
  // True: a pass is under way, call again without sleeping.
  bool Poll(int64_t now_ns);
  // When Poll has something to do again, while it is not in a pass.
  int64_t next_pass_ns() const { return next_pass_ns_; }
  bool in_pass() const { return position_ < words_.size(); }

  // Somebody else broke one.
  void CountBroken() { ++locks_broken_; }
  uint64_t locks_broken() const { return locks_broken_; }

 private:
  int64_t Period(int64_t now_ns) const;
  // False: the queue of swaps is full, the same word is to be looked at again.
  bool Examine(size_t index);

  const std::span<const uint64_t> words_;
  const ConnectionIds* const alive_;
  LockCas* const cas_;
  size_t position_ = SIZE_MAX;  // of the pass under way; at or past the end: none
  int64_t next_pass_ns_ = 0;
  int64_t quick_until_ns_ = INT64_MIN;
  uint64_t locks_broken_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOCKS_LOCK_JANITOR_H_
