#ifndef GANNET_PROXY_JOBS_MEMORY_LIMIT_H_
#define GANNET_PROXY_JOBS_MEMORY_LIMIT_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <numeric>
#include <utility>

#include "common/base/check.h"

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
  static constexpr size_t kSmallMax = 128 << 10;

  explicit Memory(MemoryLimit& limit) : limit_(limit) {}
  ~Memory() { limit_.Give(share_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  MemoryLimit& limit() { return limit_; }
  // The most that one command can ever have.
  size_t most() const { return limit_.max() - limit_.max() / 8; }
  // Returns whether so much may be added now. `reserve`: also of what is reserved for small
  // requests.
  bool Fits(size_t bytes, bool reserve) const {
    const size_t used = limit_.taken() - share_ + used_;
    return used + bytes <= (reserve && bytes <= kSmallMax ? limit_.max() : most());
  }
  void Add(size_t bytes) {
    used_ += bytes;
    peak_ = std::max(peak_, used_);
    if (used_ > share_) SetShare(used_ + kShare);
  }
  void Subtract(size_t bytes) {
    GANNET_CHECK(bytes <= used_, "memory is given back once");
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

// What the bytes that a connection holds are.
enum class Use : uint8_t {
  kInput,    // commands that are read, or are being read
  kQueued,   // commands of a transaction, and keys that are watched
  kJobs,     // commands under way, with what they have READ, and their replies
  kReplies,  // not sent
};

// The one owner of what a connection holds, and its operations that wait until it holds less.
// Charges change it.
//
// Who may take more:
//   1. Nobody beyond the thread's Memory. Small requests may have what is reserved for them, unless
//      the connection holds kMax already: then it does not read its replies, or asks for much.
//   2. Jobs under way have kMax together, so that one connection does not begin everything at once.
//      The job whose reply is the next one may have more, since nothing else makes room. So may a
//      job that has a turn (kTurn), since others wait for it.
// Replies that are not sent count for the first rule only.
class Holder {
 public:
  static constexpr size_t kMax = 4 << 20;

  explicit Holder(Memory* memory) : memory_(memory) {}
  ~Holder() { GANNET_CHECK(held() == 0, "all is given back"); }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  size_t held() const { return std::accumulate(bytes_.begin(), bytes_.end(), size_t{0}); }
  size_t held(Use use) const { return bytes_[static_cast<size_t>(use)]; }
  // Returns whether rule 2 lets this job take so much, and rule 1 anybody.
  bool JobFits(const Job* job, size_t bytes) const {
    return held(Use::kJobs) + bytes <= kMax || job == first;
  }
  bool Fits(size_t bytes) const { return memory_->Fits(bytes, held() <= kMax); }
  // The most that one command can ever have.
  size_t most() const { return memory_->most(); }

  const Job* first = nullptr;  // whose reply is the next one
  std::deque<Operation*> parked;

 private:
  friend class Charge;
  void Add(Use use, size_t bytes) {
    bytes_[static_cast<size_t>(use)] += bytes;
    memory_->Add(bytes);
  }
  void Subtract(Use use, size_t bytes) {
    GANNET_CHECK(bytes <= held(use), "a connection gives back what it holds");
    bytes_[static_cast<size_t>(use)] -= bytes;
    memory_->Subtract(bytes);
  }

  Memory* const memory_;
  std::array<size_t, 4> bytes_{};
};

// How many bytes one thing counts in its holder. Gives them back at its end.
class Charge {
 public:
  Charge() = default;
  explicit Charge(Holder* holder, Use use = Use::kJobs) : holder_(holder), use_(use) {}
  ~Charge() { Set(0); }
  Charge(Charge&& other) noexcept
      : holder_(other.holder_), use_(other.use_), bytes_(std::exchange(other.bytes_, 0)) {}
  Charge& operator=(Charge&& other) noexcept {
    if (this == &other) return *this;
    Set(0);
    holder_ = other.holder_;
    use_ = other.use_;
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }

  size_t bytes() const { return bytes_; }
  // Asks nobody: who takes more asks the holder first. Without a holder nothing is counted.
  void Set(size_t bytes) {
    if (holder_ == nullptr || bytes == bytes_) return;
    bytes > bytes_ ? holder_->Add(use_, bytes - bytes_) : holder_->Subtract(use_, bytes_ - bytes);
    bytes_ = bytes;
  }
  void ReduceTo(size_t bytes) { Set(std::min(bytes, bytes_)); }
  // Takes over so many bytes of another charge, or all if it has fewer.
  void TakeFrom(Charge& other, size_t bytes) {
    bytes = std::min(bytes, other.bytes_);
    other.Set(other.bytes_ - bytes);
    Set(bytes_ + bytes);
  }
  // The same bytes, of another holder.
  void MoveTo(Holder* holder) {
    const size_t bytes = bytes_;
    Set(0);
    holder_ = holder;
    Set(bytes);
  }

 private:
  Holder* holder_ = nullptr;
  Use use_ = Use::kJobs;
  size_t bytes_ = 0;
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_MEMORY_LIMIT_H_
