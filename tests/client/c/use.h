#ifndef GANNET_TESTS_CLIENT_C_USE_H_
#define GANNET_TESTS_CLIENT_C_USE_H_

#ifdef __cplusplus
extern "C" {
#endif

// Use the C interface with a server that has no items. Return 0, or the line of the first check
// that failed, after they printed it.
int UseClient(const char* server);
int UseLocks(const char* server);
int UseMemory(const char* server);
int UseWrongly(const char* server);
int UseAsync(const char* server);
int UseAsyncLocks(const char* server);
// The server has --data, --slowlog_us=1 and --on_full=evict.
int UseObserved(const char* server);

#ifdef __cplusplus
}
#endif

#include <stdio.h>

#define CHECK_THAT(condition)                                                                   \
  do {                                                                                          \
    if (!(condition)) {                                                                         \
      fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, gannet_last_error()); \
      return __LINE__;                                                                          \
    }                                                                                           \
  } while (0)

#endif  // GANNET_TESTS_CLIENT_C_USE_H_
