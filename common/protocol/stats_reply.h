#ifndef GANNET_COMMON_PROTOCOL_STATS_REPLY_H_
#define GANNET_COMMON_PROTOCOL_STATS_REPLY_H_

#include <cstdint>
#include <type_traits>

namespace gannet {

// The value of a kStats reply. New counters are appended, and a reader takes as many as it knows.
struct StatsReply {
  uint64_t rpcs;  // requests served, heartbeats aside, since start
  uint64_t heartbeats;
  uint64_t cpu_us;  // of the process, user + system
  uint64_t slots_used;
  uint64_t slots_total;
  uint64_t heap_bytes;  // allocated to items
  uint64_t heap_total;
  uint64_t sessions;
  uint64_t connections;
  uint64_t items;
  uint64_t displacements;
  uint64_t stash_used;
  uint64_t locks_broken;
  uint64_t uptime_ms;
  uint64_t session_bytes;       // of memory for sessions, without queue pairs
  uint64_t reply_posts;         // doorbells for replies and values
  uint64_t receive_posts;       // doorbells for receives
  uint64_t send_completions;    // polled
  uint64_t refused_heap_full;   // writes
  uint64_t refused_index_full;  // writes
  uint64_t items_expired;       // removed because their time was over
  uint64_t items_moved;         // to other blocks, to bring free memory together
  uint64_t locks_expired;       // broken because their lease was over
  uint64_t refused_connections;
  uint64_t refused_requests;  // malformed or against the rules
  // How the index grew.
  uint64_t index_growths;  // since start
  // Items that left, beside items_expired.
  uint64_t items_deleted;       // by a client
  uint64_t items_evicted;       // because the memory was full
  uint64_t evicted_by_writes;   // of these: by writes that found no room
  uint64_t eviction_watermark;  // bytes of the heap that are kept free; 0 if nothing is evicted
  uint64_t evicted_age_ms;      // how long ago the items evicted of late were written
  // About the disk. All 0 for a server that keeps no items on a disk.
  uint64_t disk_sync;          // 1 none, 2 interval, 3 always
  uint64_t disk_bytes;         // of the journal and the snapshots
  uint64_t disk_behind_bytes;  // of the journal, that a power cut would take
  uint64_t disk_behind_ms;     // how old the oldest of those is
  uint64_t disk_refused;       // writes that the disk did not take
  uint64_t disk_snapshots;     // written since start
  uint64_t items_expiring;     // of `items`: those that have an expiry
};
static_assert(sizeof(StatsReply) == 304 && std::is_trivially_copyable_v<StatsReply>);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_STATS_REPLY_H_
