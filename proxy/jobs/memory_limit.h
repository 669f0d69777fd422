#ifndef GANNET_PROXY_JOBS_MEMORY_LIMIT_H_
#define GANNET_PROXY_JOBS_MEMORY_LIMIT_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>

namespace gannet::proxy {

class Job;
struct Operation;

// The memory that the connections of all threads may hold for commands and replies. Threads take
// shares of it.
class MemoryLimit {
 public:
  explicit MemoryLimit(size_t max) : max_(max) {}

  size_t max() const { return max_; }
  // Relaxed, as all accesses here: it is a sum, and nothing else depends on it.
  size_t taken() const { return taken_.load(std::memory_order_relaxed); }
  void Take(size_t bytes) { taken_.fetch_add(bytes, std::memory_order_relaxed); }
  void Give(size_t bytes) { taken_.fetch_sub(bytes, std::memory_order_relaxed); }

  // Since when somebody waits for memory; 0: nobody waits.
  int64_t short_since_ms() const { return short_since_ms_.load(std::memory_order_relaxed); }
  void SetShortSince(int64_t ms) { short_since_ms_.store(ms, std::memory_order_relaxed); }

 private:
  const size_t max_;
  std::atomic<size_t> taken_{0};
  std::atomic<int64_t> short_since_ms_{0};
};

// The memory that the connections of one thread hold. It takes its share of the limit in large
// pieces, so that most commands change no number that threads share.
class Memory {
 public:
  // Requests for at most this much are granted up to the limit. The last eighth of the limit is
  // reserved for them, so that ordinary commands go on while long ones wait.
  static constexpr size_t kSmallMax = 64 << 10;

  explicit Memory(MemoryLimit& limit) : limit_(limit) {}
  ~Memory() { limit_.Give(share_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  MemoryLimit& limit() { return limit_; }
  // The most that one command can ever have.
  size_t most() const { return limit_.max() - limit_.max() / 8; }
  // Returns whether so much may be added now.
  bool Fits(size_t bytes) const {
    const size_t used = limit_.taken() - share_ + used_;
    return used + bytes <= (bytes <= kSmallMax ? limit_.max() : most());
  }
  void Add(size_t bytes) {
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    if (used_ > share_) SetShare(used_ + kShare);
  }
  void Subtract(size_t bytes) {
    used_ -= bytes;
    if (share_ - used_ > 2 * kShare) SetShare(used_ + kShare);
  }
  size_t used() const { return used_; }

  // Returns whether much was given back since this last returned true. Then the allocator should be
  // told.
  bool HasShrunk() {
    if (peak_ - used_ < kShrunk) return false;
    peak_ = used_;
    return true;
  }

 private:
  static constexpr size_t kShare = 256 << 10;
  static constexpr size_t kShrunk = 32 << 20;

  void SetShare(size_t share) {
    share > share_ ? limit_.Take(share - share_) : limit_.Give(share_ - share);
    share_ = share;
  }

  MemoryLimit& limit_;
  size_t used_ = 0;
  size_t share_ = 0;  // of the limit; at least used_
  size_t peak_ = 0;
};

// What the commands and replies of one connection hold, and its operations that wait until it holds
// less.
struct Holder {
  // Above this, only the command whose reply comes next may go on, and only while less than this is
  // unsent.
  static constexpr size_t kMax = 4 << 20;

  // Returns whether an operation of this job may take so much.
  bool Fits(const Job* job, size_t bytes) const {
    return held + bytes <= kMax || (job == first && unsent < kMax);
  }

  Memory* memory = nullptr;
  size_t held = 0;
  size_t unsent = 0;           // of it: replies
  const Job* first = nullptr;  // whose reply is the next one
  std::deque<Operation*> parked;

  void Add(size_t bytes) {
    held += bytes;
    memory->Add(bytes);
  }
  void Subtract(size_t bytes) {
    held -= bytes;
    memory->Subtract(bytes);
  }
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_MEMORY_LIMIT_H_
