#ifndef GANNET_SERVER_MAIN_CONTROL_LOCK_MEMORY_H_
#define GANNET_SERVER_MAIN_CONTROL_LOCK_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rdma/memory.h"

namespace gannet {

// The memory of a server's lock words, and its registration with the device that swaps them.
class LockMemory {
 public:
  // Free words, which no device knows. ResourceExhausted: there is no such memory.
  static absl::StatusOr<LockMemory> Create(size_t words);

  std::span<uint64_t> words() const {
    return {reinterpret_cast<uint64_t*>(memory_.bytes().data()), words_};
  }
  uint64_t address() const { return reinterpret_cast<uint64_t>(memory_.bytes().data()); }

  // In place of an earlier registration. The errors are those of RegisterMemory.
  absl::Status Register(ibv_pd* pd, RemoteAccess access);
  void Deregister() { mr_.reset(); }
  bool registered() const { return mr_ != nullptr; }
  uint32_t rkey() const { return mr_->rkey; }

 private:
  LockMemory(SharedMemory memory, size_t words) : memory_(std::move(memory)), words_(words) {}

  // In the order of dependency.
  SharedMemory memory_;
  size_t words_;
  Handle<ibv_mr> mr_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_LOCK_MEMORY_H_
