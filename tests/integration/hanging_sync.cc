// A library to preload, for tests of disks that hang: while there is a file $GANNET_HANGING_SYNC,
// no fsync and no fdatasync of the program returns, while there is a file $GANNET_HANGING_WRITE, no
// pwrite begins, and while there is a file $GANNET_HANGING_READ, no pread of whole blocks (programs
// read what the system says of them by others): each that waits adds a byte to it. Or of slow ones:
// if $GANNET_SYNC_MS is set, each sync takes so long.

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

namespace {

constexpr useconds_t kLookUs = 1'000;
constexpr size_t kBlockBytes = 4096;

void AwaitNoFileOf(const char* variable) {
  const char* const name = std::getenv(variable);
  while (name != nullptr && access(name, F_OK) == 0) usleep(kLookUs);
}

// Returns whether that could be told: there is such a file.
bool TellThatOneWaits(const char* variable) {
  const char* const name = std::getenv(variable);
  const int fd = name == nullptr ? -1 : open(name, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (fd < 0) return false;
  const bool told = write(fd, "", 1) == 1;
  close(fd);
  return told;
}

void AwaitDisk() {
  AwaitNoFileOf("GANNET_HANGING_SYNC");
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

// With 64-bit offsets, this is the same call.
extern "C" ssize_t pwrite(int fd, const void* bytes, size_t n, off_t offset) {
  AwaitNoFileOf("GANNET_HANGING_WRITE");
  return syscall(SYS_pwrite64, fd, bytes, n, offset);
}
extern "C" ssize_t pwrite64(int fd, const void* bytes, size_t n, off_t offset) {
  return pwrite(fd, bytes, n, offset);
}

extern "C" ssize_t pread(int fd, void* bytes, size_t n, off_t offset) {
  constexpr char kVariable[] = "GANNET_HANGING_READ";
  if (n % kBlockBytes == 0 && TellThatOneWaits(kVariable)) AwaitNoFileOf(kVariable);
  return syscall(SYS_pread64, fd, bytes, n, offset);
}
extern "C" ssize_t pread64(int fd, void* bytes, size_t n, off_t offset) {
  return pread(fd, bytes, n, offset);
}
