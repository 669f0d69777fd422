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
  // Maps [offset, offset + size) of fd shared. The mapping is empty (false) on failure.
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
  // Gives up the ownership, so that the memory stays mapped for ever.
  void Leak() { data_ = nullptr; }

 private:
  void* data_ = nullptr;
  size_t size_ = 0;
};

// Creates zeroed memory of a fixed size that has no name in any file system. It disappears with its
// last user.
UniqueFd CreateSealedMemory(const char* label, size_t size);

// Returns true if fd is memory of exactly that size that nobody can shrink, so that it is safe to
// map.
bool IsSealedMemory(int fd, size_t size);

// Opens the same file again for reading only, so that it cannot be mapped writable. Returns an
// invalid descriptor on failure.
UniqueFd ReopenReadOnly(int fd);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_SHARED_MEMORY_H_
