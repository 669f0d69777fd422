#ifndef GANNET_CLIENT_SESSION_GROUP_MEMBERS_H_
#define GANNET_CLIENT_SESSION_GROUP_MEMBERS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/protocol/message.h"

namespace gannet {

// Learns where the members of a server's group can be reached, so that the next primary is found
// even if the user listed one member, or those of long ago. Decides when the session asks for the
// map of the cluster (partition_map.h), and takes the answers, a piece each.
//
// The session asks as soon as it is connected, and then again, as members come and go. At first it
// asks more often: a server that has just been started does not know all of them.
//
// One owner thread.
class GroupMembers {
 public:
  // From one map to the next: at first, and in the end.
  static constexpr int64_t kPeriodNs = kNsPerSecond;
  static constexpr int64_t kPeriodNsMax = 32 * kNsPerSecond;

  // `name`: of the group; empty: not known.
  explicit GroupMembers(std::string name) : name_(std::move(name)) {}

  // A connection was made. What was asked over the last one will not be answered. `group`: the
  // server is in one.
  void Restart(bool group, int64_t now_ns);
  // Returns whether to ask for a piece of the map now.
  bool AskDue(int64_t now_ns) const {
    return !asked_ && (position_ != 0 || now_ns >= next_map_ns_);
  }
  // It is asked for. Returns where it begins. REQUIRES: AskDue().
  uint64_t Ask(int64_t now_ns);
  void OnReply(const ReplyView& reply);
  // Returns the addresses of the members, "HOST:PORT" each, once after each whole map. If the
  // group's name is not known, it is the only one, or the one with the `connected` address.
  std::optional<std::vector<std::string>> Take(std::string_view connected);
  bool has_map() const { return whole_; }

 private:
  static constexpr int64_t kNever = INT64_MAX;

  const std::string name_;
  int64_t next_map_ns_ = kNever;
  int64_t period_ns_ = kPeriodNs;
  bool asked_ = false;
  uint64_t position_ = 0;  // where the next piece begins
  std::string bytes_;      // the pieces so far
  bool whole_ = false;     // these are all
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_GROUP_MEMBERS_H_
