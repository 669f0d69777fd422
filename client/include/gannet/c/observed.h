#ifndef GANNET_C_OBSERVED_H_
#define GANNET_C_OBSERVED_H_

/* What servers report of their disks, clients and slow requests, and walks through their items. */

#include <gannet/c/client.h>
#include <gannet/c/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Where a server keeps its items. Strings are never NULL, and live as long as the structure. */
typedef struct gannet_storage {
  const char* endpoint;
  const char* sync;        /* of --data: "none", "interval" or "always"; "": there is no --data */
  const char* directory;   /* --data; "": none */
  const char* memory_file; /* --memory_file; "": none */
  /* The bytes that a power cut would take now, and the age of the oldest of them. */
  uint64_t behind_bytes;
  uint64_t behind_ms;
  /* The newest whole snapshot in the directory, if there is one. */
  uint8_t has_snapshot;
  uint8_t reserved[7];
  uint64_t snapshot_position; /* of the journal, when it was begun */
  uint64_t snapshot_items;
  uint64_t snapshot_bytes;
  /* By the server's wall clock, since the Unix epoch; 0: an earlier run of the server wrote it. */
  uint64_t snapshot_completed_ms;
} gannet_storage;

/* A connection of a client. The counts are those of its session, since that began. Only the entry
 * of the session's first connection has them; in the others they are 0. */
typedef struct gannet_connected_client {
  char peer[64];         /* its address */
  char last_request[32]; /* "get", "put" ...; "heartbeat" if there was none */
  uint64_t silent_ms;
  uint64_t connected_ms;
  uint64_t requests;
  /* The client's own report. */
  uint64_t hits;
  uint64_t misses;
  uint64_t reads;
  /* The latency of GETs, from the last report that had any; 0: none had. */
  uint64_t get_p50_ns;
  uint64_t get_p99_ns;
  uint32_t session_id;
  uint32_t connection_id;
  uint32_t connection_index; /* in its session */
  uint32_t worker;           /* of the server */
  uint32_t unanswered;       /* requests */
  uint32_t key_id;           /* of the key that it proved; 0: none */
  uint8_t read_only;
  uint8_t reserved[31]; /* 0 */
} gannet_connected_client;

/* A request that took a server long. */
typedef struct gannet_slow_request {
  uint64_t answered_ms; /* since the Unix epoch, by the server's clock */
  uint64_t took_us;
  char request[32]; /* "get", "put" ... */
  char peer[64];    /* the client's address */
  uint32_t session_id;
  uint32_t key_size; /* of the whole key */
  uint32_t value_size;
  uint32_t key_kept; /* bytes of it in `key` */
  uint8_t key[64];
  uint8_t reserved[32]; /* 0 */
} gannet_slow_request;

/* Returns where a server keeps its items. Free *storage with gannet_free. */
gannet_status gannet_client_storage(gannet_client* client, uint32_t server, const gannet_call* call,
                                    gannet_storage** storage);
/* Has a server with --data write a snapshot of all items, which begins after this call, and waits
 * until it is whole. Returns the storage with that snapshot. GANNET_FAILED_PRECONDITION: the server
 * has no --data. GANNET_DEADLINE_EXCEEDED: the server is still writing it.
 * GANNET_ABORTED: the server gave it up. Free *storage with gannet_free. */
gannet_status gannet_client_snapshot(gannet_client* client, uint32_t server,
                                     const gannet_call* call, gannet_storage** storage);
/* Returns an array of the connections of all clients of a server. Free it with gannet_free. */
gannet_status gannet_client_connected_clients(gannet_client* client, uint32_t server,
                                              const gannet_call* call,
                                              gannet_connected_client** clients,
                                              size_t* client_count);
/* Returns an array of the last requests that took a server long (its --slowlog_us), the newest
 * first. Free it with gannet_free. */
gannet_status gannet_client_slow_requests(gannet_client* client, uint32_t server,
                                          const gannet_call* call, gannet_slow_request** requests,
                                          size_t* request_count);

/* An item that a walk found. Key and value are valid until the function that is given it returns.
 */
typedef struct gannet_walked_item {
  const void* key;
  size_t key_size;
  const void* value; /* size 0 if it is long (over some 4,000 bytes): a walk does not READ those */
  size_t value_size;
  gannet_item_info info;
  uint64_t block_size; /* what it takes of the server's memory */
} gannet_walked_item;

/* Walks through all items of one server, or of the cluster that it is of, by one-sided READs over a
 * connection of its own. `reads_per_second` is the most READs a second (0: as many as it can;
 * UINT32_MAX: by load, so that it takes what others leave). Calls `show` with each item and
 * `context`, until it returns 0. What a walk promises while others write, and while partitions
 * move, is in gannet/walker.h. GANNET_UNAVAILABLE: the connection broke; begin anew. */
gannet_status gannet_walk(const char* server, const gannet_options* options,
                          uint32_t reads_per_second,
                          int (*show)(void* context, const gannet_walked_item* item),
                          void* context);

/* One of the keys that are used most. */
typedef struct gannet_hot_key {
  double uses; /* of late, as the server estimates */
  gannet_item_info info;
  uint64_t block_size; /* what the item takes of the server's memory */
  uint32_t key_size;
  uint8_t at_least; /* 1: it was used at least so often, and the server counts no further */
  uint8_t key[251];
  uint8_t leased;       /* 1: clients may answer from copies of it now */
  uint8_t reserved[31]; /* 0 */
} gannet_hot_key;

/* Returns an array of the keys of one server that are used most, at most `hot_keys_max` (1 to
 * 100,000) of them, the hottest first. READs the server's record of uses, its index and the hot
 * items. GANNET_FAILED_PRECONDITION: the server has no such record, because it does not evict.
 * Free it with gannet_free. */
gannet_status gannet_hot_keys(const char* server, const gannet_options* options,
                              uint32_t reads_per_second, size_t hot_keys_max,
                              gannet_hot_key** hot_keys, size_t* hot_key_count);

#ifdef __cplusplus
}
#endif

#endif /* GANNET_C_OBSERVED_H_ */
