#ifndef GANNET_TOOLS_KVLOAD_LOSS_WATCH_H_
#define GANNET_TOOLS_KVLOAD_LOSS_WATCH_H_

#include <gannet/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"

namespace gannet::kvload {

// Tells whether a server is lost to a run, or its connection only broke for a moment. A server is
// lost if it stays away for kAwayNs. It is lost at once if it cannot be reached, or was restarted
// and so lost its data. A group that failed over to another member is not lost.
//
// While nothing happens it costs one check of a bool per Poll. One thread: the client's, which also
// calls Log.
class LossWatch {
 public:
  static constexpr int64_t kAwayNs = 2 * kNsPerSecond;
  // How long a group may be away. A fail-over takes up to two of its leases, which last 10 s at
  // most.
  static constexpr int64_t kGroupAwayNs = 30 * kNsPerSecond;

  // If `forgives`, a server that comes back is not lost, even if it lost its data.
  explicit LossWatch(bool forgives) : forgives_(forgives) {}

  // Starts to watch the servers that the client is connected to.
  void Begin(std::vector<ServerInfo> servers) {
    servers_ = std::move(servers);
    troubled_ = away_ = lost_for_good_ = false;
  }
  // Takes a line of the client's log. A warning says that a connection broke. Other lines say why
  // it does not come back.
  void Log(LogLevel level, std::string_view line, int64_t now_ns);
  bool troubled() const { return troubled_; }
  // Call it while troubled(), after each Poll and before its answers are believed. They may come
  // from a restarted server.
  void Look(const std::vector<ServerInfo>& now, int64_t now_ns);
  // Returns why the server is lost. Empty if it is not.
  std::string_view lost() const { return lost_; }
  // Returns true if the last attempt to reach a server failed.
  bool away() const { return away_; }
  // Returns how often a group was seen with another primary. If it fails over twice between two
  // looks, that counts once.
  uint64_t fail_overs() const { return fail_overs_; }

 private:
  int64_t AwayNsMax() const;
  void LookForOtherRuns(const std::vector<ServerInfo>& now);

  const bool forgives_;
  std::vector<ServerInfo> servers_;
  bool troubled_ = false;
  bool away_ = false;
  bool lost_for_good_ = false;
  uint64_t fail_overs_ = 0;
  int64_t since_ns_ = 0;
  std::string last_line_;
  std::string lost_;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_LOSS_WATCH_H_
