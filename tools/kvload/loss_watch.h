#ifndef GANNET_TOOLS_KVLOAD_LOSS_WATCH_H_
#define GANNET_TOOLS_KVLOAD_LOSS_WATCH_H_

#include <gannet/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace gannet::kvload {

// Tells a server that is lost to a run from one whose connection only broke for a moment. A server
// is lost when it stays away for kAwayNs, and at once when it cannot be reached, or comes back as
// another run of itself, without what it held.
//
// Costs one look at a bool a Poll as long as nothing happens. One thread: the client's, which also
// calls Log.
class LossWatch {
 public:
  static constexpr int64_t kAwayNs = 2 * kNsPerSecond;

  // `forgives`: a server that is back is as good as it was, even without what it held.
  explicit LossWatch(bool forgives) : forgives_(forgives) {}

  // What the client is connected to.
  void Begin(std::vector<ServerInfo> servers) {
    servers_ = std::move(servers);
    troubled_ = away_ = false;
  }
  // A line of the client's log: a warning says that a connection broke, other lines why it does not
  // come back.
  void Log(LogLevel level, std::string_view line, int64_t now_ns);
  bool troubled() const { return troubled_; }
  // While troubled, after each Poll and before its answers are believed: they may be another run's.
  void Look(const std::vector<ServerInfo>& now, int64_t now_ns);
  // Why, or empty.
  std::string_view lost() const { return lost_; }
  // True if a server could not be reached when it was last tried.
  bool away() const { return away_; }

 private:
  const bool forgives_;
  std::vector<ServerInfo> servers_;
  bool troubled_ = false;
  bool away_ = false;
  int64_t since_ns_ = 0;
  std::string last_line_;
  std::string lost_;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_LOSS_WATCH_H_
