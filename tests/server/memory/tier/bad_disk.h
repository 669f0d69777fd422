#ifndef GANNET_TESTS_SERVER_MEMORY_TIER_BAD_DISK_H_
#define GANNET_TESTS_SERVER_MEMORY_TIER_BAD_DISK_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/log/journal/files.h"

namespace gannet {

// A file in memory on a disk that fails, lies and is slow, as the test says. What it is told holds
// for the next writes or reads. Takes whole blocks only, as O_DIRECT does. Thread safe.
class BadDisk : public File {
 public:
  enum class Write : uint8_t {
    kDone,
    kFails,    // EIO, and a part is written
    kNoSpace,  // the same without space
    kLost,     // is said to be done, and is not
    kTorn,     // is said to be done, and a part is
  };
  enum class Read : uint8_t {
    kDone,
    kFails,
    kElsewhere,  // gives the block behind
    kBits,       // gives a flipped bit
    kShort,      // ends early
  };

  explicit BadDisk(size_t bytes) : bytes_(bytes) {}

  void SetWrites(Write what) { writes_ = what; }
  void SetReads(Read what) { reads_ = what; }
  // Writes, or reads, wait until they are released.
  void HoldWrites(bool hold) { Hold(&writes_held_, hold); }
  void HoldReads(bool hold) { Hold(&reads_held_, hold); }
  // Returns when so many wait.
  void AwaitHeld(int n);
  uint64_t bytes_written() const { return bytes_written_; }
  // What is on the disk, and a disk that has this again.
  std::vector<std::byte> Copy();
  void Restore(const std::vector<std::byte>& bytes);

  absl::Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) override;
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> bytes) override;
  absl::Status Reserve(uint64_t) override { return absl::OkStatus(); }
  absl::Status Truncate(uint64_t) override { return absl::OkStatus(); }
  absl::StatusOr<uint64_t> Size() override { return bytes_.size(); }
  absl::Status Sync() override { return absl::OkStatus(); }

 private:
  void Hold(bool* held, bool hold);
  void WaitWhile(const bool& held);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::byte> bytes_;
  bool writes_held_ = false;
  bool reads_held_ = false;
  int held_ = 0;
  std::atomic<Write> writes_{Write::kDone};
  std::atomic<Read> reads_{Read::kDone};
  std::atomic<uint64_t> bytes_written_{0};
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_MEMORY_TIER_BAD_DISK_H_
