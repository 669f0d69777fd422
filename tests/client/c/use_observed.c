#include <gannet/gannet.h>
#include <string.h>
#include <time.h>

#include "tests/client/c/use.h"

struct Walked {
  int items;
  int items_max;
  int wrong;
};

static int Show(void* context, const gannet_walked_item* item) {
  struct Walked* walked = context;
  if (item->key_size != 1 || item->value_size != 2 || item->block_size == 0 ||
      item->info.version == 0 || memcmp(item->value, "v", 1) != 0) {
    walked->wrong = 1;
  }
  return ++walked->items < walked->items_max;
}

static int UseWalk(const char* server) {
  struct Walked all = {0, 100, 0};
  struct Walked some = {0, 2, 0};
  CHECK_THAT(gannet_walk(server, NULL, 0, Show, &all) == GANNET_OK);
  CHECK_THAT(all.items == 3 && !all.wrong);
  CHECK_THAT(gannet_walk(server, NULL, 20000, Show, &some) == GANNET_OK);
  CHECK_THAT(some.items == 2);
  gannet_hot_key* hot;
  size_t n;
  CHECK_THAT(gannet_hot_keys(server, NULL, 0, 10, &hot, &n) == GANNET_OK);
  CHECK_THAT(n >= 1 && n <= 3 && hot[0].uses > 0 && hot[0].key_size == 1);
  CHECK_THAT(hot[0].info.value_size == 2 && hot[0].block_size > 0);
  gannet_free(hot);
  CHECK_THAT(gannet_hot_keys(server, NULL, 0, 0, &hot, &n) == GANNET_INVALID_ARGUMENT);
  CHECK_THAT(hot == NULL && n == 0);
  CHECK_THAT(gannet_walk(NULL, NULL, 0, Show, &all) == GANNET_INVALID_ARGUMENT);
  return 0;
}

static int UseLists(gannet_client* client) {
  gannet_connected_client* clients;
  gannet_slow_request* requests;
  size_t n;
  /* The list is as old as a third of the server's silence_ms. */
  const time_t end = time(NULL) + 30;
  int found = 0;
  while (!found && time(NULL) < end) {
    CHECK_THAT(gannet_client_connected_clients(client, 0, NULL, &clients, &n) == GANNET_OK);
    found = n >= 1 && clients[0].session_id != 0 && clients[0].requests > 0 &&
            strlen(clients[0].peer) > 0 && strlen(clients[0].last_request) > 0;
    gannet_free(clients);
  }
  CHECK_THAT(found);
  CHECK_THAT(gannet_client_connected_clients(client, 1, NULL, &clients, &n) ==
             GANNET_INVALID_ARGUMENT);
  CHECK_THAT(clients == NULL && n == 0);

  static char large[1 << 20];
  CHECK_THAT(gannet_client_put(client, "large", 5, large, sizeof(large), NULL, NULL) == GANNET_OK);
  CHECK_THAT(gannet_client_delete(client, "large", 5, NULL) == GANNET_OK);
  CHECK_THAT(gannet_client_slow_requests(client, 0, NULL, &requests, &n) == GANNET_OK);
  size_t i = 0;
  while (i < n && requests[i].value_size != sizeof(large)) ++i;
  CHECK_THAT(i < n && strcmp(requests[i].request, "put") == 0 && requests[i].took_us > 0);
  CHECK_THAT(requests[i].key_size == 5 && requests[i].key_kept == 5);
  CHECK_THAT(memcmp(requests[i].key, "large", 5) == 0 && requests[i].answered_ms > 0);
  gannet_free(requests);
  return 0;
}

static int UseStorage(gannet_client* client, const char* server) {
  gannet_storage* storage;
  gannet_call patient = GANNET_CALL_INIT;
  patient.deadline_ms = 60000;
  CHECK_THAT(gannet_client_storage(client, 0, NULL, &storage) == GANNET_OK);
  CHECK_THAT(strcmp(storage->endpoint, server) == 0 && strcmp(storage->sync, "interval") == 0);
  CHECK_THAT(strlen(storage->directory) > 0 && strlen(storage->memory_file) == 0);
  gannet_free(storage);
  CHECK_THAT(gannet_client_snapshot(client, 0, &patient, &storage) == GANNET_OK);
  CHECK_THAT(storage->has_snapshot && storage->snapshot_items == 3);
  CHECK_THAT(storage->snapshot_bytes > 0 && storage->snapshot_completed_ms > 0);
  gannet_free(storage);
  CHECK_THAT(gannet_client_snapshot(client, 1, NULL, &storage) == GANNET_INVALID_ARGUMENT);
  CHECK_THAT(storage == NULL);
  return 0;
}

int UseObserved(const char* server) {
  static const char* const keys[] = {"a", "b", "c"};
  gannet_options options = GANNET_OPTIONS_INIT;
  options.deadline_ms = 20000;
  gannet_client* client;
  CHECK_THAT(gannet_client_connect(&server, 1, &options, &client) == GANNET_OK);
  for (int i = 0; i < 3; ++i) {
    CHECK_THAT(gannet_client_put(client, keys[i], 1, "vw", 2, NULL, NULL) == GANNET_OK);
  }
  int line = UseLists(client);
  if (line == 0) line = UseStorage(client, server);
  if (line == 0) line = UseWalk(server);
  gannet_client_close(client);
  return line;
}
