#ifndef SOFTVERBS_NIC_SHARED_MEMORY_H_
#define SOFTVERBS_NIC_SHARED_MEMORY_H_

#include <cstddef>
#include <utility>

#include "softverbs/base/unique_fd.h"

namespace softverbs {

// An owned mapping.
class Mapping {
 public:
  Mapping() = default;
  // Maps [offset, offset + size) of fd shared; an empty mapping (false) on failure.
  Mapping(int fd, size_t size, bool writable, size_t offset = 0);
  // Maps the same bytes twice, one after the other, so that a record of a ring never wraps.
  static Mapping Doubled(int fd, size_t size, size_t offset);
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  void* data() const { return data_; }
  size_t size() const { return size_; }
  explicit operator bool() const { return data_ != nullptr; }
  // Stays mapped for ever.
  void Leak() { data_ = nullptr; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

// Zeroed memory of a fixed size without a name in any file system: it goes with its last user.
UniqueFd CreateSealedMemory(const char* label, size_t size);

// True when fd is memory of exactly that size that nobody can shrink: safe to map.
bool IsSealedMemory(int fd, size_t size);

// The same file, opened anew for reading only: it cannot be mapped writable. Invalid on failure.
UniqueFd ReopenReadOnly(int fd);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_SHARED_MEMORY_H_
