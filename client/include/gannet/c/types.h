#ifndef GANNET_C_TYPES_H_
#define GANNET_C_TYPES_H_

/* The types that gannet_client and gannet_async share. Include <gannet/gannet.h>. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How a call ended. A status is an int, so that a later library may have more of them. */
typedef int gannet_status;
enum {
  GANNET_OK = 0,
  /* A write that may or may not have been applied. */
  GANNET_UNKNOWN = 2,
  /* The key is empty or too long, the value is too long, or an option does not fit the call.
   * Nothing was sent. */
  GANNET_INVALID_ARGUMENT = 3,
  /* The server is alive but was too slow. A write may have been applied. gannet_client_lock:
   * another client still holds the lock. */
  GANNET_DEADLINE_EXCEEDED = 4,
  /* There is no such key. It is the answer to a get, delete, touch or break_lock, and to a write
   * with GANNET_IF_PRESENT. Nothing is wrong, and gannet_last_error does not change. */
  GANNET_NOT_FOUND = 5,
  /* GANNET_IF_ABSENT was set, and the key exists. */
  GANNET_ALREADY_EXISTS = 6,
  GANNET_PERMISSION_DENIED = 7,
  /* The server's memory or index is full. gannet_async: too many operations are in flight, so poll
   * first. Nothing was changed. */
  GANNET_RESOURCE_EXHAUSTED = 8,
  /* GANNET_IF_VERSION does not match; or the value is no number; or the call cannot work here. */
  GANNET_FAILED_PRECONDITION = 9,
  /* The lock was lost. Nothing was changed. */
  GANNET_ABORTED = 10,
  /* A number that does not fit 64 bits, or a value that would be too long. Nothing was changed. */
  GANNET_OUT_OF_RANGE = 11,
  GANNET_UNIMPLEMENTED = 12,
  GANNET_INTERNAL = 13,
  /* Not applied; call again. The client reconnects by itself. */
  GANNET_UNAVAILABLE = 14,
  /* Another client holds the lock: the answer of gannet_client_try_lock. Nothing is wrong. */
  GANNET_LOCKED = 64
};

/* Returns the name of a status, such as "not found". Never NULL. The string is constant. */
const char* gannet_strerror(gannet_status status);
/* Returns why the last failed call of this thread failed, and what to do about it, or "" if none
 * failed. Each thread has its own text, so threads may share a client. The string is valid until
 * the thread's next call fails. */
const char* gannet_last_error(void);
/* Returns the version of the library, such as "0.1.0". */
const char* gannet_version(void);
/* Frees what the library allocated. Does nothing with NULL. */
void gannet_free(void* memory);

enum { GANNET_LOG_INFO = 0, GANNET_LOG_WARNING = 1, GANNET_LOG_ERROR = 2 };
enum { GANNET_WAIT_ADAPTIVE = 0, GANNET_WAIT_POLL = 1 };

/* Options of a connection. A field that is 0 means the default. Begin with
 * gannet_options options = GANNET_OPTIONS_INIT; */
typedef struct gannet_options {
  size_t size;
  const char* device; /* "auto" (default), "soft", or a name that ibv_devices lists */
  const char*
      auth_file; /* keys, lines of ID HEXKEY [read]; default: $GANNET_AUTH_FILE, or no key */
  uint64_t connect_timeout_ms;   /* 3000 */
  uint64_t deadline_ms;          /* of every call that gives none of its own: 1000 */
  uint64_t location_cache_bytes; /* memory for remembered locations of items: 1 MiB */
  uint32_t depth;                /* operations in flight at most: 128, at most 16,384 */
  uint32_t wait; /* GANNET_WAIT_ADAPTIVE, or GANNET_WAIT_POLL for a thread with its own core */
  uint32_t poll_max_us;      /* GANNET_WAIT_ADAPTIVE polls no longer than this: 32 */
  uint8_t no_location_cache; /* 1: remember no locations */
  uint8_t no_reconnect;      /* 1: do not reconnect after a broken connection */
  uint8_t reserved[2];       /* 0 */
  /* Called with one line, without newline, from any thread of the client. It must not call the
   * client. */
  void (*log)(int level, const char* line, size_t size, void* log_context);
  void* log_context;
  /* Memory for copies of the items that are read most, from which GETs are answered while the
   * server promises that they do not change. 0: off; otherwise 4 KiB to 64 GiB. */
  uint64_t near_cache_bytes;
  /* How many rails of a server are used at most, 1 to 8: addresses with a device each. 1: only the
   * one by which the server was found. */
  uint32_t rails;        /* 8 */
  uint8_t reserved_2[4]; /* 0 */
} gannet_options;
#define GANNET_OPTIONS_INIT                                                                  \
  {                                                                                          \
    sizeof(gannet_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, {0, 0}, 0, 0, 0, 0, { 0, 0, 0, 0 } \
  }

/* A held lock. It may be copied. It is lost when its connection breaks or the holder is taken for
 * dead, and nothing tells the holder. A write that carries it is then refused (GANNET_ABORTED),
 * which is the fence. */
typedef struct gannet_lock {
  uint64_t word;   /* names the connection that holds it */
  uint32_t server; /* its index among the servers */
  uint32_t key_size;
  uint8_t key[256];
} gannet_lock;

enum {
  GANNET_IF_ABSENT = 1,  /* put, gannet_client_add */
  GANNET_IF_PRESENT = 2, /* put, append, prepend, incr, decr */
  GANNET_IF_VERSION = 4  /* any write: the item has this `version`; 0: there is none */
};

/* Options of one call. NULL, or a field that is 0: the default. A field that the call does not use
 * must be 0, so that no condition is ignored. Begin with gannet_call call = GANNET_CALL_INIT; */
typedef struct gannet_call {
  size_t size;
  uint64_t deadline_ms; /* any gannet_client call: from now; default: gannet_options.deadline_ms */
  uint64_t ttl_ms;      /* put, append, incr: of a new item; 0: for ever */
  uint32_t flags;       /* the same: of a new item, for the application */
  uint32_t conditions;  /* GANNET_IF_... */
  uint64_t version;     /* with GANNET_IF_VERSION */
  /* A write that happens only while this lock is held. It needs GANNET_IF_VERSION, with the version
   * read under the lock. */
  const gannet_lock* lock;
  int64_t initial;   /* incr, decr: what an absent key counts from */
  uint64_t lease_ms; /* lock, try_lock, lock_and_get: the server breaks the lock after this */
} gannet_call;
#define GANNET_CALL_INIT \
  { sizeof(gannet_call), 0, 0, 0, 0, 0, 0, 0, 0 }

typedef struct gannet_item_info {
  uint64_t version; /* never 0 for an item that is there */
  /* By the server's clock, since the Unix epoch; 0: never. */
  uint64_t expiry_ms;
  uint64_t ttl_left_ms; /* how long it still lived when it was read; 0: for ever, or nearly over */
  uint32_t flags;
  uint32_t value_size; /* of the whole value, even if the caller's buffer was shorter */
} gannet_item_info;

typedef struct gannet_value {
  void* data; /* free it with gannet_free; not NULL for an empty value */
  size_t size;
  gannet_item_info info;
} gannet_value;

/* A lock that somebody holds, as the server sees it. */
typedef struct gannet_held_lock {
  uint64_t word;
  uint64_t lease_ms;   /* until the server breaks it; 0: it has no lease */
  uint32_t index;      /* of the lock word; keys may share one */
  uint32_t session_id; /* of the holder; 0: its connection is gone */
  char holder[64];     /* its address; "": its connection is gone */
} gannet_held_lock;

/* Memory that is registered with every RDMA device that a client uses. Long values land there, and
 * are read from there, without a copy. It serves only the client that made it, and may outlive
 * it. */
typedef struct gannet_memory gannet_memory;
/* Returns NULL if the CPU cannot address the memory. */
void* gannet_memory_data(const gannet_memory* memory);
uint64_t gannet_memory_size(const gannet_memory* memory);
/* Deregisters the memory, and frees it if the library allocated it. No call may use it any more.
 * Does nothing with NULL. */
void gannet_memory_free(gannet_memory* memory);
/* 1: servers may not READ the memory, so nothing can be put from it. */
enum { GANNET_NO_REMOTE_READ = 1 };

/* A part of registered memory. */
typedef struct gannet_span {
  const gannet_memory* memory;
  uint64_t offset;
  uint64_t size;
} gannet_span;

/* What a server counts; docs/kvserver.md explains it. The caller sets `size`. */
typedef struct gannet_stats {
  size_t size;
  gannet_status status; /* of this server's answer; the numbers are 0 if it is not GANNET_OK */
  uint32_t reserved;
  uint64_t rpcs, heartbeats, cpu_us, slots_used, slots_total, heap_bytes, heap_total, sessions;
  uint64_t connections, items, displacements, stash_used, locks_broken, uptime_ms, session_bytes;
  uint64_t reply_posts, receive_posts, send_completions, refused_heap_full, refused_index_full;
  uint64_t items_expired, items_moved, locks_expired, refused_connections, refused_requests;
  uint64_t index_growths, items_deleted, items_evicted, evicted_by_writes, eviction_watermark;
  uint64_t evicted_age_ms;
  /* Figures of --data; 0 without it. disk_sync: as ServerStats::disk_sync in gannet/types.h. */
  uint64_t disk_sync, disk_bytes, disk_behind_bytes, disk_behind_ms, disk_refused, disk_snapshots;
  /* The leases: as those of ServerStats in gannet/types.h. */
  uint64_t items_expiring, items_leased, lease_waits, lease_waited_ms;
  /* Figures of --tier, as those of ServerStats in gannet/types.h; 0 without it. */
  uint64_t items_on_disk, tier_disk, tier_bytes, tier_written, tier_evicted;
  uint64_t tier_reads, tier_reads_joined, tier_reads_failed;
  uint64_t tier_read_us, tier_page_cache, tier_stub_bytes, tier_stub_budget, tier_promoted;
} gannet_stats;

/* The connection to one server. Strings are never NULL, and live as long as the structure. */
typedef struct gannet_server_info {
  const char* endpoint; /* as given to connect */
  const char* name;     /* by which clients find its keys */
  const char* why_not;  /* it is not connected */
  const char* device;   /* the local device */
  const char* kind;     /* "hardware", "kernel-software" or "softverbs" */
  const char* lock_mode;
  uint64_t incarnation;
  uint64_t region_bytes;
  uint64_t index_slots;
  uint32_t lock_words;
  uint32_t protocol_version;
  uint32_t session_id;
  uint32_t read_depth;
  uint32_t silence_ms;
  uint8_t connected;
  uint8_t unreachable; /* calls for this server end at once */
  uint8_t authenticated;
  uint8_t read_only;
  uint64_t reads_disbelieved; /* READs done again, as the lease of a group's primary was over */
  uint64_t history;           /* names the items of the server's group; 0: it is in no group */
  const char* address;        /* where it is: of a group, the member that is primary */
  uint32_t epoch; /* which primary of its group it is, modulo 4,096; 0: it is in no group */
  /* Gets that were answered from copies, how many copies there are, and the READs that told whether
   * they may be used. */
  uint64_t near_cache_answers;
  uint64_t near_cache_items;
  uint64_t near_cache_reads;
  uint64_t near_cache_over; /* gets that had a copy, but it was not sure that the lease goes on */
} gannet_server_info;

/* A rail of a server, as the client uses it: an address with a device. */
typedef struct gannet_rail {
  char address[64];
  uint64_t works; /* READs and messages that were posted to it since the session's last connect */
  /* What the server told of it, when the session connected or at the last call for statistics. */
  uint32_t mtu_bytes;       /* of its port's packets; 0: not known */
  uint32_t mbit_per_second; /* of its port; 0: not known */
  uint32_t port;        /* rails with the same number are of one port of the server; 0: not known */
  uint32_t connections; /* of all clients, if `port` is known */
  uint8_t up;           /* its port */
  uint8_t connected;    /* the client, by it */
  uint8_t reserved[38]; /* 0 */
} gannet_rail;

#ifdef __cplusplus
}
#endif

#endif /* GANNET_C_TYPES_H_ */
