#ifndef GANNET_C_ASYNC_H_
#define GANNET_C_ASYNC_H_

/* The asynchronous client. Include <gannet/gannet.h>, which has the rules of all functions. */

#include <gannet/c/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Many operations in flight from one thread: start them, then poll for their completions. It has
 * one owner thread, which calls poll or wait at least every sixth of the servers' silence
 * (gannet_server_info.silence_ms; 0.8 s by default), or sleeps in gannet_async_wait or on the
 * descriptor.
 *
 * Writes of a key happen in the order in which they were started, and a get sees those that were
 * started before it. Operations on different keys have no order.
 *
 * In an event loop (epoll, poll, libuv, libevent):
 *
 *   add gannet_async_fd(client) to the loop, for reading and level-triggered;
 *   before the loop sleeps:       while (gannet_async_arm(client)) { n = gannet_async_poll(...); }
 *   when the descriptor is readable: n = gannet_async_poll(...);
 */
typedef struct gannet_async gannet_async;

enum {
  GANNET_OP_GET,
  GANNET_OP_PUT,
  GANNET_OP_DELETE,
  GANNET_OP_LOCK,
  GANNET_OP_UNLOCK,
  GANNET_OP_LOCK_AND_GET,
  GANNET_OP_STATS,
  GANNET_OP_PING,
  GANNET_OP_EXTEND,
  GANNET_OP_APPEND = 11,
  GANNET_OP_PREPEND,
  GANNET_OP_INCR,
  GANNET_OP_TOUCH,
  GANNET_OP_GET_AND_TOUCH,
  GANNET_OP_FLUSH,
  GANNET_OP_GET_INTO_MEMORY,
  GANNET_OP_EXISTS = 21,
  GANNET_OP_GET_IF_CHANGED
};

/* The verbs that one operation cost its client. */
typedef struct gannet_cost {
  uint32_t read_bytes;
  uint16_t reads;
  uint16_t sends;
  uint8_t cas;
  uint8_t from_near_cache; /* a GET that was answered from a copy */
  uint16_t posts;
  uint16_t completions;
  uint8_t from_cached_location;
  uint8_t by_rpc;
} gannet_cost;

/* One finished operation. */
typedef struct gannet_completion {
  uint64_t user_data; /* as given when it was started */
  int op;             /* GANNET_OP_... */
  /* As the call of gannet_client returns it: GANNET_NOT_FOUND also for a miss, GANNET_LOCKED for a
   * lock that another client holds. lock_and_get of an absent key: GANNET_OK, info.version is 0. */
  gannet_status status;
  /* Get, exists: the item's. Put: the new version. With GANNET_FAILED_PRECONDITION: the current
   * version, 0 if there is no item. */
  gannet_item_info info;
  uint64_t lock_word; /* lock: for gannet_async_make_lock. With GANNET_LOCKED: the holder's */
  int64_t number;     /* incr, decr: the new number. Flush: how many items were removed */
  gannet_cost cost;
} gannet_completion;

/* As gannet_client_connect. Close the client with gannet_async_close. */
gannet_status gannet_async_connect(const char* const* servers, size_t server_count,
                                   const gannet_options* options, gannet_async** client);
/* Ends the connections and frees the client. Operations in flight end without a completion; from
 * then on no buffer is used any more. */
void gannet_async_close(gannet_async* client);

/* Each starts one operation, which is posted at the latest by the next poll.
 * GANNET_RESOURCE_EXHAUSTED: gannet_options.depth operations are in flight, so poll first.
 * GANNET_INVALID_ARGUMENT: key, value or options. Other errors come as completions. Keys and
 * gannet_call structures are copied. Buffers, values and arrays of spans must stay valid until the
 * completion. gannet_call.deadline_ms must be 0: see gannet_async_set_deadline. */
gannet_status gannet_async_get(gannet_async* client, const void* key, size_t key_size, void* buffer,
                               size_t size, uint64_t user_data);
gannet_status gannet_async_get_into_memory(gannet_async* client, const void* key, size_t key_size,
                                           const gannet_span* spans, size_t span_count,
                                           uint64_t user_data);
/* Many that are started before a poll go out together. */
gannet_status gannet_async_exists(gannet_async* client, const void* key, size_t key_size,
                                  uint64_t user_data);
/* The item is unchanged if the completion has GANNET_OK and this version. Then nothing is written
 * to `buffer`. */
gannet_status gannet_async_get_if_changed(gannet_async* client, const void* key, size_t key_size,
                                          uint64_t version, void* buffer, size_t size,
                                          uint64_t user_data);
gannet_status gannet_async_put(gannet_async* client, const void* key, size_t key_size,
                               const void* value, size_t value_size, const gannet_call* call,
                               uint64_t user_data);
gannet_status gannet_async_put_from_memory(gannet_async* client, const void* key, size_t key_size,
                                           const gannet_span* spans, size_t span_count,
                                           const gannet_call* call, uint64_t user_data);
gannet_status gannet_async_delete(gannet_async* client, const void* key, size_t key_size,
                                  const gannet_call* call, uint64_t user_data);
gannet_status gannet_async_append(gannet_async* client, const void* key, size_t key_size,
                                  const void* piece, size_t piece_size, const gannet_call* call,
                                  uint64_t user_data);
gannet_status gannet_async_prepend(gannet_async* client, const void* key, size_t key_size,
                                   const void* piece, size_t piece_size, const gannet_call* call,
                                   uint64_t user_data);
gannet_status gannet_async_incr(gannet_async* client, const void* key, size_t key_size,
                                int64_t delta, const gannet_call* call, uint64_t user_data);
gannet_status gannet_async_decr(gannet_async* client, const void* key, size_t key_size,
                                int64_t delta, const gannet_call* call, uint64_t user_data);
gannet_status gannet_async_touch(gannet_async* client, const void* key, size_t key_size,
                                 uint64_t ttl_ms, const gannet_call* call, uint64_t user_data);
gannet_status gannet_async_get_and_touch(gannet_async* client, const void* key, size_t key_size,
                                         uint64_t ttl_ms, void* buffer, size_t size,
                                         uint64_t user_data);
gannet_status gannet_async_flush(gannet_async* client, uint32_t server, uint64_t user_data);
/* Tries once. */
gannet_status gannet_async_try_lock(gannet_async* client, const void* key, size_t key_size,
                                    const gannet_call* call, uint64_t user_data);
gannet_status gannet_async_lock_and_get(gannet_async* client, const void* key, size_t key_size,
                                        void* buffer, size_t size, const gannet_call* call,
                                        uint64_t user_data);
/* Makes the lock of a completion with GANNET_OK. */
gannet_status gannet_async_make_lock(const gannet_async* client, const void* key, size_t key_size,
                                     uint64_t lock_word, gannet_lock* lock);
gannet_status gannet_async_unlock(gannet_async* client, const gannet_lock* lock,
                                  uint64_t user_data);
gannet_status gannet_async_extend(gannet_async* client, const gannet_lock* lock, uint64_t lease_ms,
                                  uint64_t user_data);
gannet_status gannet_async_ping(gannet_async* client, uint32_t server, uint64_t user_data);
/* stats->size is sizeof(gannet_stats). `stats` must stay valid until the completion. */
gannet_status gannet_async_stats(gannet_async* client, uint32_t server, gannet_stats* stats,
                                 uint64_t user_data);

/* Posts what was started, makes progress, and fills in at most `room` completions. Returns their
 * number. Never blocks. */
size_t gannet_async_poll(gannet_async* client, gannet_completion* completions, size_t room);
/* As poll, but waits for a completion, at most for `timeout_ns`. Returns 0 if none came. `room` is
 * not 0. */
size_t gannet_async_wait(gannet_async* client, gannet_completion* completions, size_t room,
                         uint64_t timeout_ns);
/* Readable when poll has something to do. The descriptor is the same for the client's life. Only
 * wait on it; do not read or close it. */
int gannet_async_fd(const gannet_async* client);
/* Prepares to sleep until the descriptor is readable. Returns 1 if there is something to do: poll
 * and arm again. Returns 0 if the caller may sleep: start nothing before that. */
int gannet_async_arm(gannet_async* client);

/* As those of gannet_client. */
gannet_status gannet_async_register(gannet_async* client, void* memory, size_t size, uint32_t flags,
                                    gannet_memory** registered);
gannet_status gannet_async_allocate(gannet_async* client, uint64_t size,
                                    gannet_memory** registered);
gannet_status gannet_async_register_dmabuf(gannet_async* client, int fd, uint64_t offset,
                                           uint64_t size, uint32_t flags,
                                           gannet_memory** registered);

/* Sets the deadline of every operation that is started from now on. */
void gannet_async_set_deadline(gannet_async* client, uint64_t deadline_ms);
uint32_t gannet_async_in_flight(const gannet_async* client);
size_t gannet_async_server_count(const gannet_async* client);
/* Returns the index of the server that has a key. */
uint32_t gannet_async_server_of(const gannet_async* client, const void* key, size_t key_size);
/* Free *info with gannet_free: its strings are part of it. */
gannet_status gannet_async_server_info(gannet_async* client, uint32_t server,
                                       gannet_server_info** info);
/* Returns an array of the rails of a server. None: it has one, or the client uses one. One: it has
 * several, and has not told them yet. Free it with gannet_free. */
gannet_status gannet_async_rails(gannet_async* client, uint32_t server, gannet_rail** rails,
                                 size_t* rail_count);

#ifdef __cplusplus
}
#endif

#endif /* GANNET_C_ASYNC_H_ */
