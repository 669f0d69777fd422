/* Gannet in C in one page: put, get, and a read-modify-write under a lock.
 *
 *   softverbs-run ./in_c 127.0.0.1:7471     (or without softverbs-run, on an RDMA NIC)
 */

#include <gannet/gannet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void die(const char* what) {
  fprintf(stderr, "%s: %s\n", what, gannet_last_error());
  exit(1);
}

/* Adds one to a number in the store. The write carries the lock and the version that was read under
 * it. If this client was too slow and another took the lock meanwhile, the server refuses the
 * write. (For just this there is gannet_client_incr.) */
static gannet_status increment(gannet_client* client, const char* key) {
  gannet_lock lock;
  gannet_value value;
  gannet_status status = gannet_client_lock_and_get(client, key, strlen(key), NULL, &lock, &value);
  if (status != GANNET_OK) return status;

  /* Values are bytes, and do not end with a zero byte. */
  char text[32] = "0";
  if (value.data != NULL && value.size < sizeof(text)) memcpy(text, value.data, value.size);
  gannet_free(value.data);
  const int size = snprintf(text, sizeof(text), "%ld", strtol(text, NULL, 10) + 1);

  gannet_call call = GANNET_CALL_INIT;
  call.conditions = GANNET_IF_VERSION;
  call.version = value.info.version; /* 0: there was none */
  call.lock = &lock;
  status = gannet_client_put(client, key, strlen(key), text, (size_t)size, &call, NULL);
  const gannet_status unlocked = gannet_client_unlock(client, &lock, NULL);
  return status != GANNET_OK ? status : unlocked;
}

static void show(gannet_client* client, const char* key) {
  gannet_value value;
  const gannet_status status = gannet_client_get(client, key, strlen(key), NULL, &value);
  if (status == GANNET_NOT_FOUND) {
    printf("%s = (absent)\n", key);
  } else if (status != GANNET_OK) {
    die("get");
  } else {
    printf("%s = %.*s\n", key, (int)value.size, (const char*)value.data);
    gannet_free(value.data);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: in_c HOST:PORT\n");
    return 2;
  }
  const char* server = argv[1];
  gannet_client* client;
  if (gannet_client_connect(&server, 1, NULL, &client) != GANNET_OK) die("connect");

  if (gannet_client_put(client, "greeting", 8, "hello", 5, NULL, NULL) != GANNET_OK) die("put");
  show(client, "greeting");
  for (int i = 0; i < 3; ++i) {
    if (increment(client, "visits") != GANNET_OK) die("increment");
  }
  show(client, "visits");
  gannet_client_close(client);
  return 0;
}
