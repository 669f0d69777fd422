#include "server/sessions/locks/loopback_lock_cas.h"

#include <array>
#include <utility>

#include "common/base/status_macros.h"

namespace gannet {

absl::StatusOr<std::unique_ptr<LoopbackLockCas>> LoopbackLockCas::Create(const Device& device,
                                                                         const Options& options) {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<Loopback> loopback,
                          Loopback::Create(device, OptionsOf(options)));
  return std::unique_ptr<LoopbackLockCas>(new LoopbackLockCas(options, std::move(loopback)));
}

absl::StatusOr<std::unique_ptr<LoopbackLockCas>> LoopbackLockCas::Begin(const Device& device,
                                                                        const Options& options) {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<Loopback> loopback,
                          Loopback::Begin(device, OptionsOf(options)));
  return std::unique_ptr<LoopbackLockCas>(new LoopbackLockCas(options, std::move(loopback)));
}

LoopbackLockCas::LoopbackLockCas(const Options& options, std::unique_ptr<Loopback> loopback)
    : options_(options), loopback_(std::move(loopback)), done_(kDepth) {
  for (uint32_t tag = kDepth; tag-- > 0;) free_tags_.push_back(tag);
}

bool LoopbackLockCas::Start(size_t index, uint64_t expected, uint64_t desired, Done done) {
  if (free_tags_.empty()) return false;
  const uint32_t tag = free_tags_.back();
  const uint64_t address = options_.address + index * sizeof(uint64_t);
  if (!loopback_->CompareAndSwap(address, options_.rkey, expected, desired, tag)) return false;
  free_tags_.pop_back();
  done_[tag] = std::move(done);
  return true;
}

bool LoopbackLockCas::Poll() {
  if (in_flight() == 0) return false;
  std::array<Loopback::Outcome, kDepth> outcomes;
  const size_t n = loopback_->Poll(outcomes);
  for (size_t i = 0; i < n; ++i) {
    // Frees the tag before the call, which may start the next swap.
    const uint32_t tag = static_cast<uint32_t>(outcomes[i].tag);
    const Done done = std::exchange(done_[tag], nullptr);
    free_tags_.push_back(tag);
    done(true, outcomes[i].previous);
  }
  if (loopback_->broken()) FailAll();
  return n > 0;
}

void LoopbackLockCas::BeginDrain() {
  loopback_->BeginDrain();
  FailAll();
}

void LoopbackLockCas::FailAll() {
  free_tags_.clear();
  for (uint32_t tag = kDepth; tag-- > 0;) free_tags_.push_back(tag);
  for (Done& slot : done_) {
    if (slot == nullptr) continue;
    const Done done = std::exchange(slot, nullptr);
    done(false, 0);
  }
}

}  // namespace gannet
