// A library to preload, for tests of a machine with another clock. The program's wall clock is
// $GANNET_CLOCK_AHEAD_S seconds ahead, or behind if that is negative. Its CLOCK_BOOTTIME runs
// $GANNET_CLOCK_FAST_PPM millionths too fast, or too slow if that is negative.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

int64_t NumberOf(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? 0 : std::atoll(value);
}

int64_t ReadNs(clockid_t clock) {
  timespec time;
  syscall(SYS_clock_gettime, clock, &time);
  return time.tv_sec * int64_t{1'000'000'000} + time.tv_nsec;
}

}  // namespace

extern "C" int clock_gettime(clockid_t clock, struct timespec* time) {
  static const int64_t ahead_s = NumberOf("GANNET_CLOCK_AHEAD_S");
  static const int64_t fast_ppm = NumberOf("GANNET_CLOCK_FAST_PPM");
  static const int64_t began_ns = ReadNs(CLOCK_BOOTTIME);
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result != 0) return result;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) time->tv_sec += ahead_s;
  if (clock == CLOCK_BOOTTIME && fast_ppm != 0) {
    const int64_t now_ns = time->tv_sec * int64_t{1'000'000'000} + time->tv_nsec;
    const int64_t told_ns = now_ns + (now_ns - began_ns) * fast_ppm / 1'000'000;
    time->tv_sec = told_ns / 1'000'000'000;
    time->tv_nsec = told_ns % 1'000'000'000;
  }
  return 0;
}
