#ifndef GANNET_TESTS_SERVER_MEMORY_STORE_TIER_PROCESS_H_
#define GANNET_TESTS_SERVER_MEMORY_STORE_TIER_PROCESS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "server/memory/store/store.h"
#include "server/memory/store/stubs.h"
#include "server/memory/tier/tier_buffer.h"
#include "server/memory/tier/tier_reads.h"
#include "server/memory/tier/tier_writer.h"
#include "server/writes/writes.h"
#include "tests/server/memory/tier/bad_disk.h"

namespace gannet {

// A disk that can be copied at any moment of a write, and on which reads of other threads than that
// of the test last until they are let go.
class CopiedDisk : public BadDisk {
 public:
  explicit CopiedDisk(size_t bytes) : BadDisk(bytes) {}

  // Calls this at two moments of each write: before it, and when the half of it is done.
  void OnWrite(std::function<void()> call) { on_write_ = std::move(call); }
  void LetReadsGo(bool go) {
    const std::lock_guard lock(mutex_);
    go_ = go;
    changed_.notify_all();
  }

  absl::Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
    on_write_();
    const size_t half = bytes.size() / kTierBlockBytes / 2 * kTierBlockBytes;
    if (half > 0) {
      const absl::Status status = BadDisk::WriteAt(offset, bytes.first(half));
      if (!status.ok()) return status;
      on_write_();
    }
    return BadDisk::WriteAt(offset + half, bytes.subspan(half));
  }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> bytes) override {
    if (std::this_thread::get_id() != owner_) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return go_; });
    }
    return BadDisk::ReadAt(offset, bytes);
  }

 private:
  const std::thread::id owner_ = std::this_thread::get_id();
  std::function<void()> on_write_ = [] {};
  std::mutex mutex_;
  std::condition_variable changed_;
  bool go_ = false;
};

// Waits for reads.
class Awaited : public TierReadsDone {
 public:
  void OnTierReadsDone() override {
    const std::lock_guard lock(mutex_);
    ++done_;
    changed_.notify_all();
  }
  void Await(size_t reads) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= reads; });
    done_ = 0;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t done_ = 0;
};

// The items of a store, of which a test hears what the writer does, before it does it.
class HeardItems : public TierItems {
 public:
  using Hear = std::function<void(const TierCircle::Segment&)>;
  HeardItems(Stubs* stubs, std::function<void()> between, Hear forgets, Hear forgot)
      : stubs_(*stubs),
        between_(std::move(between)),
        forgets_(std::move(forgets)),
        forgot_(std::move(forgot)) {}

  std::optional<TierRecord> NextToWrite() override {
    between_();
    return stubs_.NextToWrite();
  }
  void Written(uint64_t hash, const TierPlace& place) override {
    between_();
    stubs_.Written(hash, place);
  }
  void NotWritten(const TierPlace& place) override { stubs_.NotWritten(place); }
  void Forget(const TierCircle::Segment& segment, TierCircle* circle) override {
    forgets_(segment);
    stubs_.Forget(segment, circle);
    forgot_(segment);
  }

 private:
  Stubs& stubs_;
  const std::function<void()> between_;
  const Hear forgets_;
  const Hear forgot_;
};

// A process: a store with a tier, and who writes and reads there.
struct TierProcess {
  TierProcess(const StoreOptions& options, File* disk, size_t read_memory_bytes)
      : memory(read_memory_bytes) {
    auto made = Store::Create(options);
    EXPECT_TRUE(made.ok()) << made.status();
    store = *std::move(made);
    writes = std::make_unique<Writes>(store.get());
    circle = std::make_unique<TierCircle>(
        TierCircle::Options{.file = disk,
                            .tier = options.tier->number,
                            .segment_bytes = options.tier->segment_bytes,
                            .segments = options.tier->segments,
                            .laps = store->stubs()->Laps()});
    reads = std::make_unique<TierReads>(TierReads::Options{
        .circle = circle.get(), .memory = memory.bytes(), .threads = 2, .workers = {&done}});
  }

  std::unique_ptr<Store> store;
  std::unique_ptr<Writes> writes;
  std::unique_ptr<TierCircle> circle;
  std::unique_ptr<HeardItems> items;   // made by the test
  std::unique_ptr<TierWriter> writer;  // by the test, too
  TierBuffer memory;                   // of reads
  Awaited done;
  std::unique_ptr<TierReads> reads;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_MEMORY_STORE_TIER_PROCESS_H_
