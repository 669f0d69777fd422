#ifndef GANNET_GANNET_H_
#define GANNET_GANNET_H_

/* Gannet in C. Everything that the C++ API has, without C++ and without abseil. Link libgannet:
 *
 *   cc -std=c99 program.c $(pkg-config --cflags --libs gannet-c)
 *
 *   gannet_client *client;
 *   const char *server = "10.0.0.1:7471";
 *   if (gannet_client_connect(&server, 1, NULL, &client) != GANNET_OK) die(gannet_last_error());
 *   gannet_client_put(client, "key", 3, "value", 5, NULL, NULL);
 *   gannet_value value;
 *   if (gannet_client_get(client, "key", 3, NULL, &value) == GANNET_OK) {
 *     use(value.data, value.size);
 *     gannet_free(value.data);
 *   }
 *   gannet_client_close(client);
 *
 * Rules of all functions:
 *   - Keys (1 to 250 bytes) and values (at most 64 MiB) are bytes with a length. The library copies
 *     keys. It reads values during the call; gannet_async functions read them until the completion.
 *   - Strings that end with a zero byte are used only for addresses, file names and texts.
 *   - What the library allocates is freed by the caller: memory by gannet_free, unless a function
 *     names another. After an error, outputs are zero and there is nothing to free.
 *   - A pointer for an output that is "optional" may be NULL. No other pointer may, unless its
 *     length is 0. Options may always be NULL.
 *   - No function prints, exits or calls back, apart from gannet_options.log and gannet_walk.
 *   - Not usable in the child after fork(), which gets GANNET_FAILED_PRECONDITION.
 *
 * The interface is stable: a later library has every function of an earlier one, and structures
 * only grow at their end. Those that may grow begin with their size. Set it, or use the INIT macro.
 */

#include <gannet/c/async.h>
#include <gannet/c/client.h>
#include <gannet/c/observed.h>
#include <gannet/c/types.h>

#endif /* GANNET_GANNET_H_ */
