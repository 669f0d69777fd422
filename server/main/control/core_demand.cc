#include "server/main/control/core_demand.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace gannet {
namespace {

struct LoadFile {
  int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
  ~LoadFile() {
    if (fd >= 0) close(fd);
  }
};

}  // namespace

CoreDemand::Runnable RunnableThreadsOfKernel() {
  return [file = std::make_shared<LoadFile>()]() -> std::optional<uint32_t> {
    // "0.20 0.18 0.12 1/80 11206": the fourth field begins with the runnable threads.
    char text[128];
    const ssize_t size = file->fd < 0 ? -1 : pread(file->fd, text, sizeof(text) - 1, 0);
    if (size <= 0) return std::nullopt;
    text[size] = '\0';
    const char* field = text;
    for (int spaces = 0; spaces < 3; ++spaces) {
      field = std::strchr(field, ' ');
      if (field == nullptr) return std::nullopt;
      ++field;
    }
    return static_cast<uint32_t>(std::strtoul(field, nullptr, 10));
  };
}

uint32_t CoresOfThread() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return static_cast<uint32_t>(CPU_COUNT(&cores));
}

}  // namespace gannet
