#include <gannet/gannet.h>
#include <stdlib.h>
#include <string.h>

#include "tests/client/c/use.h"

static unsigned lines_logged = 0;

static void log_line(int level, const char* line, size_t size, void* context) {
  if (level >= GANNET_LOG_INFO && line != NULL && size > 0) ++*(unsigned*)context;
}

static int is(const gannet_value* value, const char* text) {
  return value->size == strlen(text) && memcmp(value->data, text, value->size) == 0;
}

static int UseWrites(gannet_client* client) {
  gannet_value value;
  gannet_item_info info;
  uint64_t version = 0;
  uint64_t newer = 0;
  int64_t number = 0;
  gannet_call call = GANNET_CALL_INIT;

  call.flags = 7;
  call.ttl_ms = 3600 * 1000;
  CHECK_THAT(gannet_client_put(client, "k\0y", 3, "one", 3, &call, &version) == GANNET_OK);
  CHECK_THAT(gannet_client_get(client, "k\0y", 3, NULL, &value) == GANNET_OK);
  CHECK_THAT(is(&value, "one") && value.info.version == version && value.info.flags == 7);
  CHECK_THAT(value.info.ttl_left_ms > 0 && value.info.ttl_left_ms <= 3601 * 1000);
  gannet_free(value.data);
  CHECK_THAT(gannet_client_get(client, "k", 1, NULL, &value) == GANNET_NOT_FOUND);
  CHECK_THAT(value.data == NULL);

  char two[2];
  CHECK_THAT(gannet_client_get_into(client, "k\0y", 3, two, 2, NULL, &info) == GANNET_OK);
  CHECK_THAT(memcmp(two, "on", 2) == 0 && info.value_size == 3);

  CHECK_THAT(gannet_client_add(client, "k\0y", 3, "x", 1, NULL, NULL) == GANNET_ALREADY_EXISTS);
  CHECK_THAT(gannet_client_replace(client, "none", 4, "x", 1, NULL, NULL) == GANNET_NOT_FOUND);
  CHECK_THAT(gannet_client_add(client, "new", 3, "", 0, NULL, NULL) == GANNET_OK);
  CHECK_THAT(gannet_client_get(client, "new", 3, NULL, &value) == GANNET_OK);
  CHECK_THAT(value.data != NULL && value.size == 0);
  gannet_free(value.data);

  gannet_call if_version = GANNET_CALL_INIT;
  if_version.conditions = GANNET_IF_VERSION;
  if_version.version = version;
  CHECK_THAT(gannet_client_put(client, "k\0y", 3, "two", 3, &if_version, &newer) == GANNET_OK);
  CHECK_THAT(gannet_client_put(client, "k\0y", 3, "no", 2, &if_version, NULL) ==
             GANNET_FAILED_PRECONDITION);
  CHECK_THAT(gannet_client_delete(client, "k\0y", 3, &if_version) == GANNET_FAILED_PRECONDITION);
  if_version.version = newer;
  CHECK_THAT(gannet_client_delete(client, "k\0y", 3, &if_version) == GANNET_OK);
  CHECK_THAT(gannet_client_delete(client, "k\0y", 3, NULL) == GANNET_NOT_FOUND);

  CHECK_THAT(gannet_client_append(client, "text", 4, "b", 1, NULL, NULL) == GANNET_OK);
  CHECK_THAT(gannet_client_append(client, "text", 4, "c", 1, NULL, NULL) == GANNET_OK);
  CHECK_THAT(gannet_client_prepend(client, "text", 4, "a", 1, NULL, NULL) == GANNET_OK);
  CHECK_THAT(gannet_client_get_and_touch(client, "text", 4, 60000, NULL, &value) == GANNET_OK);
  CHECK_THAT(is(&value, "abc") && value.info.ttl_left_ms > 0);
  gannet_free(value.data);
  CHECK_THAT(gannet_client_touch(client, "text", 4, 0, NULL) == GANNET_OK);
  CHECK_THAT(gannet_client_touch(client, "none", 4, 0, NULL) == GANNET_NOT_FOUND);

  gannet_call initial = GANNET_CALL_INIT;
  initial.initial = 40;
  CHECK_THAT(gannet_client_incr(client, "n", 1, 4, &initial, &number) == GANNET_OK);
  CHECK_THAT(number == 44);
  CHECK_THAT(gannet_client_decr(client, "n", 1, 2, NULL, &number) == GANNET_OK && number == 42);
  CHECK_THAT(gannet_client_incr(client, "text", 4, 1, NULL, NULL) == GANNET_FAILED_PRECONDITION);
  CHECK_THAT(gannet_client_incr(client, "n", 1, INT64_MAX, NULL, NULL) == GANNET_OUT_OF_RANGE);
  return 0;
}

static int UseMulti(gannet_client* client) {
  const gannet_put_item items[] = {
      {{"m1", 2}, {"a", 1}, NULL}, {{"m2", 2}, {"b", 1}, NULL}, {{"", 0}, {"c", 1}, NULL}};
  gannet_put_result puts[3];
  CHECK_THAT(gannet_client_multi_put(client, items, 3, NULL, puts) == GANNET_INVALID_ARGUMENT);
  CHECK_THAT(puts[0].status == GANNET_OK && puts[1].status == GANNET_OK && puts[1].version != 0);
  CHECK_THAT(puts[2].status == GANNET_INVALID_ARGUMENT);

  const gannet_key keys[] = {{"m1", 2}, {"m9", 2}, {"m2", 2}};
  gannet_get_result gets[3];
  CHECK_THAT(gannet_client_multi_get(client, keys, 3, NULL, gets) == GANNET_OK);
  CHECK_THAT(gets[0].status == GANNET_OK && is(&gets[0].value, "a"));
  CHECK_THAT(gets[1].status == GANNET_NOT_FOUND && gets[1].value.data == NULL);
  CHECK_THAT(gets[2].status == GANNET_OK && is(&gets[2].value, "b"));
  for (int i = 0; i < 3; ++i) gannet_free(gets[i].value.data);
  return 0;
}

static int UseHeads(gannet_client* client) {
  gannet_value value;
  uint64_t version = 0;
  gannet_status statuses[3];
  const gannet_key keys[] = {{"m1", 2}, {"m9", 2}, {"", 0}};
  CHECK_THAT(gannet_client_put(client, "m1", 2, "new", 3, NULL, &version) == GANNET_OK);
  CHECK_THAT(gannet_client_exists(client, "m1", 2, NULL) == GANNET_OK);
  CHECK_THAT(gannet_client_exists(client, "m9", 2, NULL) == GANNET_NOT_FOUND);
  CHECK_THAT(gannet_client_multi_exists(client, keys, 2, NULL, statuses) == GANNET_OK);
  CHECK_THAT(statuses[0] == GANNET_OK && statuses[1] == GANNET_NOT_FOUND);
  CHECK_THAT(gannet_client_multi_exists(client, keys, 3, NULL, statuses) ==
             GANNET_INVALID_ARGUMENT);
  CHECK_THAT(statuses[0] == GANNET_OK && statuses[2] == GANNET_INVALID_ARGUMENT);

  CHECK_THAT(gannet_client_get_if_changed(client, "m1", 2, 1, NULL, &value) == GANNET_OK);
  CHECK_THAT(is(&value, "new") && value.info.version == version);
  gannet_free(value.data);
  CHECK_THAT(gannet_client_get_if_changed(client, "m1", 2, version, NULL, &value) == GANNET_OK);
  CHECK_THAT(value.data == NULL && value.info.version == version);
  CHECK_THAT(gannet_client_get_if_changed(client, "m9", 2, 1, NULL, &value) == GANNET_NOT_FOUND);

  gannet_memory* memory;
  CHECK_THAT(gannet_client_allocate(client, 20000, &memory) == GANNET_OK);
  memset(gannet_memory_data(memory), 'z', 20000);
  const gannet_span spans[] = {{memory, 10000, 10000}, {memory, 0, 100}};
  const gannet_put_source sources[] = {{{"m8", 2}, spans, 2, NULL}, {{"m7", 2}, spans, 0, NULL}};
  gannet_put_result puts[2];
  CHECK_THAT(gannet_client_multi_put_from_memory(client, sources, 2, NULL, puts) ==
             GANNET_INVALID_ARGUMENT);
  CHECK_THAT(puts[0].status == GANNET_OK && puts[0].version > version);
  CHECK_THAT(puts[1].status == GANNET_INVALID_ARGUMENT);
  gannet_memory_free(memory);

  const gannet_key gone[] = {{"m8", 2}, {"m9", 2}};
  CHECK_THAT(gannet_client_multi_delete(client, gone, 2, NULL, statuses) == GANNET_OK);
  CHECK_THAT(statuses[0] == GANNET_OK && statuses[1] == GANNET_NOT_FOUND);
  return 0;
}

static int UseServers(gannet_client* client, const char* server) {
  gannet_stats stats;
  gannet_status status = GANNET_INTERNAL;
  gannet_server_info* info;
  gannet_rail* rails;
  size_t rail_count = 1;
  uint64_t removed = 0;
  CHECK_THAT(gannet_client_server_count(client) == 1);
  CHECK_THAT(gannet_client_ping(client, NULL, &status) == GANNET_OK && status == GANNET_OK);
  memset(&stats, 0xFF, sizeof(stats));
  stats.size = sizeof(stats);
  CHECK_THAT(gannet_client_stats(client, NULL, &stats) == GANNET_OK);
  CHECK_THAT(stats.status == GANNET_OK && stats.items == 5 && stats.heap_total > 0);
  CHECK_THAT(stats.size == sizeof(stats) && stats.evicted_age_ms == 0);
  CHECK_THAT(stats.disk_sync == 0 && stats.disk_snapshots == 0); /* it has no disk */
  /* A program that is older than the library knows fewer numbers. */
  stats.size = offsetof(gannet_stats, heartbeats);
  stats.heartbeats = 123456789;
  CHECK_THAT(gannet_client_stats(client, NULL, &stats) == GANNET_OK && stats.rpcs > 0);
  CHECK_THAT(stats.heartbeats == 123456789);

  CHECK_THAT(gannet_client_server_info(client, 0, &info) == GANNET_OK);
  CHECK_THAT(strcmp(info->endpoint, server) == 0 && info->connected && !info->read_only);
  CHECK_THAT(strlen(info->kind) > 0 && info->silence_ms > 0 && strlen(info->why_not) == 0);
  CHECK_THAT(strlen(info->address) > 0 && info->history == 0 && info->epoch == 0); /* no group */
  gannet_free(info);
  CHECK_THAT(gannet_client_server_info(client, 1, &info) == GANNET_INVALID_ARGUMENT);
  CHECK_THAT(gannet_client_rails(client, 0, &rails, &rail_count) == GANNET_OK);
  CHECK_THAT(rails != NULL && rail_count == 0);
  gannet_free(rails);
  CHECK_THAT(gannet_client_rails(client, 1, &rails, &rail_count) == GANNET_INVALID_ARGUMENT);
  CHECK_THAT(rails == NULL && rail_count == 0);

  gannet_call patient = GANNET_CALL_INIT;
  patient.deadline_ms = 30000;
  CHECK_THAT(gannet_client_flush(client, &patient, &removed) == GANNET_OK && removed == 5);
  return 0;
}

int UseClient(const char* server) {
  gannet_options options = GANNET_OPTIONS_INIT;
  options.deadline_ms = 20000;
  options.no_location_cache = 1;
  options.depth = 16;
  options.log = log_line;
  options.log_context = &lines_logged;
  gannet_client* client;
  options.rails = 9; /* a server has 8 at most */
  CHECK_THAT(gannet_client_connect(&server, 1, &options, &client) == GANNET_INVALID_ARGUMENT);
  options.rails = 1;
  CHECK_THAT(gannet_client_connect(&server, 1, &options, &client) == GANNET_OK);
  int line = UseWrites(client);
  if (line == 0) line = UseMulti(client);
  if (line == 0) line = UseHeads(client);
  if (line == 0) line = UseServers(client, server);
  gannet_client_close(client);
  return line;
}

int UseLocks(const char* server) {
  gannet_options options = GANNET_OPTIONS_INIT;
  options.deadline_ms = 20000;
  gannet_client *mine, *others;
  gannet_lock lock, second;
  gannet_value value;
  gannet_held_lock* held;
  size_t n;
  CHECK_THAT(gannet_client_connect(&server, 1, &options, &mine) == GANNET_OK);
  CHECK_THAT(gannet_client_connect(&server, 1, &options, &others) == GANNET_OK);

  CHECK_THAT(gannet_client_lock_and_get(mine, "key", 3, NULL, &lock, &value) == GANNET_OK);
  CHECK_THAT(value.data == NULL && value.info.version == 0 && lock.word != 0);
  CHECK_THAT(gannet_client_try_lock(others, "key", 3, NULL, &second) == GANNET_LOCKED);
  gannet_call soon = GANNET_CALL_INIT;
  soon.deadline_ms = 5;
  CHECK_THAT(gannet_client_lock(others, "key", 3, &soon, &second) == GANNET_DEADLINE_EXCEEDED);

  gannet_call under_lock = GANNET_CALL_INIT;
  under_lock.conditions = GANNET_IF_VERSION;
  under_lock.lock = &lock;
  uint64_t version;
  CHECK_THAT(gannet_client_put(mine, "key", 3, "v", 1, &under_lock, &version) == GANNET_OK);
  CHECK_THAT(gannet_client_extend(mine, &lock, 60000, NULL) == GANNET_OK);
  CHECK_THAT(gannet_client_locks(mine, 0, NULL, &held, &n) == GANNET_OK);
  CHECK_THAT(n == 1 && held[0].word == lock.word && held[0].lease_ms > 0);
  CHECK_THAT(strlen(held[0].holder) > 0);
  gannet_free(held);

  /* The fence: after another client broke the lock, writes under it are refused. */
  CHECK_THAT(gannet_client_break_lock(others, "key", 3, NULL) == GANNET_OK);
  CHECK_THAT(gannet_client_break_lock(others, "key", 3, NULL) == GANNET_NOT_FOUND);
  under_lock.version = version;
  CHECK_THAT(gannet_client_put(mine, "key", 3, "w", 1, &under_lock, NULL) == GANNET_ABORTED);
  CHECK_THAT(gannet_client_unlock(mine, &lock, NULL) == GANNET_ABORTED);

  gannet_call lease = GANNET_CALL_INIT;
  lease.lease_ms = 60000;
  CHECK_THAT(gannet_client_lock(others, "key", 3, &lease, &second) == GANNET_OK);
  CHECK_THAT(gannet_client_unlock(others, &second, NULL) == GANNET_OK);
  CHECK_THAT(gannet_client_try_lock(mine, "key", 3, NULL, &lock) == GANNET_OK);
  CHECK_THAT(gannet_client_unlock(mine, &lock, NULL) == GANNET_OK);
  gannet_client_close(others);
  gannet_client_close(mine);
  return 0;
}

int UseMemory(const char* server) {
  enum { kPiece = 100000 };
  gannet_options options = GANNET_OPTIONS_INIT;
  options.deadline_ms = 20000;
  gannet_client* client;
  gannet_memory *from, *to;
  gannet_item_info info;
  CHECK_THAT(gannet_client_connect(&server, 1, &options, &client) == GANNET_OK);
  char* own = malloc(2 * kPiece);
  CHECK_THAT(own != NULL);
  CHECK_THAT(gannet_client_allocate(client, 2 * kPiece, &from) == GANNET_OK);
  CHECK_THAT(gannet_client_register(client, own, 2 * kPiece, GANNET_NO_REMOTE_READ, &to) ==
             GANNET_OK);
  CHECK_THAT(gannet_memory_size(from) >= 2 * kPiece && gannet_memory_data(to) == own);
  memset(gannet_memory_data(from), 'a', kPiece);
  memset((char*)gannet_memory_data(from) + kPiece, 'b', kPiece);

  /* Gathered in another order than it lies, and scattered back. */
  const gannet_span gather[] = {{from, kPiece, kPiece}, {from, 0, kPiece}};
  const gannet_span scatter[] = {{to, kPiece, kPiece}, {to, 0, kPiece}};
  CHECK_THAT(gannet_client_put_from_memory(client, "long", 4, gather, 2, NULL, NULL) == GANNET_OK);
  CHECK_THAT(gannet_client_get_into_memory(client, "long", 4, scatter, 2, NULL, &info) ==
             GANNET_OK);
  CHECK_THAT(info.value_size == 2 * kPiece);
  CHECK_THAT(own[0] == 'a' && own[kPiece - 1] == 'a' && own[kPiece] == 'b');
  /* No server may READ it, which is said at once. */
  CHECK_THAT(gannet_client_put_from_memory(client, "x", 1, scatter, 2, NULL, NULL) ==
             GANNET_INVALID_ARGUMENT);

  const gannet_get_target targets[] = {{{"long", 4}, scatter, 1}, {{"none", 4}, scatter + 1, 1}};
  gannet_info_result results[2];
  CHECK_THAT(gannet_client_multi_get_into_memory(client, targets, 2, NULL, results) == GANNET_OK);
  CHECK_THAT(results[0].status == GANNET_OK && results[0].info.value_size == 2 * kPiece);
  CHECK_THAT(results[1].status == GANNET_NOT_FOUND);
  gannet_memory* of_device;
  CHECK_THAT(gannet_client_register_dmabuf(client, -1, 0, 4096, 0, &of_device) != GANNET_OK);
  CHECK_THAT(of_device == NULL);

  gannet_memory_free(to);

  gannet_memory_free(from);
  gannet_client_close(client);
  free(own);
  return 0;
}

int UseWrongly(const char* server) {
  gannet_client* client;
  gannet_value value;
  gannet_options options = GANNET_OPTIONS_INIT;
  gannet_call call = GANNET_CALL_INIT;
  const char* none = NULL;
  CHECK_THAT(gannet_client_connect(&none, 1, NULL, &client) == GANNET_INVALID_ARGUMENT);
  options.size = 0;
  CHECK_THAT(gannet_client_connect(&server, 1, &options, &client) == GANNET_INVALID_ARGUMENT);
  CHECK_THAT(client == NULL && strstr(gannet_last_error(), "size") != NULL);
  CHECK_THAT(gannet_client_connect(&server, 1, NULL, &client) == GANNET_OK);

  CHECK_THAT(gannet_client_get(client, "", 0, NULL, &value) == GANNET_INVALID_ARGUMENT);
  CHECK_THAT(strstr(gannet_last_error(), "empty key") != NULL);
  /* A condition that the call would ignore. */
  call.conditions = GANNET_IF_ABSENT;
  CHECK_THAT(gannet_client_delete(client, "k", 1, &call) == GANNET_INVALID_ARGUMENT);
  call.conditions = 1u << 31;
  CHECK_THAT(gannet_client_put(client, "k", 1, "v", 1, &call, NULL) == GANNET_INVALID_ARGUMENT);
  /* An option of a newer gannet.h. */
  struct {
    gannet_call call;
    uint64_t newer;
  } from_the_future = {GANNET_CALL_INIT, 0};
  from_the_future.call.size = sizeof(from_the_future);
  CHECK_THAT(gannet_client_put(client, "k", 1, "v", 1, &from_the_future.call, NULL) == GANNET_OK);
  from_the_future.newer = 1;
  CHECK_THAT(gannet_client_put(client, "k", 1, "v", 1, &from_the_future.call, NULL) ==
             GANNET_INVALID_ARGUMENT);

  gannet_lock lock = {0};
  lock.key_size = 1000000;
  CHECK_THAT(gannet_client_unlock(client, &lock, NULL) == GANNET_INVALID_ARGUMENT);
  for (gannet_status status = -1; status < 100; ++status) {
    CHECK_THAT(strlen(gannet_strerror(status)) > 0);
  }
  CHECK_THAT(strlen(gannet_version()) > 0);
  gannet_free(NULL);
  gannet_memory_free(NULL);
  gannet_client_close(client);
  return 0;
}
