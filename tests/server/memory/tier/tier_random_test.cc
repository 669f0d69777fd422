// A tier against a model of what it may say: random puts, touches, deletions, reads, writes ahead
// and kills, over a disk that fails, or that lies, too.

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/memory/tier/tier_writer.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/server/memory/tier/bad_disk.h"
#include "tests/server/memory/tier/some_tier.h"

namespace gannet {
namespace {

constexpr uint64_t kKeys = 60;
constexpr uint64_t kOperations = 100'000;

std::string ValueOf(uint64_t version) {
  std::string value(kTierValueBytesMin + version * 7919 % 9000, static_cast<char>(version));
  return value + std::to_string(version);
}

uint64_t Operations() {
  const char* const given = std::getenv("GANNET_TIER_OPERATIONS");
  return given == nullptr ? kOperations : std::strtoull(given, nullptr, 10);
}

class TierRandom : public TierItems {
 public:
  TierRandom(uint64_t seed, bool lies) : random_(seed), lies_(lies) { Restart(); }

  void Run(uint64_t operations) {
    for (uint64_t i = 0; i < operations && !testing::Test::HasFailure(); ++i) Step();
  }

  std::optional<TierRecord> NextToWrite() override {
    if (Below(4) == 0) return std::nullopt;
    // Others change keys while the writer works.
    if (Below(8) == 0) Change();
    const uint64_t key = Below(kKeys);
    const auto found = items_.find(key);
    if (found == items_.end() || found->second.place) return std::nullopt;
    key_ = SomeKey(key);
    value_ = ValueOf(found->second.value);
    return TierRecord{.key = key_, .value = value_, .hash = key, .version = found->second.version};
  }

  void Written(uint64_t hash, const TierPlace& place) override {
    const auto found = items_.find(hash);
    if (found == items_.end() || found->second.version != place.version) return;
    if (found->second.place) return;  // it was offered twice
    found->second.place = place;
    ++stubs_made_;
  }

  void NotWritten(const TierPlace& place) override { EXPECT_NE(place.version, 0u); }

  void Forget(const TierCircle::Segment& segment, TierCircle* /*circle*/) override {
    if (segment.list) {
      for (const TierListEntry& entry : *segment.list) {
        const auto found = items_.find(entry.hash);
        if (found == items_.end() || !found->second.place) continue;
        const TierPlace& place = *found->second.place;
        if (place.position == entry.position && place.lap == segment.lap) items_.erase(found);
      }
      return;
    }
    std::erase_if(items_, [&segment](const auto& item) {
      const std::optional<TierPlace>& place = item.second.place;
      return place && place->position >= segment.begin && place->position < segment.end;
    });
  }

  uint64_t reads() const { return reads_; }
  uint64_t reads_failed() const { return reads_failed_; }
  uint64_t stubs_made() const { return stubs_made_; }
  uint64_t restarts() const { return restarts_; }
  uint64_t segments_taken() const { return segments_taken_ + writer_->segments_taken(); }

 private:
  struct Item {
    uint64_t version;  // of the item or stub
    uint64_t value;    // the version that it was put with
    std::optional<TierPlace> place;
  };

  uint64_t Below(uint64_t n) { return random_() % n; }

  void Step() {
    const uint64_t what = Below(100);
    if (what < 35) return Change();
    if (what < 65) return Get(Below(kKeys));
    if (what < 95) return Poll();
    if (what < 99) return SetFaults();
    if (Below(10) == 0) Restart();
  }

  void Poll() {
    now_ns_ += kNsPerSecond / 4;
    writer_->Poll(now_ns_);
  }

  void Change() {
    const uint64_t key = Below(kKeys);
    const auto found = items_.find(key);
    const uint64_t what = Below(10);
    if (what == 0) {
      items_.erase(key);
    } else if (what == 1 && found != items_.end()) {
      found->second.version = ++version_;
    } else {
      ++version_;
      items_[key] = {.version = version_, .value = version_, .place = std::nullopt};
    }
  }

  void Get(uint64_t key) {
    const auto found = items_.find(key);
    if (found == items_.end() || !found->second.place) return;
    const Item item = found->second;
    ++reads_;
    if (!circle_->Pin(*item.place)) {
      EXPECT_TRUE(lies_) << "a stub leads to a segment that was taken again";
      items_.erase(found);
      return;
    }
    // What happens meanwhile changes no record.
    for (uint64_t i = Below(3); i > 0; --i) Below(2) == 0 ? Poll() : Change();
    const TierBuffer buffer(kTierReadBytesMax);
    const auto value = circle_->Read(*item.place, SomeKey(key), buffer.bytes());
    circle_->Unpin(*item.place);
    if (value.ok()) {
      EXPECT_TRUE(*value == ValueOf(item.value))
          << "another value than that of version " << item.value;
      return;
    }
    ++reads_failed_;
    EXPECT_TRUE(lies_ || reads_fail_) << value.status();
    const auto now = items_.find(key);
    if (now != items_.end() && now->second.place == item.place) items_.erase(now);
  }

  void SetFaults() {
    using Write = BadDisk::Write;
    using Read = BadDisk::Read;
    const uint64_t what = Below(10);
    Write write = Write::kDone;
    Read read = Read::kDone;
    if (what == 0) write = Write::kNoSpace;
    if (what == 1) read = Read::kFails;
    if (what == 2 && Below(10) == 0) write = Write::kFails;  // until a restart
    if (lies_ && what == 3) write = Write::kLost;
    if (lies_ && what == 4) write = Write::kTorn;
    if (lies_ && what == 5) read = Read::kElsewhere;
    if (lies_ && what == 6) read = Read::kBits;
    if (lies_ && what == 7) read = Read::kShort;
    disk_.SetWrites(write);
    disk_.SetReads(read);
    reads_fail_ = read == Read::kFails;
  }

  // A kill, and another process with the same memory and disk.
  void Restart() {
    std::vector<uint32_t> laps(kSomeSegments);
    for (const auto& [key, item] : items_) {
      if (!item.place) continue;
      laps[(item.place->position - kTierBlockBytes) / kSomeSegmentBytes] = item.place->lap;
    }
    if (writer_ != nullptr) segments_taken_ += writer_->segments_taken();
    writer_.reset();
    circle_ = std::make_unique<TierCircle>(SomeOptions(&disk_, laps));
    writer_ = std::make_unique<TierWriter>(circle_.get(), this);
    ++restarts_;
  }

  std::mt19937_64 random_;
  const bool lies_;
  BadDisk disk_{kSomeTierBytes};
  std::unique_ptr<TierCircle> circle_;
  std::unique_ptr<TierWriter> writer_;
  std::map<uint64_t, Item> items_;
  std::string key_;
  std::string value_;
  uint64_t version_ = 0;
  int64_t now_ns_ = 0;
  bool reads_fail_ = false;
  uint64_t reads_ = 0;
  uint64_t reads_failed_ = 0;
  uint64_t stubs_made_ = 0;
  uint64_t restarts_ = 0;
  uint64_t segments_taken_ = 0;
};

void ExpectMuchHappened(const TierRandom& tier, uint64_t operations) {
  EXPECT_GT(tier.reads(), operations / 100);
  EXPECT_GT(tier.reads_failed(), operations / 10'000);
  EXPECT_GT(tier.stubs_made(), operations / 100);
  EXPECT_GT(tier.segments_taken(), operations / 1'000);
  EXPECT_GT(tier.restarts(), operations / 10'000);
  std::cout << tier.reads() << " reads, " << tier.reads_failed() << " failed, " << tier.stubs_made()
            << " stubs, " << tier.segments_taken() << " segments taken, " << tier.restarts()
            << " restarts" << std::endl;
}

// Nothing is wrong, and what became a stub is there until its segment's turn.
TEST(TierRandomTest, LosesNothingOnADiskThatFails) {
  TierRandom tier(test_support::TestSeed(), /*lies=*/false);
  tier.Run(Operations());
  ExpectMuchHappened(tier, Operations());
}

// Nothing is wrong.
TEST(TierRandomTest, GivesNoOtherValueOnADiskThatLies) {
  TierRandom tier(test_support::TestSeed(), /*lies=*/true);
  tier.Run(Operations());
  ExpectMuchHappened(tier, Operations());
}

}  // namespace
}  // namespace gannet
