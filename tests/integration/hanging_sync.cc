// A library to preload, for tests of disks that hang: while there is a file $GANNET_HANGING_SYNC,
// no fsync and no fdatasync of the program returns. Or of slow ones: if $GANNET_SYNC_MS is set,
// each takes so long.

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace {

constexpr useconds_t kLookUs = 1'000;

void AwaitDisk() {
  const char* const name = std::getenv("GANNET_HANGING_SYNC");
  while (name != nullptr && access(name, F_OK) == 0) usleep(kLookUs);
  const char* const ms = std::getenv("GANNET_SYNC_MS");
  if (ms != nullptr) usleep(1'000 * std::atoi(ms));
}

}  // namespace

extern "C" int fsync(int fd) {
  AwaitDisk();
  return static_cast<int>(syscall(SYS_fsync, fd));
}

extern "C" int fdatasync(int fd) {
  AwaitDisk();
  return static_cast<int>(syscall(SYS_fdatasync, fd));
}
