#ifndef GANNET_CLIENT_ENGINE_FIXED_STACK_H_
#define GANNET_CLIENT_ENGINE_FIXED_STACK_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/check.h"

namespace gannet {

// A last-in-first-out store with a bound, allocated once. One owner thread.
template <class T>
class FixedStack {
 public:
  explicit FixedStack(uint32_t capacity) : slots_(capacity), capacity_(capacity) {}

  bool empty() const { return size_ == 0; }
  // The callers' own limits keep it from being full.
  void Push(const T& value) {
    GANNET_CHECK(size_ < capacity_, "stack overrun");
    slots_[size_++] = value;
  }
  // REQUIRES: not empty.
  T Pop() { return slots_[--size_]; }
  // Everything in it, oldest first; valid until the next Push or Clear.
  std::span<const T> all() const { return {slots_.data(), size_}; }
  void Clear() { size_ = 0; }

 private:
  std::vector<T> slots_;
  uint32_t capacity_;
  uint32_t size_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_FIXED_STACK_H_
