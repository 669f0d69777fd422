#include <gannet/gannet.h>
#include <poll.h>
#include <string.h>

#include "tests/client/c/use.h"

static const uint64_t kLong = 30u * 1000 * 1000 * 1000;

/* Waits for the one operation that is under way. */
static int Wait(gannet_async* client, gannet_completion* done) {
  return gannet_async_wait(client, done, 1, kLong) == 1;
}

static int UseReads(gannet_async* client) {
  gannet_completion done;
  char buffer[16];
  gannet_call call = GANNET_CALL_INIT;
  CHECK_THAT(gannet_async_put(client, "key", 3, "value", 5, NULL, 1) == GANNET_OK);
  CHECK_THAT(gannet_async_get(client, "key", 3, buffer, sizeof(buffer), 2) == GANNET_OK);
  CHECK_THAT(gannet_async_in_flight(client) == 2);
  CHECK_THAT(Wait(client, &done) && done.op == GANNET_OP_PUT && done.user_data == 1);
  const uint64_t version = done.info.version;
  CHECK_THAT(Wait(client, &done) && done.op == GANNET_OP_GET && done.status == GANNET_OK);
  CHECK_THAT(done.info.version == version && memcmp(buffer, "value", 5) == 0);
  CHECK_THAT(done.cost.reads > 0);
  CHECK_THAT(gannet_async_get(client, "none", 4, buffer, sizeof(buffer), 3) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.status == GANNET_NOT_FOUND && done.user_data == 3);
  CHECK_THAT(gannet_async_get_and_touch(client, "key", 3, 60000, buffer, 2, 4) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.status == GANNET_OK && done.info.value_size == 5);

  CHECK_THAT(gannet_async_exists(client, "key", 3, 9) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.op == GANNET_OP_EXISTS && done.status == GANNET_OK);
  CHECK_THAT(gannet_async_exists(client, "none", 4, 10) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.status == GANNET_NOT_FOUND && done.user_data == 10);
  CHECK_THAT(done.info.version == 0);
  memset(buffer, 'u', sizeof(buffer));
  CHECK_THAT(gannet_async_get_if_changed(client, "key", 3, 1, buffer, 5, 11) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.op == GANNET_OP_GET_IF_CHANGED);
  CHECK_THAT(done.status == GANNET_OK && memcmp(buffer, "valueu", 6) == 0);
  memset(buffer, 'u', sizeof(buffer));
  CHECK_THAT(gannet_async_get_if_changed(client, "key", 3, done.info.version, buffer, 5, 12) ==
             GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.status == GANNET_OK && buffer[0] == 'u');

  gannet_memory* memory;
  CHECK_THAT(gannet_async_allocate(client, 65536, &memory) == GANNET_OK);
  const gannet_span span = {memory, 0, 65536};
  CHECK_THAT(gannet_async_put_from_memory(client, "long", 4, &span, 1, NULL, 5) == GANNET_OK);
  CHECK_THAT(gannet_async_get_into_memory(client, "long", 4, &span, 1, 6) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.status == GANNET_OK && done.user_data == 5);
  CHECK_THAT(Wait(client, &done) && done.status == GANNET_OK && done.info.value_size == 65536);
  gannet_memory_free(memory);
  CHECK_THAT(gannet_async_register(client, buffer, sizeof(buffer), 0, &memory) == GANNET_OK);
  gannet_memory_free(memory);
  CHECK_THAT(gannet_async_register(client, buffer, sizeof(buffer), 2, &memory) ==
             GANNET_INVALID_ARGUMENT);
  CHECK_THAT(gannet_async_register_dmabuf(client, -1, 0, 4096, 0, &memory) != GANNET_OK);

  call.deadline_ms = 1;
  CHECK_THAT(gannet_async_put(client, "key", 3, "", 0, &call, 7) == GANNET_INVALID_ARGUMENT);
  CHECK_THAT(gannet_async_get(client, "", 0, buffer, 1, 8) == GANNET_INVALID_ARGUMENT);
  return 0;
}

static int UseChanges(gannet_async* client) {
  gannet_completion done;
  gannet_stats stats;
  CHECK_THAT(gannet_async_append(client, "key", 3, "!", 1, NULL, 1) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.op == GANNET_OP_APPEND && done.info.version != 0);
  CHECK_THAT(gannet_async_prepend(client, "key", 3, "!", 1, NULL, 2) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.status == GANNET_OK);
  CHECK_THAT(gannet_async_incr(client, "n", 1, 5, NULL, 3) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.number == 5);
  CHECK_THAT(gannet_async_decr(client, "n", 1, 7, NULL, 4) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.number == -2);
  CHECK_THAT(gannet_async_touch(client, "n", 1, 0, NULL, 5) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.status == GANNET_OK);
  CHECK_THAT(gannet_async_touch(client, "none", 4, 0, NULL, 6) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.status == GANNET_NOT_FOUND);
  CHECK_THAT(gannet_async_delete(client, "n", 1, NULL, 7) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.status == GANNET_OK);

  stats.size = 0;
  CHECK_THAT(gannet_async_stats(client, 0, &stats, 8) == GANNET_INVALID_ARGUMENT);
  stats.size = sizeof(stats);
  CHECK_THAT(gannet_async_stats(client, 9, &stats, 8) == GANNET_INVALID_ARGUMENT);
  stats.size = sizeof(stats);
  CHECK_THAT(gannet_async_stats(client, 0, &stats, 8) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.op == GANNET_OP_STATS && done.user_data == 8);
  CHECK_THAT(stats.items == 2 && stats.status == GANNET_OK);
  CHECK_THAT(gannet_async_ping(client, 0, 9) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.op == GANNET_OP_PING && done.status == GANNET_OK);
  CHECK_THAT(gannet_async_flush(client, 0, 10) == GANNET_OK);
  CHECK_THAT(Wait(client, &done) && done.number == 2);
  return 0;
}

/* Sleeps on the descriptor until there is a completion. */
static int UseDescriptor(gannet_async* client) {
  gannet_completion done;
  CHECK_THAT(gannet_async_put(client, "key", 3, "value", 5, NULL, 11) == GANNET_OK);
  size_t n = 0;
  while (n == 0) {
    while (n == 0 && gannet_async_arm(client)) n = gannet_async_poll(client, &done, 1);
    if (n > 0) break;
    struct pollfd ready = {gannet_async_fd(client), POLLIN, 0};
    CHECK_THAT(poll(&ready, 1, 30000) == 1);
    n = gannet_async_poll(client, &done, 1);
  }
  CHECK_THAT(done.user_data == 11 && done.status == GANNET_OK);
  return 0;
}

int UseAsync(const char* server) {
  gannet_async* client;
  gannet_server_info* info;
  CHECK_THAT(gannet_async_connect(&server, 1, NULL, &client) == GANNET_OK);
  gannet_async_set_deadline(client, 20000);
  CHECK_THAT(gannet_async_server_count(client) == 1);
  CHECK_THAT(gannet_async_server_of(client, "key", 3) == 0);
  CHECK_THAT(gannet_async_server_info(client, 0, &info) == GANNET_OK && info->connected);
  gannet_free(info);
  int line = UseReads(client);
  if (line == 0) line = UseChanges(client);
  if (line == 0) line = UseDescriptor(client);
  gannet_async_close(client);
  return line;
}

int UseAsyncLocks(const char* server) {
  gannet_async *mine, *others;
  gannet_completion done;
  gannet_lock lock;
  char buffer[16];
  CHECK_THAT(gannet_async_connect(&server, 1, NULL, &mine) == GANNET_OK);
  CHECK_THAT(gannet_async_connect(&server, 1, NULL, &others) == GANNET_OK);
  gannet_async_set_deadline(mine, 20000);
  gannet_async_set_deadline(others, 20000);
  CHECK_THAT(gannet_async_lock_and_get(mine, "new", 3, buffer, 16, NULL, 1) == GANNET_OK);
  CHECK_THAT(Wait(mine, &done) && done.status == GANNET_OK && done.info.version == 0);
  CHECK_THAT(gannet_async_make_lock(mine, "new", 3, done.lock_word, &lock) == GANNET_OK);
  CHECK_THAT(gannet_async_try_lock(others, "new", 3, NULL, 2) == GANNET_OK);
  CHECK_THAT(Wait(others, &done) && done.status == GANNET_LOCKED && done.lock_word == lock.word);
  gannet_call call = GANNET_CALL_INIT;
  call.conditions = GANNET_IF_VERSION;
  call.lock = &lock;
  CHECK_THAT(gannet_async_put(mine, "new", 3, "v", 1, &call, 3) == GANNET_OK);
  CHECK_THAT(Wait(mine, &done) && done.status == GANNET_OK);
  CHECK_THAT(gannet_async_extend(mine, &lock, 60000, 4) == GANNET_OK);
  CHECK_THAT(Wait(mine, &done) && done.op == GANNET_OP_EXTEND && done.status == GANNET_OK);
  CHECK_THAT(gannet_async_unlock(mine, &lock, 5) == GANNET_OK);
  CHECK_THAT(Wait(mine, &done) && done.op == GANNET_OP_UNLOCK && done.status == GANNET_OK);
  gannet_async_close(others);
  gannet_async_close(mine);
  return 0;
}
