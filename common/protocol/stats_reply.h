#ifndef GANNET_COMMON_PROTOCOL_STATS_REPLY_H_
#define GANNET_COMMON_PROTOCOL_STATS_REPLY_H_

#include <cstdint>
#include <type_traits>

namespace gannet {

// The list of a server's statistics: X(name) for each, in the order of their bytes. What copies or
// prints all of them is made from it; docs/operations.md says what they count. New ones are
// appended.
#define GANNET_STATISTICS(X)                                                                \
  X(rpcs) /* requests served, heartbeats aside, since start */                              \
  X(heartbeats)                                                                             \
  X(cpu_us) /* of the process, user + system */                                             \
  X(slots_used)                                                                             \
  X(slots_total)                                                                            \
  X(heap_bytes) /* allocated to items */                                                    \
  X(heap_total)                                                                             \
  X(sessions)                                                                               \
  X(connections)                                                                            \
  X(items)                                                                                  \
  X(displacements)                                                                          \
  X(stash_used)                                                                             \
  X(locks_broken)                                                                           \
  X(uptime_ms)                                                                              \
  X(session_bytes)      /* of memory for sessions, without queue pairs */                   \
  X(reply_posts)        /* doorbells for replies and values */                              \
  X(receive_posts)      /* doorbells for receives */                                        \
  X(send_completions)   /* polled */                                                        \
  X(refused_heap_full)  /* writes */                                                        \
  X(refused_index_full) /* writes */                                                        \
  X(items_expired)      /* removed because their time was over */                           \
  X(items_moved)        /* to other blocks, to bring free memory together */                \
  X(locks_expired)      /* broken because their lease was over */                           \
  X(refused_connections)                                                                    \
  X(refused_requests)   /* malformed or against the rules */                                \
  X(index_growths)      /* since start */                                                   \
  X(items_deleted)      /* by a client */                                                   \
  X(items_evicted)      /* because the memory was full */                                   \
  X(evicted_by_writes)  /* of these: by writes that found no room */                        \
  X(eviction_watermark) /* bytes of the heap that are kept free; 0 if nothing is evicted */ \
  X(evicted_age_ms)     /* how long ago the items evicted of late were written */           \
  X(disk_sync)          /* 1 none, 2 interval, 3 always */                                  \
  X(disk_bytes)         /* of the journal and the snapshots */                              \
  X(disk_behind_bytes)  /* of the journal, that a power cut would take */                   \
  X(disk_behind_ms)     /* how old the oldest of those is */                                \
  X(disk_refused)       /* writes that the disk did not take */                             \
  X(disk_snapshots)     /* written since start */                                           \
  X(items_expiring)     /* of `items`: those that have an expiry */                         \
  X(items_leased)       /* of `items`: those of which clients may answer from copies */     \
  X(lease_waits)        /* writes that ended a lease, and had to wait for its end */        \
  X(lease_waited_ms)    /* what these had to wait, all together */                          \
  X(items_on_disk)      /* of `items`: those whose values are in the tier */                \
  X(tier_disk)          /* 0 no tier, 1 works, 2 slow, 3 full, 4 failed */                  \
  X(tier_bytes)         /* of the tier's file */                                            \
  X(tier_written)       /* values, since start */                                           \
  X(tier_evicted)       /* values that were there, and went for want of room */             \
  X(tier_reads)         /* of the disk, by GETs */                                          \
  X(tier_reads_joined)  /* GETs that joined a read of another one */                        \
  X(tier_reads_failed)  /* of tier_reads */                                                 \
  X(tier_read_us)       /* what tier_reads took, all together */                            \
  X(tier_page_cache)    /* 1: the tier goes through the system's page cache */              \
  X(tier_stub_bytes)    /* of the heap: blocks of stubs */                                  \
  X(tier_stub_budget)   /* bytes that those may take */                                     \
  X(tier_promoted)      /* values that were read there, and are in memory since */

// The value of a kStats reply. A reader takes as many words as it knows.
struct StatsReply {
#define GANNET_STATISTIC(name) uint64_t name;
  GANNET_STATISTICS(GANNET_STATISTIC)
#undef GANNET_STATISTIC
};
static_assert(sizeof(StatsReply) == 432 && std::is_trivially_copyable_v<StatsReply>);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_STATS_REPLY_H_
