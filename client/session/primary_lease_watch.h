#ifndef GANNET_CLIENT_SESSION_PRIMARY_LEASE_WATCH_H_
#define GANNET_CLIENT_SESSION_PRIMARY_LEASE_WATCH_H_

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include "client/session/client_connection.h"
#include "common/base/clock.h"
#include "common/protocol/connect.h"
#include "common/rdma/completion.h"

namespace gannet {

// What a session knows of its primary's lease, and the completions that it does not believe yet.
//
// A member of a group may be deposed while clients still READ its memory, which their NICs do
// without it. A new primary takes over only when the old one's lease is over. So a client believes
// what it took from a completion queue only if it reads the clock *afterwards* and the lease is not
// over by then. Replies fall under the rule, too.
//
//   The server told at some time after `asked` that `left` is left. Its clock and this one differ
//   in rate by less than 1/128. So the lease is valid until asked + left - left / 128.
//
// A member never becomes primary again. So if an answer brings a lease that is valid now, the
// server was primary all along, and what was held until then is right.
//
// When partitions move, a server tells clients with an older map of no lease (docs/partitions.md,
// rule 6), because its memory may hold what it does not own any more. Replies need no map: a
// server that is primary executed the request while it owned the key, or refused it. So they are
// believed if the server's own lease is valid. Without this, answers that nobody may take could
// use up all credits, and none would be left for the question for the map.
//
// One owner thread.
class PrimaryLeaseWatch {
 public:
  static constexpr int64_t kLengthNsMin = 200 * kNsPerMs;    // the shortest lease of a group
  static constexpr int64_t kLengthNsUsual = 600 * kNsPerMs;  // assumed as long as none was seen

  // A connection was made, whose grant was asked for at `asked_ns`. Nothing is held any more.
  void Restart(const Grant& grant, int64_t asked_ns, int64_t now_ns);
  // The server has a lease, or must not be believed without one.
  bool on() const { return on_; }
  // The server said, in answer to a question of `asked_ns`, that `left_ms` are left.
  void OnTold(uint16_t left_ms, int64_t asked_ns, int64_t now_ns);
  // The server has a lease, but not for what this client READs, as its map of the cluster is old.
  // So there is no reason to give the server up. Arguments as of OnTold.
  void OnToldOthers(uint16_t left_ms, int64_t asked_ns) {
    asked_first_ns_ = kNever;
    replies_end_ns_ = std::max(replies_end_ns_, EndNs(left_ms, asked_ns));
  }
  // There may be a lease now, for another reason than that time passed.
  void AskAnew() { asked_ns_ = asked_first_ns_ = kNever; }
  bool ValidAt(int64_t now_ns) const { return now_ns < end_ns_; }
  // The same for replies.
  bool RepliesValidAt(int64_t now_ns) const { return now_ns < std::max(end_ns_, replies_end_ns_); }
  // Returns how long the group's leases are, as far as they were seen.
  int64_t length_ns() const { return length_ns_; }

  // Returns whether to ask the server now, by a heartbeat. An idle session does not ask.
  bool AskDue(int64_t now_ns, bool busy) const {
    return on_ && (busy || AnswersAlone(now_ns)) && now_ns >= AskNs();
  }
  // Returns a time before which the server surely owns what it has: it is in no group, or has a
  // lease for this client's map.
  int64_t OwnedUntilNs() const { return on_ ? end_ns_ : INT64_MAX; }
  // An operation was answered without the server. So the session is busy, for a while.
  void OnAnsweredAlone(int64_t now_ns) { answered_ns_ = now_ns; }
  void OnAsked(int64_t now_ns) {
    asked_ns_ = now_ns;
    if (asked_first_ns_ == kNever) asked_first_ns_ = now_ns;
  }
  // Returns whether to give up the connection: the lease is over, and has been asked for in vain
  // for as long as leases are.
  bool GivesUp(int64_t now_ns, bool busy);
  // Returns how long a busy session may leave out AskDue and GivesUp after `now_ns`.
  int64_t IdleNs(int64_t now_ns) const;

  // Completions that were taken when the lease was over, in their order.
  bool holds() const { return !held_.empty(); }
  void Hold(const ibv_wc& completion) { held_.push_back(completion); }
  std::span<const ibv_wc> held() const { return held_; }
  void ForgetHeld() { held_.clear(); }
  // Takes out those of them for which `may_go(completion)`, in their order.
  template <class F>
  std::vector<ibv_wc> TakeHeld(F may_go) {
    std::vector<ibv_wc> taken;
    std::ranges::copy_if(held_, std::back_inserter(taken), may_go);
    std::erase_if(held_, may_go);
    return taken;
  }
  // Throws away what is held, because the connections are given up. It is done again on the next
  // ones.
  void Disbelieve(std::span<const ClientConnection> connections);
  // READs whose completions were thrown away, on all connections so far.
  uint64_t disbelieved() const { return disbelieved_; }

 private:
  static constexpr int64_t kNever = INT64_MAX;

  static constexpr int64_t kShortNsMin = 40 * kNsPerMs;
  static constexpr int64_t kAnswersNs = 10 * kNsPerMs;

  bool AnswersAlone(int64_t now_ns) const { return now_ns < answered_ns_ + kAnswersNs; }

  // When to ask: half a lease before the end, and again if no answer extends the lease. Before a
  // hand-over, the primary tells of far shorter leases.
  int64_t AskNs() const {
    const int64_t lease_ns =
        left_ns_ < length_ns_ / 4 ? std::max(left_ns_, kShortNsMin) : length_ns_;
    const int64_t due_ns = end_ns_ - lease_ns / 2;
    return asked_ns_ == kNever ? due_ns : std::max(due_ns, asked_ns_ + lease_ns / 8);
  }

  static int64_t EndNs(uint16_t left_ms, int64_t asked_ns) {
    const int64_t left_ns = left_ms * kNsPerMs;
    return asked_ns + left_ns - left_ns / 128;
  }

  bool on_ = false;
  int64_t end_ns_ = 0;
  int64_t replies_end_ns_ = 0;
  int64_t length_ns_ = kLengthNsUsual;
  int64_t left_ns_ = kLengthNsUsual;     // as told last, if anything was left
  int64_t asked_ns_ = kNever;            // the last time
  int64_t asked_first_ns_ = kNever;      // the first time since an answer brought a valid lease
  int64_t answered_ns_ = INT64_MIN / 2;  // OnAnsweredAlone
  bool seen_ = false;                    // a lease, so length_ns_ is no assumption
  std::vector<ibv_wc> held_;             // no more than the completion queue has room for
  uint64_t disbelieved_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_PRIMARY_LEASE_WATCH_H_
