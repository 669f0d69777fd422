#ifndef GANNET_CLIENT_SESSION_REQUEST_WINDOW_H_
#define GANNET_CLIENT_SESSION_REQUEST_WINDOW_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "client/session/registered_pool.h"
#include "common/base/check.h"

namespace gannet {

// No operation has this number.
inline constexpr uint32_t kInvalidOp = UINT32_MAX;
// Stands for an operation in the request for the map of the cluster, which no operation makes.
inline constexpr uint32_t kMapOp = UINT32_MAX - 1;
// The same in the questions where the server's leases on items are, and which rails it has.
inline constexpr uint32_t kItemLeasesOp = UINT32_MAX - 2;
inline constexpr uint32_t kRailsOp = UINT32_MAX - 3;
// Operations have numbers below.
inline constexpr uint32_t kOpsEnd = kRailsOp;

// The unanswered requests of a session: sequence numbers and credits. A request keeps its number
// until it is answered, over any number of connections, and so do its bytes, which the caller keeps
// at IndexOf. If it is sent again with the same number, the server answers from its record and does
// not apply it twice.
//
//   answered | unanswered (oldest) | answered | unanswered | next
//              <---------- less than `credits` ---------->
//
// One owner thread.
class RequestWindow {
 public:
  // The most credits that a client uses of what a server grants, so that buffers have a bound.
  static constexpr uint16_t kCreditsMax = 64;

  struct Entry {
    uint64_t sequence = 0;  // 0 = free
    // kInvalidOp: nobody waits for the answer any more.
    uint32_t op = kInvalidOp;
    uint32_t bytes = 0;      // of the encoded request
    int64_t timeout_ns = 0;  // of the operation
    LentBuffer value;        // lent to the server for reading until it answers
    LentBuffer reply;        // lent to the server for writing until it answers
    // What it cost so far: doorbells that it was the first of, SENDs, and their completions.
    uint16_t posts = 0;
    uint16_t sends = 0;
    uint16_t completions = 0;
  };

  // Begins a new session: no requests, sequence numbers from 1. REQUIRES: 0 < credits <=
  // kCreditsMax.
  void Restart(uint16_t credits) {
    GANNET_CHECK(credits > 0 && credits <= kCreditsMax, "so many credits are not granted");
    entries_.assign(credits, Entry{});
    next_ = oldest_ = 1;
  }

  bool CanSend() const { return next_ - oldest_ < entries_.size(); }
  bool empty() const { return next_ == oldest_; }
  // An upper bound of the unanswered requests: answered ones after the oldest count too.
  uint32_t unanswered() const { return static_cast<uint32_t>(next_ - oldest_); }
  uint32_t IndexOf(uint64_t sequence) const {
    return static_cast<uint32_t>(sequence % entries_.size());
  }

  // The number that the next request gets.
  uint64_t next() const { return next_; }
  // Adds a request, and returns it. REQUIRES: CanSend(), entry.sequence is next().
  Entry& Begin(const Entry& entry) {
    GANNET_CHECK(CanSend() && entry.sequence == next_, "no credit, or another's number");
    return entries_[IndexOf(next_++)] = entry;
  }

  // Returns the unanswered request of this number, or nullptr if there is none: a request that was
  // sent again may be answered twice. Call End when the answer is there.
  Entry* Find(uint64_t sequence) {
    if (entries_.empty() || sequence == 0) return nullptr;
    Entry& entry = entries_[IndexOf(sequence)];
    return entry.sequence == sequence ? &entry : nullptr;
  }
  // Returns whether the request of this number is unanswered.
  bool Has(uint64_t sequence) const {
    return sequence != 0 && !entries_.empty() && entries_[IndexOf(sequence)].sequence == sequence;
  }
  void End(Entry& entry) {
    entry = Entry{};
    while (oldest_ < next_ && entries_[IndexOf(oldest_)].sequence != oldest_) ++oldest_;
  }

  // Returns how many more GETs may be unanswered. They may have half of the credits, or the
  // only one.
  uint32_t RoomForGets() const {
    const auto is_get = [](const Entry& entry) { return entry.reply.data != nullptr; };
    const auto gets = static_cast<size_t>(std::ranges::count_if(entries_, is_get));
    const size_t gets_max = std::max<size_t>(entries_.size() / 2, 1);
    return static_cast<uint32_t>(gets_max - std::min(gets, gets_max));
  }
  // Returns the longest timeout of the operations whose requests are unanswered.
  int64_t LongestTimeoutNs() const {
    int64_t longest_ns = 0;
    for (const Entry& entry : entries_) longest_ns = std::max(longest_ns, entry.timeout_ns);
    return longest_ns;
  }

  // Calls f(Entry&) for each unanswered request, oldest first. `f` may call End.
  template <class F>
  void ForEachUnanswered(F f) {
    for (uint64_t s = oldest_; s < next_; ++s) {
      if (Entry* entry = Find(s); entry != nullptr) f(*entry);
    }
  }

 private:
  std::vector<Entry> entries_;
  uint64_t next_ = 1;
  uint64_t oldest_ = 1;  // next_ when all are answered
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_REQUEST_WINDOW_H_
