#include "softverbs/base/thread_watch.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "softverbs/base/unique_fd.h"

namespace softverbs {

int64_t ThreadWatch::CpuNs() const {
  timespec used;
  if (cpu_clock_ == CLOCK_REALTIME || clock_gettime(cpu_clock_, &used) != 0) return 0;
  return int64_t{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

// A thread's CPU clock holds its id, inverted, above three bits: clock_getcpuclockid(3).
bool ThreadWatch::Runnable() const {
  if (cpu_clock_ == CLOCK_REALTIME) return false;
  char path[64];
  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", ~(cpu_clock_ >> 3));
  const UniqueFd file(open(path, O_RDONLY | O_CLOEXEC));
  char text[256];
  const ssize_t size = file ? read(file.get(), text, sizeof(text)) : -1;
  if (size <= 0) return false;
  // "ID (NAME) STATE ...", and a name may hold anything: proc(5).
  const std::string_view stat(text, static_cast<size_t>(size));
  const size_t name_ends = stat.rfind(") ");
  return name_ends != std::string_view::npos && stat.substr(name_ends + 2, 1) == "R";
}

}  // namespace softverbs
