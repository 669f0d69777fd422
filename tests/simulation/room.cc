#include "tests/simulation/room.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/server_time.h"

namespace gannet::simulation {
namespace {

constexpr uint64_t kTtlMs = 2000;
constexpr size_t kItemsMax = 30'000;
constexpr uint64_t kRefusalsToFill = 8;
// One of so many items is left.
constexpr uint64_t kSurvivorOf = 100;
constexpr uint32_t kLongValueBytes = 100'000;
// The share of the free memory that long items must find when nearly all short ones are deleted.
constexpr double kLongShare = 0.4;
// The most steps of the store's idle work for a refused write.
constexpr int kStepsMax = 300;

class Filler {
 public:
  Filler(Run* run, Store* store, Writes* writes, ServerTime now)
      : run_(run), store_(store), writes_(writes), now_(now) {}

  void CheckExpired() {
    const auto bytes = static_cast<uint32_t>(run_->LogUniform(100, 20'000));
    Fill("expiring", {bytes}, (now_ + kTtlMs).ms());
    now_ = now_ + 2 * kTtlMs;
    for (size_t i = 0; i < items_.size() / 3; ++i) {
      const std::string key = KeyOf("unending", i);
      if (!Put(key, bytes, 0)) return Fail("a store of expired items", i, bytes);
      writes_->Delete(key, {}, now_);
    }
  }

  void CheckReplacing() {
    Fill("replaced",
         {Bytes(1, 1'000), Bytes(1'000, 8'000), Bytes(8'000, 100'000), Bytes(1, 100'000)}, 0);
    for (size_t i = 0; i < items_.size(); ++i) {
      const auto& [key, bytes] = items_[i];
      if (IsLarge(key.size(), bytes)) continue;
      if (!Put(key, bytes, 0)) return Fail("a full store, of as many bytes as before,", i, bytes);
    }
    for (const Item& item : items_) writes_->Delete(item.key, {}, now_);
  }

  void CheckHoles() {
    Fill("short", {Bytes(100, 700)}, 0);
    const bool full = items_.size() < kItemsMax;
    const uint64_t survivor = run_->Below(kSurvivorOf);
    for (size_t i = 0; i < items_.size(); ++i) {
      if (i % kSurvivorOf != survivor) writes_->Delete(items_[i].key, {}, now_);
    }
    StatsReply stats{};
    store_->FillStats(&stats);
    uint64_t long_bytes = 0;
    int steps = 0;
    for (size_t i = 0; steps < kStepsMax; ++steps) {
      const bool put = Put(KeyOf("long", i), kLongValueBytes, 0);
      if (!put) store_->Tidy(now_);
      i += put;
      long_bytes += put ? kLongValueBytes : 0;
    }
    if (!full || static_cast<double>(long_bytes) >=
                     kLongShare * static_cast<double>(stats.heap_total - stats.heap_bytes)) {
      return;
    }
    run_->Fail(Check::kRoom,
               absl::StrCat("of ", stats.heap_total, " bytes, of which ", stats.heap_bytes,
                            " are in use, long items found ", long_bytes));
  }

 private:
  struct Item {
    std::string key;
    uint32_t bytes;
  };

  // Returns keys of equal length for all `i`, so that equally long values give one size class.
  static std::string KeyOf(const std::string& name, size_t i) {
    return absl::StrCat(name, " ", kItemsMax * 10 + i);
  }

  uint32_t Bytes(int64_t low, int64_t high) {
    return static_cast<uint32_t>(run_->LogUniform(low, high));
  }

  bool Put(const std::string& key, uint32_t bytes, uint64_t expiry_ms) {
    value_.resize(bytes, 'x');
    status_ = ReplyStatus::kTryAgain;
    for (int i = 0; i < kStepsMax && status_ == ReplyStatus::kTryAgain; ++i) {
      status_ =
          writes_->Put(key, value_, {.expiry = Expiry::FromMs(expiry_ms)}, {}, now_).outcome.status;
      if (status_ == ReplyStatus::kTryAgain) store_->Tidy(now_);  // the index grows
    }
    return status_ == ReplyStatus::kOk;
  }

  // Writes until the store refuses some writes in a row.
  void Fill(const std::string& name, const std::vector<uint32_t>& sizes, uint64_t expiry_ms) {
    items_.clear();
    uint64_t refused = 0;
    for (size_t i = 0; refused < kRefusalsToFill && items_.size() < kItemsMax; ++i) {
      Item item{KeyOf(name, i), sizes[i % sizes.size()]};
      const bool put = Put(item.key, item.bytes, expiry_ms);
      refused = put ? 0 : refused + 1;
      if (put) items_.push_back(std::move(item));
    }
  }

  void Fail(const std::string& which, size_t i, uint32_t bytes) {
    run_->Fail(Check::kRoom, absl::StrCat(which, " refuses write ", i, " of ", bytes,
                                          " bytes with status ", static_cast<int>(status_),
                                          ", though it took ", items_.size(), " items"));
  }

  Run* const run_;
  Store* const store_;
  Writes* const writes_;
  ServerTime now_;
  ReplyStatus status_ = ReplyStatus::kOk;
  std::string value_;
  std::vector<Item> items_;
};

}  // namespace

void CheckRoom(Run* run, Store* store, Writes* writes, ServerTime now) {
  store->Acknowledge(UINT64_MAX);  // no client READs any more
  Filler filler(run, store, writes, now);
  filler.CheckExpired();
  filler.CheckReplacing();
  if (store->superblock().index.slots() > kItemsMax / 4) filler.CheckHoles();
}

}  // namespace gannet::simulation
