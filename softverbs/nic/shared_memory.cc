#include "softverbs/nic/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstdio>

namespace softverbs {

Mapping::Mapping(int fd, size_t size, bool writable, size_t offset) {
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* data = mmap(nullptr, size, protection, MAP_SHARED, fd, static_cast<off_t>(offset));
  if (data == MAP_FAILED) return;
  data_ = data;
  size_ = size;
}

Mapping Mapping::Doubled(int fd, size_t size, size_t offset) {
  Mapping mapping;
  void* data = mmap(nullptr, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return mapping;
  mapping.data_ = data;
  mapping.size_ = 2 * size;
  for (size_t half = 0; half < 2; ++half) {
    void* at = static_cast<char*>(data) + half * size;
    if (mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             static_cast<off_t>(offset)) == MAP_FAILED) {
      return Mapping();
    }
  }
  return mapping;
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, size_);
}

UniqueFd CreateSealedMemory(const char* label, size_t size) {
  UniqueFd fd(memfd_create(label, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return fd;
  fchmod(fd.get(), 0600);
  if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    fd.Reset();
  }
  return fd;
}

bool IsSealedMemory(int fd, size_t size) {
  struct stat info;
  if (fstat(fd, &info) != 0 || info.st_size != static_cast<off_t>(size)) return false;
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0;
}

UniqueFd ReopenReadOnly(int fd) {
  char path[32];
  snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
  return UniqueFd(open(path, O_RDONLY | O_CLOEXEC));
}

}  // namespace softverbs
