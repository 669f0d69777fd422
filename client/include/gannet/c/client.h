#ifndef GANNET_C_CLIENT_H_
#define GANNET_C_CLIENT_H_

/* The synchronous client. Include <gannet/gannet.h>, which has the rules of all functions. */

#include <gannet/c/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A client of one or several servers. Each key belongs to one of them. A get is one or two
 * one-sided RDMA READs; everything else is one round trip. All functions may be called from any
 * thread. For throughput, give each thread its own client. */
typedef struct gannet_client gannet_client;

/* Connects to servers, "HOST:PORT", "[IPV6]:PORT" or "NAME@HOST:PORT"; the port is 7471 if left
 * out. "cluster:HOST:PORT,HOST:PORT" is a group, one server whose primary is found by asking the
 * members that are listed. Returns as soon as one is connected and each other one is connected or
 * out of reach. Close the client with gannet_client_close. */
gannet_status gannet_client_connect(const char* const* servers, size_t server_count,
                                    const gannet_options* options, gannet_client** client);
/* Ends the connections and frees the client. No other call may be under way. */
void gannet_client_close(gannet_client* client);

/* --- reading */

/* GANNET_NOT_FOUND if there is no such key. Free value->data with gannet_free. */
gannet_status gannet_client_get(gannet_client* client, const void* key, size_t key_size,
                                const gannet_call* call, gannet_value* value);
/* Copies at most `size` bytes of the value to `buffer`; info->value_size says how long it is. */
gannet_status gannet_client_get_into(gannet_client* client, const void* key, size_t key_size,
                                     void* buffer, size_t size, const gannet_call* call,
                                     gannet_item_info* info);
/* Puts the value into registered memory: the first bytes into the first span, and so on, as many
 * as there is room for, in at most 64 spans. Long values land there without a copy. Returns only
 * when no device writes there any more, even if the deadline is over. */
gannet_status gannet_client_get_into_memory(gannet_client* client, const void* key, size_t key_size,
                                            const gannet_span* spans, size_t span_count,
                                            const gannet_call* call, gannet_item_info* info);

typedef struct gannet_key {
  const void* data;
  size_t size;
} gannet_key;
typedef struct gannet_get_result {
  gannet_status status; /* GANNET_NOT_FOUND: there is no such key */
  gannet_value value;   /* with GANNET_OK. Free value.data with gannet_free */
} gannet_get_result;
/* Asks for all keys at once. Fills in a result for each. Returns GANNET_OK if each is GANNET_OK or
 * GANNET_NOT_FOUND, otherwise the first error. */
gannet_status gannet_client_multi_get(gannet_client* client, const gannet_key* keys,
                                      size_t key_count, const gannet_call* call,
                                      gannet_get_result* results);

typedef struct gannet_get_target {
  gannet_key key;
  const gannet_span* spans;
  size_t span_count;
} gannet_get_target;
typedef struct gannet_info_result {
  gannet_status status;
  gannet_item_info info;
} gannet_info_result;
/* gannet_client_get_into_memory for all keys at once. Returns as gannet_client_multi_get. */
gannet_status gannet_client_multi_get_into_memory(gannet_client* client,
                                                  const gannet_get_target* targets,
                                                  size_t target_count, const gannet_call* call,
                                                  gannet_info_result* results);

/* GANNET_OK or GANNET_NOT_FOUND, without reading the value. See Client::Exists in gannet/client.h
 * for what it costs. */
gannet_status gannet_client_exists(gannet_client* client, const void* key, size_t key_size,
                                   const gannet_call* call);
/* The same for all keys at once. `statuses` has room for each. Returns as
 * gannet_client_multi_get. */
gannet_status gannet_client_multi_exists(gannet_client* client, const gannet_key* keys,
                                         size_t key_count, const gannet_call* call,
                                         gannet_status* statuses);
/* Gets the value only if it is not the one of `version`. If it is, returns GANNET_OK with that
 * version and value->data NULL, and costs one READ of 8 bytes if the item was read before. Free
 * value->data with gannet_free. */
gannet_status gannet_client_get_if_changed(gannet_client* client, const void* key, size_t key_size,
                                           uint64_t version, const gannet_call* call,
                                           gannet_value* value);

/* --- writing */

/* `version` (optional) gets the new version. add and replace are put with GANNET_IF_ABSENT and
 * GANNET_IF_PRESENT. */
gannet_status gannet_client_put(gannet_client* client, const void* key, size_t key_size,
                                const void* value, size_t value_size, const gannet_call* call,
                                uint64_t* version);
gannet_status gannet_client_add(gannet_client* client, const void* key, size_t key_size,
                                const void* value, size_t value_size, const gannet_call* call,
                                uint64_t* version);
gannet_status gannet_client_replace(gannet_client* client, const void* key, size_t key_size,
                                    const void* value, size_t value_size, const gannet_call* call,
                                    uint64_t* version);
/* The same with a value that lies in registered memory, in the order of at most 64 spans. Returns
 * only when the server READs it no more, even if the deadline is over. */
gannet_status gannet_client_put_from_memory(gannet_client* client, const void* key, size_t key_size,
                                            const gannet_span* spans, size_t span_count,
                                            const gannet_call* call, uint64_t* version);

typedef struct gannet_put_item {
  gannet_key key;
  gannet_key value;
  const gannet_call* call; /* of this item, without a deadline; may be NULL */
} gannet_put_item;
typedef struct gannet_put_result {
  gannet_status status;
  uint64_t version;
} gannet_put_result;
/* Puts many values at once, each a put of its own. Values for the same key are put in order.
 * Returns GANNET_OK if each was put, otherwise the first error. */
gannet_status gannet_client_multi_put(gannet_client* client, const gannet_put_item* items,
                                      size_t item_count, const gannet_call* call,
                                      gannet_put_result* results);

typedef struct gannet_put_source {
  gannet_key key;
  const gannet_span* spans;
  size_t span_count;
  const gannet_call* call; /* of this item, without a deadline; may be NULL */
} gannet_put_source;
/* gannet_client_put_from_memory for all at once. Returns as gannet_client_multi_put. */
gannet_status gannet_client_multi_put_from_memory(gannet_client* client,
                                                  const gannet_put_source* sources,
                                                  size_t source_count, const gannet_call* call,
                                                  gannet_put_result* results);

/* GANNET_NOT_FOUND if there was nothing to delete. */
gannet_status gannet_client_delete(gannet_client* client, const void* key, size_t key_size,
                                   const gannet_call* call);
/* The same for all keys at once. `statuses` has room for each. Returns as
 * gannet_client_multi_get. */
gannet_status gannet_client_multi_delete(gannet_client* client, const gannet_key* keys,
                                         size_t key_count, const gannet_call* call,
                                         gannet_status* statuses);

/* Add a piece of at most 3,782 bytes to the end of a value, or to its beginning. The whole value
 * has at most 1 MiB. An absent key gets the piece as its value, unless GANNET_IF_PRESENT. */
gannet_status gannet_client_append(gannet_client* client, const void* key, size_t key_size,
                                   const void* piece, size_t piece_size, const gannet_call* call,
                                   uint64_t* version);
gannet_status gannet_client_prepend(gannet_client* client, const void* key, size_t key_size,
                                    const void* piece, size_t piece_size, const gannet_call* call,
                                    uint64_t* version);
/* Count in a value that is a decimal number. `number` (optional) gets the new one. */
gannet_status gannet_client_incr(gannet_client* client, const void* key, size_t key_size,
                                 int64_t delta, const gannet_call* call, int64_t* number);
gannet_status gannet_client_decr(gannet_client* client, const void* key, size_t key_size,
                                 int64_t delta, const gannet_call* call, int64_t* number);
/* Gives the item a new time to live; 0: for ever. */
gannet_status gannet_client_touch(gannet_client* client, const void* key, size_t key_size,
                                  uint64_t ttl_ms, const gannet_call* call);
/* A touch, and then a get. Free value->data with gannet_free. */
gannet_status gannet_client_get_and_touch(gannet_client* client, const void* key, size_t key_size,
                                          uint64_t ttl_ms, const gannet_call* call,
                                          gannet_value* value);
/* Removes all items of all servers. `removed` (optional) gets their number. Give it a deadline: a
 * million items take about a second. */
gannet_status gannet_client_flush(gannet_client* client, const gannet_call* call,
                                  uint64_t* removed);

/* --- locks */

/* Waits for the lock until the deadline. Locks are advisory: a plain put ignores them. */
gannet_status gannet_client_lock(gannet_client* client, const void* key, size_t key_size,
                                 const gannet_call* call, gannet_lock* lock);
/* Tries once. GANNET_LOCKED: another client holds it. */
gannet_status gannet_client_try_lock(gannet_client* client, const void* key, size_t key_size,
                                     const gannet_call* call, gannet_lock* lock);
/* GANNET_ABORTED: the lock was lost before. */
gannet_status gannet_client_unlock(gannet_client* client, const gannet_lock* lock,
                                   const gannet_call* call);
/* Gives the lock a lease that counts from now, in place of any earlier one. */
gannet_status gannet_client_extend(gannet_client* client, const gannet_lock* lock,
                                   uint64_t lease_ms, const gannet_call* call);
/* Locks and reads in one round trip. Returns GANNET_OK if the lock was taken. If the key is absent,
 * value->data is NULL and value->info.version is 0. Free value->data with gannet_free. */
gannet_status gannet_client_lock_and_get(gannet_client* client, const void* key, size_t key_size,
                                         const gannet_call* call, gannet_lock* lock,
                                         gannet_value* value);
/* Returns an array of all locks held at a server. Free it with gannet_free. */
gannet_status gannet_client_locks(gannet_client* client, uint32_t server, const gannet_call* call,
                                  gannet_held_lock** locks, size_t* lock_count);
/* Breaks the key's lock, whoever holds it. GANNET_NOT_FOUND if nobody did. */
gannet_status gannet_client_break_lock(gannet_client* client, const void* key, size_t key_size,
                                       const gannet_call* call);

/* --- registered memory */

/* Registers the caller's memory, which must outlive what is returned. Free all of these with
 * gannet_memory_free. */
gannet_status gannet_client_register(gannet_client* client, void* memory, size_t size,
                                     uint32_t flags, gannet_memory** registered);
gannet_status gannet_client_allocate(gannet_client* client, uint64_t size,
                                     gannet_memory** registered);
gannet_status gannet_client_register_dmabuf(gannet_client* client, int fd, uint64_t offset,
                                            uint64_t size, uint32_t flags,
                                            gannet_memory** registered);

/* --- servers */

size_t gannet_client_server_count(const gannet_client* client);
/* Asks all servers at once. `stats` has room for each, and stats[i].size is sizeof(gannet_stats).
 * Returns the first error. */
gannet_status gannet_client_stats(gannet_client* client, const gannet_call* call,
                                  gannet_stats* stats);
/* Makes a round trip through the CPU of each server. Returns the first error. `statuses`
 * (optional) has room for each. */
gannet_status gannet_client_ping(gannet_client* client, const gannet_call* call,
                                 gannet_status* statuses);
/* Free *info with gannet_free: its strings are part of it. */
gannet_status gannet_client_server_info(gannet_client* client, uint32_t server,
                                        gannet_server_info** info);
/* Returns an array of the rails of a server. None: it has one, or the client uses one. One: it has
 * several, and has not told them yet. Free it with gannet_free. */
gannet_status gannet_client_rails(gannet_client* client, uint32_t server, gannet_rail** rails,
                                  size_t* rail_count);

#ifdef __cplusplus
}
#endif

#endif /* GANNET_C_CLIENT_H_ */
