#ifndef SOFTVERBS_BASE_THREAD_WATCH_H_
#define SOFTVERBS_BASE_THREAD_WATCH_H_

#include <pthread.h>

#include <cstdint>

namespace softverbs {

// Looks at one thread of this process from outside: how much it ran, and whether it wants to run.
// The thread may have ended; it then wants nothing. Not thread safe.
class ThreadWatch {
 public:
  // Watches the calling thread from now on. Costs no system call.
  void WatchThisThread() { pthread_getcpuclockid(pthread_self(), &cpu_clock_); }
  // Returns the CPU time that the thread used so far, or 0 if it ended or none is watched.
  int64_t CpuNs() const;
  // Returns true if the thread runs, or waits for a core and for nothing else. Reads a file of
  // /proc.
  bool Runnable() const;

 private:
  clockid_t cpu_clock_ = CLOCK_REALTIME;  // no thread's: none is watched
};

}  // namespace softverbs

#endif  // SOFTVERBS_BASE_THREAD_WATCH_H_
