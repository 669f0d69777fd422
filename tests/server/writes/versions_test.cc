// The versions of a key grow with its changes, whichever thread makes them. A long value takes its
// version before the key's lock, where another write may overtake it.

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

// Hears of the changes of a key in their order.
class OrderSink : public ChangeSink {
 public:
  bool Record(const Change& change) override {
    const std::lock_guard lock(mutex_);
    uint64_t& last = last_[std::string(change.key)];
    if (change.version <= last) ++fallen_;
    last = change.version;
    ++changes_;
    return true;
  }
  int fallen() const { return fallen_; }
  int changes() const { return changes_; }

 private:
  std::mutex mutex_;
  std::map<std::string, uint64_t> last_;
  int fallen_ = 0;
  int changes_ = 0;
};

class VersionsTest : public testing::TestWithParam<bool> {
 protected:
  // Writes one key from several threads.
  template <class Write>
  void Run(Write write) {
    constexpr int kThreads = 3;
    constexpr int kWrites = 4'000;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        for (int j = 0; j < kWrites; ++j) write(i, j);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  TestStore store_{64 << 20};
  OrderSink sink_;
};

TEST_P(VersionsTest, GrowAlsoIfAnotherWriteOvertakesALongOne) {
  const std::string value(GetParam() ? 100'000 : 3'900, 'v');
  store_->UseSink(&sink_);
  Run([&](int thread, int) {
    const WriteOutcome put =
        thread == 0 ? store_.Put("key", "short") : store_.PutReserved("key", value);
    ASSERT_EQ(put.status, ReplyStatus::kOk);
  });
  EXPECT_GT(sink_.changes(), 0);
  EXPECT_EQ(sink_.fallen(), 0);
}

TEST_P(VersionsTest, GrowAlsoIfTheKeyWasDeletedMeanwhile) {
  const std::string value(GetParam() ? 100'000 : 3'900, 'v');
  store_->UseSink(&sink_);
  Run([&](int thread, int) {
    if (thread == 0) {
      store_.Delete("key");
    } else {
      ASSERT_EQ(store_.PutReserved("key", value).status, ReplyStatus::kOk);
    }
  });
  EXPECT_GT(sink_.changes(), 0);
  EXPECT_EQ(sink_.fallen(), 0);
}

INSTANTIATE_TEST_SUITE_P(Values, VersionsTest, testing::Bool(),
                         [](const auto& param) { return param.param ? "Large" : "Long"; });

// As Store::Apply makes it, the change has the version that was recorded.
TEST(ApplyTest, MakesEachKindOfItemWithItsOwnVersion) {
  TestStore store(8 << 20);
  const auto put = [&](const std::string& value, uint64_t version) {
    const Change change{.version = version, .flags = 3, .key = "key", .value = value};
    ASSERT_EQ(store->Apply(change, At(1)), ReplyStatus::kOk);
    std::string read(value.size(), '\0');
    const ReadOutcome found = store->Get("key", std::as_writable_bytes(std::span(read)), At(1));
    EXPECT_EQ(found.version, version);
    EXPECT_EQ(found.attributes.flags, 3u);
    EXPECT_EQ(read, value);
  };
  put("short", 1'000'000);
  put("again", 1'000'007);  // in place
  put(std::string(900, 'o'), 1'000'008);
  put(std::string(4'000, 'l'), 1'000'020);
  put(std::string(500'000, 'h'), 1'000'021);
  put("short", 1'000'030);
  const Change deletion{.kind = Change::Kind::kDelete, .version = 1'000'040, .key = "key"};
  EXPECT_EQ(store->Apply(deletion, At(1)), ReplyStatus::kOk);
  EXPECT_EQ(store->Apply(deletion, At(1)), ReplyStatus::kOk) << "it is gone";
  EXPECT_EQ(store.Stats().items, 0u);
  const Change expired{.version = 1'000'041, .expiry = ExpiresAt(5), .key = "key", .value = "old"};
  EXPECT_EQ(store->Apply(expired, At(5)), ReplyStatus::kOk);
  EXPECT_EQ(store.Stats().items, 0u);
}

}  // namespace
}  // namespace gannet
