#ifndef GANNET_SERVER_SESSIONS_LOCKS_LOOPBACK_LOCK_CAS_H_
#define GANNET_SERVER_SESSIONS_LOCKS_LOOPBACK_LOCK_CAS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/rdma/loopback.h"
#include "server/sessions/locks/lock_cas.h"

namespace gannet {

// Changes lock words through a queue pair that connects the device to itself, so that clients'
// compare-and-swaps and the server's are atomic with each other.
//
// If the queue pair breaks (it should not), everything in flight is reported as failed, and every
// Start is refused. The device has then lost more than this.
class LoopbackLockCas final : public LockCas {
 public:
  static constexpr uint32_t kDepth = 32;

  struct Options {
    ibv_pd* pd = nullptr;  // of the lock words' MR
    uint64_t address = 0;  // of word 0
    uint32_t rkey = 0;
    std::optional<SocketAddress> device_address;  // as Loopback::Options::address
    Idler* idle = nullptr;                        // as Loopback::Options::idle
  };
  // Blocks until connected, at most a few seconds.
  static absl::StatusOr<std::unique_ptr<LoopbackLockCas>> Create(const Device& device,
                                                                 const Options& options);

  // Begins to connect, and does not block. Nothing but LookConnected, BeginDrain, LookDrained and
  // the destructor may be called until it is connected.
  static absl::StatusOr<std::unique_ptr<LoopbackLockCas>> Begin(const Device& device,
                                                                const Options& options);
  // As Loopback's.
  absl::StatusOr<bool> LookConnected() { return loopback_->LookConnected(); }

  bool Start(size_t index, uint64_t expected, uint64_t desired, Done done) override;
  bool Poll() override;
  size_t in_flight() const override { return kDepth - free_tags_.size(); }
  size_t depth() const override { return kDepth; }
  bool broken() const override { return loopback_->broken(); }
  void LookAtPaths() override { loopback_->LookAtPaths(); }
  void BeginDrain() override;
  bool LookDrained() override { return loopback_->LookDrained(); }

 private:
  LoopbackLockCas(const Options& options, std::unique_ptr<Loopback> loopback);
  static Loopback::Options OptionsOf(const Options& options) {
    return {
        .pd = options.pd, .address = options.device_address, .depth = kDepth, .idle = options.idle};
  }
  void FailAll();

  const Options options_;
  const std::unique_ptr<Loopback> loopback_;
  std::vector<Done> done_;  // by tag
  std::vector<uint32_t> free_tags_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_LOCKS_LOOPBACK_LOCK_CAS_H_
