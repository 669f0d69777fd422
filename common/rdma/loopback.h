#ifndef GANNET_COMMON_RDMA_LOOPBACK_H_
#define GANNET_COMMON_RDMA_LOOPBACK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rdma/address.h"
#include "common/rdma/alternate_paths.h"
#include "common/rdma/completion.h"
#include "common/rdma/connector.h"
#include "common/rdma/device.h"
#include "common/rdma/idler.h"
#include "common/rdma/listener.h"
#include "common/rdma/memory.h"

namespace gannet {

// One device connected to itself, through rdma_cm on its own address. A process uses it to change
// memory by the device's atomics, because those and the CPU's are not atomic with each other. It
// also proves that the device works.
//
// Owner thread only.
class Loopback {
 public:
  struct Options {
    // The protection domain of the memory that CompareAndSwap changes. An rkey is valid only within
    // its protection domain.
    ibv_pd* pd = nullptr;
    std::optional<SocketAddress> address;  // of the device; nullopt: one that it finds
    uint32_t depth = 16;                   // compare-and-swaps in flight at most
    int64_t timeout_ns = 2'000'000'000;
    Idler* idle = nullptr;  // while this object blocks; nullptr: it sleeps
  };
  // Blocks until connected, at most for the timeout (DeadlineExceeded). FailedPrecondition: this
  // host has no address on the device.
  static absl::StatusOr<std::unique_ptr<Loopback>> Create(const Device& device,
                                                          const Options& options);
  // Begins to connect, and does not block. Nothing but LookConnected, BeginDrain, LookDrained and
  // the destructor may be called until it is connected.
  static absl::StatusOr<std::unique_ptr<Loopback>> Begin(const Device& device,
                                                         const Options& options);
  // Returns whether it is connected. DeadlineExceeded: not within the timeout since Begin.
  absl::StatusOr<bool> LookConnected();
  // Blocks until everything in flight is flushed, at most for the timeout, unless it drains.
  ~Loopback();

  // Sends one byte from one end to the other and checks it. Blocks, at most for the timeout.
  // REQUIRES: nothing is in flight.
  absl::Status CarryByte();

  // Starts a compare-and-swap of 8 aligned bytes, in an MR with remote atomic rights of the same
  // protection domain. Returns false if `depth` are in flight already, or if broken(). REQUIRES:
  // the device has atomics.
  bool CompareAndSwap(uint64_t address, uint32_t rkey, uint64_t expected, uint64_t desired,
                      uint64_t tag);

  struct Outcome {
    uint64_t tag = 0;
    uint64_t previous = 0;  // the swap was done if this equals `expected`
  };
  // Fills in outcomes of finished compare-and-swaps and returns their number. Those that were in
  // flight when it broke are dropped.
  size_t Poll(std::span<Outcome> out);
  uint32_t in_flight() const { return in_flight_; }
  // Looks at its alternate path, if it has one: by another port of the device. While that is to be
  // armed, blocks until a byte has come and gone, at most for the timeout.
  void LookAtPaths();
  // Begins to end it: every CompareAndSwap is refused, and outcomes of those in flight are dropped.
  // REQUIRES: not called before.
  void BeginDrain();
  // Returns whether nothing is in flight any more. A dead device may never flush. REQUIRES:
  // BeginDrain.
  bool LookDrained();
  // True if the connection broke, or was begun to drain. The outcome of swaps that were in flight
  // is unknown; make a new Loopback.
  bool broken() const { return broken_; }

 private:
  explicit Loopback(const Options& options);

  absl::Status BeginConnect(const Device& device);
  void FindPaths();
  absl::Status Step(int64_t now_ns);
  bool IsOwn(const IncomingRequest& request) const;
  void WaitForEvents() const;
  std::vector<Connection*> Ends() const;
  std::byte* Result(uint32_t slot) const { return buffer_.data() + 8 * slot; }

  const Options options_;
  const uint64_t nonce_;  // tells our own connection request from a stranger's
  std::unique_ptr<CompletionQueue> completions_;
  RegisteredBuffer
      buffer_;  // a result per compare-and-swap, then the byte sent and the one received
  ConnectionOptions connecting_;  // of both ends
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connection> passive_;
  std::unique_ptr<Connector> active_;
  bool has_paths_ = false;            // once connected
  std::vector<AlternatePath> paths_;  // of both ends, from the first LookAtPaths on
  std::vector<uint64_t> tags_;
  std::vector<uint32_t> free_slots_;
  uint32_t in_flight_ = 0;
  bool broken_ = false;
};

// Returns an address of this host that rdma_cm finds on the device. FailedPrecondition: there is
// none.
absl::StatusOr<SocketAddress> OwnAddress(const Device& device);

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_LOOPBACK_H_
