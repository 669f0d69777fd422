#ifndef GANNET_CLIENT_ENGINE_FIXED_STACK_H_
#define GANNET_CLIENT_ENGINE_FIXED_STACK_H_

#include <cstdint>
#include <memory>
#include <span>

#include "common/base/data_path_checks.h"

namespace gannet {

// A last-in-first-out stack with a bound. Allocates only when it is made. One owner thread.
template <class T>
class FixedStack {
 public:
  explicit FixedStack(uint32_t capacity) : slots_(std::make_unique<T[]>(capacity)) {}

  bool empty() const { return size_ == 0; }
  uint32_t size() const { return size_; }
  // REQUIRES: not full.
  void Push(const T& value) { slots_[size_++] = value; }
  // REQUIRES: not empty.
  T Pop() {
    GANNET_CHECK_DATA_PATH(!empty(), "nothing is in the stack");
    return slots_[--size_];
  }
  // Returns everything in it, oldest first. Valid until the next Push or Clear.
  std::span<const T> all() const { return {slots_.get(), size_}; }
  void Clear() { size_ = 0; }
  // Calls goes(value) for each, oldest first, and takes out those for which it returns true.
  template <class F>
  void TakeOut(F goes) {
    uint32_t left = 0;
    for (uint32_t i = 0; i < size_; ++i) {
      const T value = slots_[i];
      if (!goes(value)) slots_[left++] = value;
    }
    size_ = left;
  }

 private:
  std::unique_ptr<T[]> slots_;
  uint32_t size_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_FIXED_STACK_H_
