#ifndef GANNET_TESTS_COMMON_LOOKUP_HAND_MADE_REGION_H_
#define GANNET_TESTS_COMMON_LOOKUP_HAND_MADE_REGION_H_

#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/layout/large_proof.h"
#include "common/lookup/lookup.h"

namespace gannet {

class TestClock : public ClientClock {
 public:
  int64_t MonotonicNs() const override { return now_ns; }
  int64_t now_ns = 1'000'000'000;
};

// A small server's region built by hand, with anything that a server would have published, or must
// not have.
class HandMadeRegion {
 public:
  static constexpr uint64_t kBytes = 64 * 1024;
  static constexpr uint64_t kHeap = 16 * 1024;

  HandMadeRegion()
      : words_(kBytes / 8),
        view_{.incarnation = 0x1122334455667788,
              .hash_seed = 42,
              .region_bytes = kBytes,
              .index = {1, 4096, 4, 1}} {
    for (uint64_t b = 0; b < view_.index.buckets(); ++b) Publish(b);
  }

  const IndexView& view() const { return view_; }
  IndexView& view() { return view_; }
  std::byte* at(uint64_t offset) { return reinterpret_cast<std::byte*>(words_.data()) + offset; }
  Bucket& bucket(uint64_t number) { return bucket(view_.index, number); }
  Bucket& bucket(const IndexGeometry& index, uint64_t number) {
    return *reinterpret_cast<Bucket*>(at(index.BucketOffset(number)));
  }
  KeyHash HashOf(std::string_view key) const { return KeyHash::Of(key, view_.hash_seed); }
  uint64_t HomeOf(std::string_view key) const { return HashOf(key).Home(view_.index.homes); }
  uint64_t StashOf(std::string_view key) const {
    return view_.index.StashBucket(HashOf(key).StashHome(view_.index.stash_homes));
  }

  // Bumps the version and sets the checksum, as every change of a bucket must.
  void Publish(uint64_t number) {
    Bucket& b = bucket(number);
    b.meta = BucketMeta(b.meta).WithNextVersion().word();
    Seal(number);
  }
  void Seal(uint64_t number) { Seal(view_.index, number); }
  void Seal(const IndexGeometry& index, uint64_t number) {
    Bucket& b = bucket(index, number);
    b.checksum = BucketChecksum(b, BucketSeed(view_.incarnation, index.generation, number));
  }

  // An empty second index, of the next generation. `view` knows nothing of it.
  static constexpr IndexGeometry kNext = {2, 8192, 8, 1};
  void MakeNext() {
    for (uint64_t b = 0; b < kNext.buckets(); ++b) Seal(kNext, b);
  }
  uint64_t HomeInNext(std::string_view key) const { return HashOf(key).Home(kNext.homes); }
  void SetSlotInNext(uint64_t bucket_number, uint32_t i, Slot slot) {
    bucket(kNext, bucket_number).slots[i] = slot.word();
    Seal(kNext, bucket_number);
  }
  void SetMigrated(uint64_t bucket_number) {
    Bucket& b = bucket(bucket_number);
    b.meta = BucketMeta(b.meta).WithMigrated().word();
    Publish(bucket_number);
  }

  // Writes a live item and returns a slot for it with `tag_of`'s tag.
  Slot AddItem(std::string_view key, std::string_view value, std::string_view tag_of,
               uint64_t expiry_ms = 0) {
    const uint64_t offset = next_;
    const uint32_t size_class = SizeClassFor(ItemBytes(key.size(), value.size()));
    next_ += SizeClassBytes(size_class);
    if (IsLarge(key.size(), value.size())) return AddLargeItem(key, value, tag_of, offset);
    ItemHeader header{};
    header.version = 1 + offset;
    header.value_bytes = static_cast<uint32_t>(value.size());
    header.flags = 7;
    header.SetExpiryAndKeyBytes(Expiry::FromMs(expiry_ms), key.size());
    std::memcpy(at(offset), &header, sizeof(header));
    std::memcpy(at(offset) + sizeof(header), value.data(), value.size());
    std::memcpy(at(offset) + sizeof(header) + value.size(), key.data(), key.size());
    header.commit = LiveCommitWord(at(offset), header.value_bytes,
                                   ItemSeal(HashOf(key), view_.incarnation, offset));
    std::memcpy(at(offset), &header.commit, 8);
    return Slot::Of(HashOf(tag_of).Tag(), size_class, offset);
  }
  Slot AddLargeItem(std::string_view key, std::string_view value, std::string_view tag_of,
                    uint64_t offset) {
    LargeItemHeader header{};
    header.item.version = 1 + offset;
    header.item.value_bytes = static_cast<uint32_t>(value.size());
    header.item.SetExpiryAndKeyBytes(Expiry(), key.size());
    header.placing = ++placings_;
    header.item.commit = LiveCommitWordOf(header, ItemSeal(HashOf(key), view_.incarnation, offset));
    std::memcpy(at(offset), &header, sizeof(header));
    std::memcpy(at(offset) + sizeof(header), key.data(), key.size());
    std::memcpy(at(offset) + LargeValueOffset(key.size()), value.data(), value.size());
    return Slot::Of(HashOf(tag_of).Tag(), SizeClassFor(ItemBytes(key.size(), value.size())),
                    offset);
  }
  Slot AddItem(std::string_view key, std::string_view value) { return AddItem(key, value, key); }
  void Kill(Slot slot) { std::memset(at(slot.offset()), 0, 8); }

  void SetSlot(uint64_t bucket_number, uint32_t i, Slot slot) {
    bucket(bucket_number).slots[i] = slot.word();
    Publish(bucket_number);
  }
  void SetStashTags(uint64_t bucket_number, uint32_t tags) {
    Bucket& b = bucket(bucket_number);
    b.meta = BucketMeta(b.meta).WithStashTags(tags).word();
    Publish(bucket_number);
  }

 private:
  std::vector<uint64_t> words_;
  IndexView view_;
  uint64_t next_ = kHeap;
  uint64_t placings_ = 0;
};

// Runs one lookup against a region; `before_read` may change the region, or the clock.
class LookupRun {
 public:
  using Hook = std::function<void(int read_number, const Lookup::ReadPlan&)>;

  LookupRun(HandMadeRegion& region, std::string_view key) : region_(region), key_(key) {}

  Lookup::Step Run(Slot cached = Slot()) {
    auto step = lookup_.Start(&region_.view(), key_, region_.HashOf(key_), cached);
    while (step == Lookup::Step::kRead || step == Lookup::Step::kReadValue) {
      if (step == Lookup::Step::kReadValue) {
        if (before_value) before_value();
        const auto* bytes = reinterpret_cast<const char*>(region_.at(lookup_.value_offset()));
        value.assign(bytes, lookup_.large().item.value_bytes);
        step = lookup_.OnValue();
        continue;
      }
      const Lookup::ReadPlan plan = lookup_.plan();
      const int64_t posted_ns = clock.now_ns;
      if (before_read) before_read(static_cast<int>(reads.size()), plan);
      reads.push_back(plan);
      if (!region_.view().Contains(plan.offset, plan.bytes)) {
        left_region = true;
        return Lookup::Step::kAskServer;
      }
      Buffer(plan.target).assign(region_.at(plan.offset), region_.at(plan.offset) + plan.bytes);
      step = lookup_.OnRead({{windows_[0].data(), windows_[1].data()}, item_.data()}, posted_ns,
                            clock);
    }
    return step;
  }
  const Lookup& lookup() const { return lookup_; }

  Hook before_read;
  std::function<void()> before_value;  // a large item's
  std::string value;                   // a large item's, as READ last
  TestClock clock;
  std::vector<Lookup::ReadPlan> reads;
  bool left_region = false;

 private:
  std::vector<std::byte>& Buffer(Lookup::Target target) {
    return target == Lookup::Target::kItem ? item_ : windows_[static_cast<int>(target)];
  }

  HandMadeRegion& region_;
  std::string key_;
  Lookup lookup_;
  std::vector<std::byte> windows_[2], item_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_LOOKUP_HAND_MADE_REGION_H_
