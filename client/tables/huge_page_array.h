#ifndef GANNET_CLIENT_TABLES_HUGE_PAGE_ARRAY_H_
#define GANNET_CLIENT_TABLES_HUGE_PAGE_ARRAY_H_

#include <cstddef>
#include <memory>
#include <type_traits>

namespace gannet {

// Zeroed pages from the system, aligned to 4096 bytes. They take memory only when touched. From 2
// MiB on they are huge pages, as far as whole ones fit into `bytes` and the system has them. Then
// an access anywhere in a large table costs one cache miss and rarely a TLB miss on top.
struct PagesDeleter {
  size_t bytes = 0;
  void operator()(void* pages) const;
};
using Pages = std::unique_ptr<void, PagesDeleter>;
// Returns nullptr if `bytes` is 0. Running out of memory is fatal, as everywhere in the client.
Pages AllocatePages(size_t bytes);

template <class T>
class HugePageArray {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= 4096);

 public:
  explicit HugePageArray(size_t size) : pages_(AllocatePages(size * sizeof(T))) {}
  T* get() const { return static_cast<T*>(pages_.get()); }

 private:
  Pages pages_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_TABLES_HUGE_PAGE_ARRAY_H_
