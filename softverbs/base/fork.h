#ifndef SOFTVERBS_BASE_FORK_H_
#define SOFTVERBS_BASE_FORK_H_

#include <cstdint>

namespace softverbs {

// What happens in a forked child. The child has none of the parent's threads, and its copies of
// the parent's locks may be held by nobody for ever. So it abandons every object it inherited:
// singletons are forgotten (and made anew on first use), the library's descriptors are closed, and
// objects of an earlier generation answer control calls without touching a lock.

// The number of forks between this process and the first one that loaded the library.
uint32_t ForkGeneration();

// Runs `reset` in every forked child, in order of registration, before any other code of the
// child. It must not take locks or allocate.
void OnForkChild(void (*reset)());

// Notes that `fd` is the library's own (or no longer is). Thread safe, lock free.
void TrackForkFd(int fd, bool own);

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_FORK_H_
