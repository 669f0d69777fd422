/* Gannet in an event loop in C: one thread reads keys from its standard input, a line each, looks
 * them up, and sleeps in epoll in between. The loop waits for two descriptors, that of the input
 * and that of the client. It ends with the input, when all is answered.
 *
 *   softverbs-run ./event_loop_in_c 127.0.0.1:7471     (or without softverbs-run, on an RDMA NIC)
 */

#include <gannet/gannet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* The buffer must stay until the completion. */
struct request {
  char key[251];
  char found[1024];
};

static unsigned pending = 0;

static void begin(gannet_async* client, const char* line, size_t size) {
  struct request* request = calloc(1, sizeof(*request));
  if (request == NULL) exit(1);
  memcpy(request->key, line, size < sizeof(request->key) ? size : sizeof(request->key) - 1);
  /* The address of the request comes back with its completion. */
  if (gannet_async_get(client, line, size, request->found, sizeof(request->found),
                       (uint64_t)(uintptr_t)request) == GANNET_OK) {
    ++pending;
    return;
  }
  printf("%s: %s\n", request->key, gannet_last_error());
  free(request);
}

static void poll_client(gannet_async* client) {
  gannet_completion done[16];
  const size_t n = gannet_async_poll(client, done, 16);
  for (size_t i = 0; i < n; ++i) {
    struct request* request = (struct request*)(uintptr_t)done[i].user_data;
    size_t size = done[i].info.value_size;
    if (size > sizeof(request->found)) size = sizeof(request->found);
    if (done[i].status == GANNET_OK) {
      printf("%s = %.*s\n", request->key, (int)size, request->found);
    } else {
      printf("%s: %s\n", request->key, gannet_strerror(done[i].status));
    }
    free(request);
    --pending;
  }
}

/* Begins a lookup for each whole line of what the input has now. Returns 0 at its end. */
static int read_lines(gannet_async* client) {
  static char text[4096];
  static size_t size = 0;
  const ssize_t n = read(STDIN_FILENO, text + size, sizeof(text) - size);
  if (n <= 0) return 0;
  size += (size_t)n;
  char* end;
  while ((end = memchr(text, '\n', size)) != NULL) {
    if (end > text) begin(client, text, (size_t)(end - text));
    size -= (size_t)(end + 1 - text);
    memmove(text, end + 1, size);
  }
  return size < sizeof(text); /* no key is so long */
}

static void watch(int epoll, int fd) {
  struct epoll_event event = {0};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: event_loop_in_c HOST:PORT\n");
    return 2;
  }
  const char* server = argv[1];
  gannet_async* client;
  if (gannet_async_connect(&server, 1, NULL, &client) != GANNET_OK) {
    fprintf(stderr, "%s\n", gannet_last_error());
    return 1;
  }
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  watch(epoll, STDIN_FILENO);
  watch(epoll, gannet_async_fd(client));
  for (int open = 1; open || pending > 0;) {
    /* Before sleeping: while there is something to do, it is done instead. */
    while (gannet_async_arm(client)) poll_client(client);
    if (!open && pending == 0) break;
    struct epoll_event events[2];
    const int n = epoll_wait(epoll, events, 2, -1);
    for (int i = 0; i < n; ++i) {
      if (events[i].data.fd == STDIN_FILENO) {
        open = read_lines(client);
        if (!open) epoll_ctl(epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
      } else {
        poll_client(client);
      }
    }
  }
  close(epoll);
  gannet_async_close(client);
  return 0;
}
