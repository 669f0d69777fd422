// A library to preload, for tests of a machine whose clock was set: the program's wall clock is
// $GANNET_CLOCK_AHEAD_S seconds ahead, or behind if that is negative.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

extern "C" int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  const char* const ahead_s = std::getenv("GANNET_CLOCK_AHEAD_S");
  const bool wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (result == 0 && wall && ahead_s != nullptr) time->tv_sec += std::atoll(ahead_s);
  return result;
}
