#ifndef GANNET_SERVER_MAIN_HTTP_SERVER_VIEW_H_
#define GANNET_SERVER_MAIN_HTTP_SERVER_VIEW_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/layout/size_class.h"
#include "common/protocol/client_report.h"
#include "common/protocol/list_entries.h"
#include "common/protocol/message.h"
#include "server/group/members/member.h"
#include "server/rpc/worker_counters.h"

namespace gannet {

// A held lock, and how long it is held at least: the server does not see locks being taken.
struct SeenLock {
  LockEntry entry;
  uint64_t held_ms = 0;  // since an Observer first saw it
};

// What a server shows of itself, all read at one moment. It is plain data, so that the pages made
// of it can be tested without a server.
struct ServerView {
  using LatencyCounts = std::array<uint64_t, LatencyBucket::kCount>;

  std::string version;  // of the program
  std::string name;     // the server's; may be empty
  std::string cluster;  // of a member of a group
  std::string group_name;
  std::string address;
  std::string device;
  std::string kind;  // of the device
  uint32_t workers = 0;
  bool evicts = false;
  uint64_t time_ms = 0;  // the server's clock

  StatsReply stats{};
  std::array<uint64_t, WorkerCounters::kOpcodes> requests{};  // by opcode
  // What clients reported, since the start.
  ClientCounts clients{};
  std::array<LatencyCounts, kLatencyKinds> latencies{};
  struct ClassUse {
    uint64_t blocks = 0;
    uint64_t bytes = 0;
  };
  std::array<ClassUse, kSizeClassMax + 1> blocks{};  // of items, by size class

  std::vector<ClientEntry> connections;
  std::vector<SeenLock> locks;  // at most kLocksMax of them
  uint64_t locks_held = 0;
  uint64_t longest_lock_ms = 0;
  uint64_t lock_rail_changes = 0;
  std::vector<SlowEntry> slow;  // the newest first
  uint64_t slow_requests = 0;   // since the start

  struct Rail {
    std::string address;
    std::string device;
    bool up = false;
    uint32_t mbit_per_second = 0;  // 0: unknown
    uint32_t mtu_bytes = 0;        // 0: unknown
    uint64_t connections = 0;
    uint64_t requests = 0;  // since the start, without heartbeats
    // Connections that took their alternate path, by this rail, and those of this rail that could
    // not.
    uint64_t moved = 0;
    uint64_t not_moved = 0;
  };
  std::vector<Rail> rails;  // empty: there is one

  std::optional<Member::Seen> group;  // nullopt: the server is in no group

  static constexpr size_t kLocksMax = 64;
};

// Returns the name of a kind of operation in clients' reports, as in metrics.
const char* LatencyKindName(size_t kind);

// Returns what a primary shows of each other member of its group. One without a link to it is
// there, too: it does not run, or is cut off.
std::vector<Primary::Seen::Backup> AllBackups(const Member::Seen& member);

// Returns why a member of a group is not ready: it does not have all items yet, or it has no lease.
// "" if it is: it serves, or may take over.
std::string WhyMemberIsNotReady(const Member::Seen& member);

// Returns the view in the text format of Prometheus.
std::string RenderMetrics(const ServerView& view);
// Returns the view as JSON, for the page. Without `show_keys`, keys of slow requests are left
// out, and only their lengths are told.
std::string RenderJson(const ServerView& view, bool show_keys);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_HTTP_SERVER_VIEW_H_
