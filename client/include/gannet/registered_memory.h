#ifndef GANNET_REGISTERED_MEMORY_H_
#define GANNET_REGISTERED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gannet {

class MemoryRange;  // of the library

// Memory that is registered with every RDMA device that a client uses. Long values land there, and
// are read from there, without a copy, and no CPU touches their bytes. Register, AllocateMemory and
// RegisterDmabuf of a Client or an AsyncClient make it, and it serves only that client.
//
// Destroying it deregisters the memory. From then on no device touches it. Do that only when no
// call uses it any more. It may outlive its client.
class RegisteredMemory {
 public:
  RegisteredMemory() = default;  // of nothing
  explicit RegisteredMemory(std::shared_ptr<MemoryRange> range) : range_(std::move(range)) {}
  RegisteredMemory(RegisteredMemory&&) noexcept = default;
  RegisteredMemory& operator=(RegisteredMemory&&) noexcept = default;

  // nullptr if the CPU cannot address the memory (RegisterDmabuf).
  std::byte* data() const;
  uint64_t size() const;

  // For the library.
  const MemoryRange* range() const { return range_.get(); }

 private:
  std::shared_ptr<MemoryRange> range_;
};

// A part of registered memory. The memory must outlive every call that uses the part.
struct RegisteredSpan {
  RegisteredSpan() = default;
  // The whole memory.
  RegisteredSpan(const RegisteredMemory& whole)  // NOLINT: converts on purpose
      : memory(&whole), bytes(whole.size()) {}
  RegisteredSpan(const RegisteredMemory& of, uint64_t at, uint64_t n)
      : memory(&of), offset(at), bytes(n) {}

  const RegisteredMemory* memory = nullptr;
  uint64_t offset = 0;
  uint64_t bytes = 0;
};

}  // namespace gannet

#endif  // GANNET_REGISTERED_MEMORY_H_
