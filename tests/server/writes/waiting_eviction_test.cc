// Evictions that wait for the disk. The disk is a number: how far what was recorded is safe.

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/writes/writes.h"
#include "tests/server/memory/store/store_fixture.h"
#include "tests/server/writes/recorded_changes.h"

namespace gannet {
namespace {

using Decided = Writes::Decided;

class WaitingEvictionTest : public testing::Test {
 protected:
  void Make(size_t region_bytes, uint64_t index_slots = 0) {
    store_.emplace(region_bytes, index_slots, /*index_grows=*/false, TestStore::OnFull::kEvict);
    (*store_)->UseSink(&sink_);
    writes_ = &store_->writes();
    writes_->WaitFor(&sink_);
  }
  void SetUp() override { Make(1 << 20); }

  Decided Put(std::string_view key, std::string_view value) {
    return writes_->Put(key, value, {}, {}, At(kNowMs));
  }
  std::optional<std::string> Seen(std::string_view key) { return store_->Get(key, kNowMs); }
  void PublishAll() { writes_->Publish(sink_.end); }
  static ReplyStatus StatusOf(const Decided& decided) { return decided.outcome.status; }

  // Puts keys, all of which are published, until one is put off for lack of room. Returns how many
  // were put.
  int Fill(const std::string& value) {
    int put = 0;
    while (put < 10'000 && StatusOf(Put("key" + std::to_string(put), value)) == ReplyStatus::kOk) {
      ++put;
      PublishAll();
    }
    return put;
  }
  // The keys whose last record is a deletion.
  std::vector<std::string> Deleted() const {
    std::map<std::string, bool> deleted;
    for (const std::string& change : sink_.changes) {
      const bool is_put = change.starts_with("put ");
      deleted[change.substr(is_put ? 4 : 7)] = !is_put;
    }
    std::vector<std::string> keys;
    for (const auto& [key, is_deleted] : deleted) {
      if (is_deleted) keys.push_back(key);
    }
    return keys;
  }

  static constexpr uint64_t kNowMs = 1'000;
  RecordedChanges sink_;
  std::optional<TestStore> store_;
  Writes* writes_ = nullptr;
};

// Otherwise somebody could find that a key is gone which is there again after a power cut.
TEST_F(WaitingEvictionTest, TheItemStaysUntilItsRecordIsSafe) {
  const std::string value(1'000, 'v');
  Fill(value);
  EXPECT_EQ(StatusOf(Put("new", value)), ReplyStatus::kTryAgain);
  const std::vector<std::string> going = Deleted();
  ASSERT_GT(going.size(), 10u);
  EXPECT_TRUE(writes_->evictions_wait());
  for (const std::string& key : going) EXPECT_EQ(Seen(key), value) << key;
  PublishAll();
  EXPECT_FALSE(writes_->evictions_wait());
  for (const std::string& key : going) EXPECT_EQ(Seen(key), std::nullopt) << key;
  EXPECT_EQ(StatusOf(Put("new", value)), ReplyStatus::kOk);
  EXPECT_EQ(store_->Stats().refused_heap_full, 0u) << "it was only put off";
}

// Otherwise a client could take it for certain that a key is gone, and then it is there again.
TEST_F(WaitingEvictionTest, AnAnswerThatTellsOfItWaits) {
  const std::string value(1'000, 'v');
  Fill(value);
  const std::string going = Deleted().front();
  const Decided deleted = writes_->Delete(going, {}, At(kNowMs));
  EXPECT_EQ(StatusOf(deleted), ReplyStatus::kNotFound);
  EXPECT_GT(deleted.ticket, writes_->published());
  PublishAll();
  EXPECT_GE(writes_->published(), deleted.ticket);
  EXPECT_EQ(writes_->Delete(going, {}, At(kNowMs)).ticket, 0u);
}

// A write behind it is one of a key without an item. It gets the block of a short item, whose
// neighbour keeps their slab.
TEST_F(WaitingEvictionTest, WritesAreDecidedAgainstIt) {
  const std::string value(1'000, 'v');
  Put("short", "x");
  Put("other", "x");
  Fill(value);
  writes_->Delete("short", {}, At(kNowMs));
  PublishAll();
  while (StatusOf(Put("more" + std::to_string(sink_.end), value)) == ReplyStatus::kOk) {
  }
  ASSERT_TRUE(writes_->evictions_wait());
  const std::string going = sink_.changes.back().substr(7);
  EXPECT_EQ(StatusOf(writes_->Touch(going, Expiry(), {}, At(kNowMs))), ReplyStatus::kNotFound);
  const Decided put = writes_->Put(going, "y", {}, {.only_if_absent = true}, At(kNowMs));
  EXPECT_EQ(StatusOf(put), ReplyStatus::kOk);
  EXPECT_EQ(Seen(going), value);
  PublishAll();
  EXPECT_EQ(Seen(going), "y");
}

TEST_F(WaitingEvictionTest, ALockThatIsHeldSparesTheItem) {
  const std::string value(1'000, 'v');
  const int keys = Fill(value);
  PublishAll();
  for (int i = 0; i < keys; ++i) store_->LockWordOf("key" + std::to_string(i)) = 7;
  const size_t before = sink_.changes.size();
  for (int i = 0; i < 50; ++i) Put("new" + std::to_string(i), value);
  for (size_t i = before; i < sink_.changes.size(); ++i) {
    EXPECT_FALSE(sink_.changes[i].starts_with("delete key")) << sink_.changes[i];
  }
}

// Its item is about to be replaced, so to evict it makes no room.
TEST_F(WaitingEvictionTest, AKeyWithAWaitingWriteIsSpared) {
  const std::string value(1'000, 'v');
  Fill(value);
  PublishAll();
  std::vector<std::string> changed;
  for (int i = 0; i < 200; ++i) {
    const std::string key = "key" + std::to_string(i);
    if (Seen(key) && StatusOf(Put(key, "new")) == ReplyStatus::kOk) changed.push_back(key);
  }
  ASSERT_GT(changed.size(), 20u);
  for (int i = 0; i < 100; ++i) Put("other" + std::to_string(i), value);
  ASSERT_TRUE(writes_->evictions_wait());
  PublishAll();
  for (const std::string& key : changed) EXPECT_EQ(Seen(key), "new") << key;
  for (const std::string& key : Deleted()) EXPECT_EQ(Seen(key), std::nullopt) << key;
}

TEST_F(WaitingEvictionTest, ALongValueFindsRoomWhenWhatWasThereHasGone) {
  Make(4 << 20);
  Fill(std::string(1'000, 'v'));
  PublishAll();
  const uint64_t before = store_->Stats().items_evicted;
  const std::string lengthy(300'000, 'l');
  int puts = 1;
  for (; StatusOf(Put("long", lengthy)) == ReplyStatus::kTryAgain; ++puts) {
    ASSERT_LT(puts, 20);
    PublishAll();
  }
  PublishAll();
  EXPECT_EQ(Seen("long"), lengthy);
  EXPECT_GT(puts, 1);
  EXPECT_LT(store_->Stats().items_evicted - before, 600u) << "it needs the room of some 290";
}

// What is cleared for a long value is not kept from others for ever, if that does not come again.
TEST_F(WaitingEvictionTest, ASpanThatNobodyAsksForIsGivenUp) {
  Make(4 << 20);
  const std::string value(1'000, 'v');
  Fill(value);
  PublishAll();
  EXPECT_EQ(StatusOf(Put("long", std::string(300'000, 'l'))), ReplyStatus::kTryAgain);
  PublishAll();
  EXPECT_EQ(StatusOf(Put("longer", std::string(400'000, 'l'))), ReplyStatus::kTryAgain);
  for (int i = 0; i < 200; ++i) {
    (*store_)->Tidy(At(kNowMs));
    PublishAll();
  }
  const uint64_t evicted = store_->Stats().items_evicted;
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(StatusOf(Put("short" + std::to_string(i), value)), ReplyStatus::kOk) << i;
    PublishAll();
  }
  EXPECT_LT(store_->Stats().items_evicted - evicted, 20u) << "the room is not there";
}

TEST_F(WaitingEvictionTest, AValueThatNeverFitsIsRefused) {
  Fill(std::string(1'000, 'v'));
  EXPECT_EQ(StatusOf(Put("long", std::string(2 << 20, 'l'))), ReplyStatus::kHeapFull);
}

// Nothing waits that would leave room. But the values that are being brought end.
TEST_F(WaitingEvictionTest, AWriteThatFindsNoRoomBetweenValuesThatAreBroughtIsPutOff) {
  std::vector<Reservation> brought;
  for (const uint32_t bytes : {40'000, 1'000}) {
    while (auto reservation = (*store_)->Reserve("key", bytes, At(kNowMs))) {
      brought.push_back(*reservation);
    }
  }
  ASSERT_FALSE(writes_->evictions_wait());
  const std::string value(1'000, 'v');
  EXPECT_EQ(StatusOf(Put("key", value)), ReplyStatus::kTryAgain);
  EXPECT_EQ(StatusOf(Put("key", std::string(40'000, 'l'))), ReplyStatus::kTryAgain);
  const Change change{.kind = Change::Kind::kPut, .version = 5, .key = "key", .value = value};
  EXPECT_EQ(StatusOf(writes_->Bring(change, Writes::Brings::kChange, At(kNowMs))),
            ReplyStatus::kTryAgain);
  EXPECT_EQ(store_->Stats().refused_heap_full, 0u);
  for (const Reservation& reservation : brought) (*store_)->Abandon(reservation);
  EXPECT_EQ(StatusOf(Put("key", value)), ReplyStatus::kOk);
}

// It is undone, as there is no slot when it is published. Its client sends it again.
TEST_F(WaitingEvictionTest, AWriteWithoutASlotWhoseNeighboursAreLockedIsPutOff) {
  Make(1 << 20, /*index_slots=*/64);
  std::optional<WaitingChanges::Undone> undone;
  int keys = 0;
  for (; !undone && keys < 2'000; ++keys) {
    const std::string key = "key" + std::to_string(keys);
    store_->LockWordOf(key) = 1;
    const Decided put = Put(key, "value");
    ASSERT_EQ(StatusOf(put), ReplyStatus::kOk);
    PublishAll();
    undone = writes_->TakeUndone(put.ticket);
  }
  ASSERT_TRUE(undone);
  EXPECT_EQ(undone->status, ReplyStatus::kTryAgain);
  EXPECT_EQ(store_->Stats().refused_index_full, 0u);
}

// The write is undone, its client sends it again, and then there is a slot.
TEST_F(WaitingEvictionTest, AWriteWithoutASlotIsDecidedAgain) {
  Make(1 << 20, /*index_slots=*/64);
  int undone = 0;
  for (int i = 0; i < 1'000; ++i) {
    const std::string key = "key" + std::to_string(i);
    for (int tries = 0;; ++tries) {
      ASSERT_LT(tries, 5) << key;
      const Decided put = Put(key, "value");
      ASSERT_EQ(StatusOf(put), ReplyStatus::kOk);
      PublishAll();
      const auto it = writes_->TakeUndone(put.ticket);
      if (!it) break;
      ++undone;
      EXPECT_EQ(it->status, ReplyStatus::kTryAgain);
      PublishAll();  // the eviction, and the deletion of the write that is undone
    }
    EXPECT_EQ(Seen(key), "value");
  }
  EXPECT_GT(undone, 20);
}

// Keeps some memory free without a write that asks for it, and counts what goes as free.
TEST_F(WaitingEvictionTest, TheBackgroundEvictsAheadAndNotMore) {
  const std::string value(1'000, 'v');
  Fill(value);
  PublishAll();
  const uint64_t before = store_->Stats().items_evicted;
  for (int i = 0; i < 50; ++i) (*store_)->Tidy(At(kNowMs));
  const uint64_t evicted = store_->Stats().items_evicted - before;
  EXPECT_LT(evicted, 60u) << "each step evicted anew what did not go";
  PublishAll();
  EXPECT_LE(store_->Stats().heap_bytes,
            store_->Stats().heap_total - store_->Stats().eviction_watermark + 2'000);
}

// A primary's store counts as full before its memory is used up. The background must know.
TEST_F(WaitingEvictionTest, TheBackgroundEvictsAheadOfWhatIsKeptFree) {
  Make(8 << 20);
  (*store_)->KeepRoom();
  const std::string value(1'000, 'v');
  Fill(value);
  const uint64_t by_writes = store_->Stats().evicted_by_writes;
  const auto tidy = [&] {
    for (int i = 0; i < 3; ++i) {
      (*store_)->Tidy(At(kNowMs));
      PublishAll();
    }
  };
  tidy();
  for (int i = 0; i < 300; ++i, tidy()) Put("more" + std::to_string(i), value);
  EXPECT_EQ(store_->Stats().evicted_by_writes, by_writes);
}

// Writers, the background and a disk, each in its thread. A sink of several threads needs a mutex.
class SharedChanges : public RecordedChanges {
 public:
  std::optional<ChangePlace> Reserve(const Change& change) override {
    const std::lock_guard lock(mutex_);
    auto place = RecordedChanges::Reserve(change);
    safe.store(end, std::memory_order_release);
    return place;
  }
  std::atomic<uint64_t> safe{0};

 private:
  std::mutex mutex_;
};

TEST_F(WaitingEvictionTest, WritersAndTheBackgroundEvictBesideEachOther) {
  SharedChanges changes;
  TestStore store(2 << 20, 0, false, TestStore::OnFull::kEvict);
  store->UseSink(&changes);
  Writes& writes = store.writes();
  writes.WaitFor(&changes);
  constexpr int kWriters = 3;
  constexpr int kPuts = 1'500;
  std::atomic<int> running{kWriters};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int writer = 0; writer < kWriters; ++writer) {
    threads.emplace_back([&, writer] {
      for (int i = 0; i < kPuts; ++i) {
        const std::string key = std::to_string(writer) + " " + std::to_string(i);
        const std::string value(i % 100 == 0 ? 40'000 : 50 + i % 1'000, 'v');
        ReplyStatus status = ReplyStatus::kTryAgain;
        while (true) {
          status = writes.Put(key, value, {}, {}, At(kNowMs)).outcome.status;
          if (status != ReplyStatus::kTryAgain) break;
          std::this_thread::yield();
        }
        failed += status != ReplyStatus::kOk;
      }
      --running;
    });
  }
  threads.emplace_back([&] {
    for (; running > 0; std::this_thread::yield()) store->Tidy(At(kNowMs));
  });
  for (; running > 0; std::this_thread::yield()) {
    writes.Publish(changes.safe.load(std::memory_order_acquire));
  }
  for (std::thread& thread : threads) thread.join();
  writes.Publish(changes.safe.load(std::memory_order_acquire));
  EXPECT_EQ(failed, 0);
  EXPECT_FALSE(writes.evictions_wait());
  sink_.changes = changes.changes;
  const std::vector<std::string> deleted = Deleted();
  EXPECT_GT(deleted.size(), 500u);
  for (const std::string& key : deleted) EXPECT_EQ(store.Get(key, kNowMs), std::nullopt) << key;
}

}  // namespace
}  // namespace gannet
