// Functions that the connection manager does not support: rsockets. They are here so that programs
// which link these symbols load, and get ENOSYS when they use them.

#include <errno.h>
#include <rdma/rsocket.h>
#include <sys/epoll.h>

#include "softverbs/base/export.h"

namespace {

int Unsupported() {
  errno = ENOSYS;
  return -1;
}

}  // namespace

SOFTVERBS_EXPORT int rsocket(int, int, int) { return Unsupported(); }
SOFTVERBS_EXPORT int rbind(int, const sockaddr*, socklen_t) { return Unsupported(); }
SOFTVERBS_EXPORT int rlisten(int, int) { return Unsupported(); }
SOFTVERBS_EXPORT int raccept(int, sockaddr*, socklen_t*) { return Unsupported(); }
SOFTVERBS_EXPORT int rconnect(int, const sockaddr*, socklen_t) { return Unsupported(); }
SOFTVERBS_EXPORT int rshutdown(int, int) { return Unsupported(); }
SOFTVERBS_EXPORT int rclose(int) { return Unsupported(); }

SOFTVERBS_EXPORT ssize_t rrecv(int, void*, size_t, int) { return Unsupported(); }
SOFTVERBS_EXPORT ssize_t rrecvfrom(int, void*, size_t, int, sockaddr*, socklen_t*) {
  return Unsupported();
}
SOFTVERBS_EXPORT ssize_t rrecvmsg(int, msghdr*, int) { return Unsupported(); }
SOFTVERBS_EXPORT ssize_t rsend(int, const void*, size_t, int) { return Unsupported(); }
SOFTVERBS_EXPORT ssize_t rsendto(int, const void*, size_t, int, const sockaddr*, socklen_t) {
  return Unsupported();
}
SOFTVERBS_EXPORT ssize_t rsendmsg(int, const msghdr*, int) { return Unsupported(); }
SOFTVERBS_EXPORT ssize_t rread(int, void*, size_t) { return Unsupported(); }
SOFTVERBS_EXPORT ssize_t rreadv(int, const iovec*, int) { return Unsupported(); }
SOFTVERBS_EXPORT ssize_t rwrite(int, const void*, size_t) { return Unsupported(); }
SOFTVERBS_EXPORT ssize_t rwritev(int, const iovec*, int) { return Unsupported(); }

SOFTVERBS_EXPORT int rpoll(pollfd*, nfds_t, int) { return Unsupported(); }
SOFTVERBS_EXPORT int rselect(int, fd_set*, fd_set*, fd_set*, timeval*) { return Unsupported(); }

SOFTVERBS_EXPORT int repoll_create(int) { return Unsupported(); }
SOFTVERBS_EXPORT int repoll_ctl(int, int, int, epoll_event*) { return Unsupported(); }
SOFTVERBS_EXPORT int repoll_wait(int, epoll_event*, int, int) { return Unsupported(); }

SOFTVERBS_EXPORT int rgetpeername(int, sockaddr*, socklen_t*) { return Unsupported(); }
SOFTVERBS_EXPORT int rgetsockname(int, sockaddr*, socklen_t*) { return Unsupported(); }
SOFTVERBS_EXPORT int rsetsockopt(int, int, int, const void*, socklen_t) { return Unsupported(); }
SOFTVERBS_EXPORT int rgetsockopt(int, int, int, void*, socklen_t*) { return Unsupported(); }
SOFTVERBS_EXPORT int rfcntl(int, int, ...) { return Unsupported(); }

SOFTVERBS_EXPORT off_t riomap(int, void*, size_t, int, int, off_t) { return Unsupported(); }
SOFTVERBS_EXPORT int riounmap(int, void*, size_t) { return Unsupported(); }
SOFTVERBS_EXPORT size_t riowrite(int, const void*, size_t, off_t, int) {
  return static_cast<size_t>(Unsupported());
}
