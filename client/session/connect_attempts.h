#ifndef GANNET_CLIENT_SESSION_CONNECT_ATTEMPTS_H_
#define GANNET_CLIENT_SESSION_CONNECT_ATTEMPTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/session/address_order.h"
#include "client/session/liveness.h"
#include "common/base/clock.h"
#include "common/protocol/connect.h"
#include "common/rdma/address.h"
#include "common/rdma/name_lookup.h"

namespace gannet {

// Decides when a session tries to connect next, and to which address. Keeps why the session is not
// connected.
//
// A round tries all addresses, one after the other. After a round that failed a server counts as
// unreachable until it is connected again, and the next round begins after a back-off.
//
// A group has its members' addresses, and one of them is primary, or will be soon:
//   - After a break the others are asked first, and the former primary last.
//   - The first is asked at once, unless the connection was brief. Or a member that takes clients
//     and drops them would be asked again and again without a pause. The pause doubles with each
//     brief connection in a row.
//   - Whom a member names as primary is tried next, whether or not it is in the list.
//   - Members that the primary knows of are tried as well (LearnMembers).
//   - Attempts are short, and a moment apart. Both grow with the time that the group is lost.
//   - As long as a member answers that it is not primary, the group counts as starting. If nobody
//     answers, it is unreachable, but only after the time of several leases.
//
// If the addresses are those of names, the names are looked up again after each round in vain: a
// server that was restarted elsewhere has another address.
//
// One owner thread.
class ConnectAttempts {
 public:
  static constexpr int64_t kNever = INT64_MAX;
  // Between two attempts to connect to a group, at first.
  static constexpr int64_t kApartNs = 20 * kNsPerMs;
  static constexpr int64_t kApartNsMax = kNsPerSecond;
  // A connection to a group that is over so soon was brief.
  static constexpr int64_t kBriefNs = kApartNs;
  // A group whose members are silent is unreachable after so many leases.
  static constexpr int64_t kPatientLeases = 4;
  // How long an attempt takes at most if the server has another rail.
  // At first, that is: it grows with the time that the server is lost. After so long without a
  // connection by any rail the server is unreachable.
  static constexpr int64_t kRailAttemptNs = 300 * kNsPerMs;
  static constexpr int64_t kRailPatienceNs = 3 * kNsPerSecond;

  struct Failure {
    absl::Status why;
    RejectCode code{};                     // the server's, if it refused; otherwise 0
    bool answered = false;                 // the server answered, though it did not connect
    bool session_forgotten = false;        // it only refused to resume the session
    std::optional<SocketAddress> primary;  // kNotPrimary: whom it named
  };
  struct Options {
    std::vector<SocketAddress> addresses;
    bool reconnect;      // whether to try again after a connection broke
    bool group = false;  // they are the members of a group. Any server's answer may tell that, too
    int64_t lease_ns;    // of its primary, as long as that is not known
    std::shared_ptr<NameLookup> names = nullptr;  // null: the addresses stay what they are
  };

  explicit ConnectAttempts(Options options)
      : order_(std::move(options.addresses)),
        reconnect_(options.reconnect),
        group_(options.group),
        names_(std::move(options.names)),
        lease_ns_(options.lease_ns) {}

  void OnFailed(Failure failure);
  // `group`: the server is the primary of one.
  void OnConnected(bool group, int64_t now_ns);
  // A connection broke, or could not go on. `lease_ns`: how long its primary's leases were.
  void OnBroken(absl::Status why, int64_t lease_ns);
  // These are the members of the group now, "HOST:PORT" each. `only`: of those that the user
  // listed, some may be of other groups, so only members are tried from now on.
  void LearnMembers(const std::vector<std::string>& members, bool only);
  // The server has these rails; empty: one. If the connection breaks, they are asked, too: of a
  // server that is alone the others first, at once.
  void LearnRails(const std::vector<SocketAddress>& rails);
  // Call it when nothing of the last attempt or connection is left.
  void ScheduleNext(int64_t now_ns);

  // The address that is connected, or will be tried next.
  const SocketAddress& address() const { return order_.current(); }
  // Returns how long an attempt that begins now may take.
  int64_t AttemptNs(int64_t now_ns, int64_t connect_timeout_ns) const;
  // When to try next; kNever: not again.
  int64_t next_ns() const { return next_ns_; }
  bool was_connected() const { return was_connected_; }
  // All addresses were tried in vain since the server was last connected.
  bool unreachable() const { return unreachable_; }
  // At the last attempt the server said that it is still preparing its memory. Or it is a group,
  // and in the last round a member said that it is not primary.
  bool starting() const {
    return group_ ? waits_for_primary_ : refused_with_ == RejectCode::kStarting;
  }
  // Why there is no connection. OK if there is one, or none was tried yet.
  const absl::Status& status() const { return status_; }
  // Returns whether a failure is worth a line in the log. Later rounds have the same to say, unless
  // the server refuses for another reason. Of a group, each reason is told once.
  bool IsNews(RejectCode code) const {
    if (group_) return (told_ & Bit(code)) == 0;
    return !unreachable_ || code != refused_with_;
  }

 private:
  static uint32_t Bit(RejectCode code) { return 1u << (static_cast<uint32_t>(code) % 32); }
  int64_t LostNs(int64_t now_ns) const { return lost_ns_ == kNever ? 0 : now_ns - lost_ns_; }
  void GoOn(const Failure& failure);
  void EndRound();
  // Notes whether the current address answered. Returns `why` with all others that did not.
  absl::Status WithOthersInVain(const Failure& failure);
  void LookForNames();
  void LearnAddresses();

  AddressOrder order_;
  const bool reconnect_;
  bool group_;
  const std::shared_ptr<NameLookup> names_;
  // The members that were learned: those that are written as numbers, the names of the others, and
  // what is known of these.
  std::vector<SocketAddress> members_;
  std::vector<std::string> named_members_;
  std::vector<SocketAddress> resolved_members_;
  std::shared_ptr<NameLookup> member_names_;  // null: there are none
  bool only_members_ = false;
  std::vector<SocketAddress> rails_;  // of the server that was connected last; empty: one
  int64_t lease_ns_;
  absl::Status status_;
  std::set<std::string> in_vain_;  // addresses that did not answer since the last connection
  int64_t next_ns_ = 0;
  bool at_once_ = false;     // the next attempt needs no pause
  bool broken_ = false;      // a connection was, since the last ScheduleNext
  bool round_over_ = false;  // the last attempt was the last of its round
  bool begun_ = false;       // an attempt of this round failed
  bool answered_ = false;    // in this round the server answered, though it did not connect
  bool answered_not_primary_ = false;  // group: in this round a member did
  bool waits_for_primary_ = false;     // group: in the last round, or in this one, a member did
  bool unreachable_ = false;
  bool was_connected_ = false;
  RejectCode refused_with_{};  // at the last attempt; 0: the server did not refuse it
  uint32_t told_ = 0;          // codes of failures since the last connection
  int64_t lost_ns_ = kNever;   // when the connection was found to be gone, or first not made
  int64_t connected_ns_ = 0;   // when the last connection was made
  Backoff backoff_;
  Backoff brief_;  // after brief connections
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_CONNECT_ATTEMPTS_H_
