// Updates in place that wait: puts over an item without expiry, by a value of the same length.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "server/writes/stable_queue.h"
#include "server/writes/value_room.h"
#include "tests/server/memory/store/store_fixture.h"
#include "tests/server/writes/recorded_changes.h"
#include "tests/server/writes/some_update.h"

namespace gannet {
namespace {

using Decided = Writes::Decided;

class WaitingUpdateTest : public testing::Test {
 protected:
  void SetUp() override {
    (*store_).UseSink(&sink_);
    writes_.WaitFor(&sink_);
    ASSERT_EQ(StatusOf(Put("key", "10")), ReplyStatus::kOk);
    ASSERT_EQ(StatusOf(Put("other", "ab")), ReplyStatus::kOk);
    PublishAll();
  }
  Decided Put(std::string_view key, std::string_view value,
              const WriteConditions& conditions = {}) {
    return writes_.Put(key, value, {}, conditions, At(kNowMs));
  }
  std::optional<Decided> Update(std::string_view key, std::string_view value, uint32_t flags = 0) {
    return TryUpdate(*store_, writes_, key, value, flags);
  }
  std::optional<std::string> Seen(std::string_view key) { return store_.Get(key, kNowMs); }
  void PublishAll() { writes_.Publish(sink_.end); }
  static ReplyStatus StatusOf(const Decided& decided) { return decided.outcome.status; }

  static constexpr uint64_t kNowMs = 1'000;
  RecordedChanges sink_;
  TestStore store_{1 << 20};
  Writes& writes_ = store_.writes();
};

// In memory that the recorder gives, as a group does with its ring, or in the room.
class UpdateEitherWayTest : public WaitingUpdateTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    WaitingUpdateTest::SetUp();
    sink_.gives_memory = GetParam();
  }
};
INSTANTIATE_TEST_SUITE_P(, UpdateEitherWayTest, testing::Bool());

TEST_P(UpdateEitherWayTest, NobodySeesItBeforeItsRecordIsSafe) {
  const auto first = Update("key", "11", 7);
  const auto second = Update("other", "cd");
  ASSERT_TRUE(first && second);
  EXPECT_EQ(Seen("key"), "10");
  EXPECT_LT(writes_.published(), first->ticket);
  writes_.Publish(sink_.end - 1);
  EXPECT_EQ(writes_.published(), first->ticket);
  EXPECT_EQ(Seen("key"), "11");
  EXPECT_EQ(Seen("other"), "ab");
  PublishAll();
  EXPECT_EQ(Seen("other"), "cd");
  EXPECT_THAT(sink_.changes,
              testing::ElementsAre("put key", "put other", "update key", "update other"));
  std::string value(2, '\0');
  const ReadOutcome read =
      (*store_).Get("key", std::as_writable_bytes(std::span(value)), At(kNowMs));
  EXPECT_EQ(read.version, first->outcome.version);
  EXPECT_EQ(read.attributes.flags, 7u);
}

TEST_P(UpdateEitherWayTest, TheItemStaysWhereItIs) {
  const auto update = Update("key", "11");
  PublishAll();
  const auto again = Update("key", "12");
  ASSERT_TRUE(update && again);
  EXPECT_EQ(update->outcome.slot, again->outcome.slot);
}

// It is published by where the item was, or else by where it is.
TEST(MovedUpdateTest, IsPublishedWhereverTheItemWent) {
  RecordedChanges sink;
  TestStore store(16 << 20, 2000, /*index_grows=*/true);
  Writes& writes = store.writes();
  ASSERT_EQ(store.Put("key", "10").status, ReplyStatus::kOk);
  store->UseSink(&sink);
  writes.WaitFor(&sink);
  ASSERT_TRUE(TryUpdate(*store, writes, "key", "11"));
  ASSERT_TRUE(TryUpdate(*store, writes, "key", "12"));
  const uint64_t safe = sink.end;
  for (uint64_t i = 0; store->index_generation() < 2 || store->growing(); ++i) {
    const std::string key = "filler" + std::to_string(i);
    ASSERT_EQ(store->Apply({.version = 1000 + i, .key = key, .value = "v"}, At(1)),
              ReplyStatus::kOk);
    store->Tidy(At(1));
  }
  EXPECT_EQ(store.Get("key"), "10");
  writes.Publish(safe);
  EXPECT_EQ(store.Get("key"), "12");
}

TEST_P(UpdateEitherWayTest, UpdatesOfAKeyStack) {
  for (int i = 20; i < 90; ++i) ASSERT_TRUE(Update("key", std::to_string(i)));
  EXPECT_EQ(Seen("key"), "10");
  writes_.Publish(sink_.end - 1);
  EXPECT_EQ(Seen("key"), "88");
  PublishAll();
  EXPECT_EQ(Seen("key"), "89");
}

TEST_P(UpdateEitherWayTest, OtherWritesAreDecidedAgainstIt) {
  const auto update = Update("key", "41", 9);
  ASSERT_TRUE(update);
  EXPECT_EQ(StatusOf(Put("key", "x", {.only_if_absent = true})), ReplyStatus::kExists);
  EXPECT_EQ(StatusOf(Put("key", "x", {.only_if_version = 0})), ReplyStatus::kVersionMismatch);
  const Decided sum = writes_.Increment("key", {.delta = 1, .initial = 0}, {}, {}, At(kNowMs));
  EXPECT_EQ(sum.outcome.number, 42);
  EXPECT_GT(sum.outcome.version, update->outcome.version);
  EXPECT_EQ(StatusOf(writes_.Append("key", "0", Writes::End::kBack, {}, {}, At(kNowMs))),
            ReplyStatus::kOk);
  EXPECT_EQ(Seen("key"), "10");
  PublishAll();
  EXPECT_EQ(Seen("key"), "420");
  std::string value(3, '\0');
  EXPECT_EQ(
      (*store_).Get("key", std::as_writable_bytes(std::span(value)), At(kNowMs)).attributes.flags,
      9u);
}

TEST_P(UpdateEitherWayTest, ARefusalThatTellsOfItWaitsForIt) {
  const auto update = Update("key", "11");
  const Decided refused = Put("key", "x", {.only_if_absent = true});
  EXPECT_GT(refused.ticket, update->ticket);
  writes_.Publish(sink_.end - 1);
  EXPECT_LT(writes_.published(), refused.ticket);
  PublishAll();
  EXPECT_GE(writes_.published(), refused.ticket);
  EXPECT_EQ(writes_.TakeUndone(refused.ticket), std::nullopt);
}

TEST_P(UpdateEitherWayTest, ComesBehindNoOtherKindOfWrite) {
  ASSERT_GT(writes_.Delete("key", {}, At(kNowMs)).ticket, 0u);
  EXPECT_FALSE(Update("key", "11")) << "there is no item then";
  ASSERT_GT(Put("other", "longer").ticket, 0u);
  EXPECT_FALSE(Update("other", "cd")) << "the item has another length then";
  PublishAll();
  EXPECT_EQ(Seen("key"), std::nullopt);
  EXPECT_TRUE(Update("other", "LONGER"));
  PublishAll();
  EXPECT_EQ(Seen("other"), "LONGER");
}

TEST_P(UpdateEitherWayTest, IsOnlyForItemsThatItCannotFailFor) {
  EXPECT_FALSE(Update("nobody", "11"));
  EXPECT_FALSE(Update("key", "111"));
  EXPECT_EQ(StatusOf(writes_.Put("key", "12", {.expiry = ExpiresAt(kNowMs + 10)}, {}, At(kNowMs))),
            ReplyStatus::kOk);
  PublishAll();
  EXPECT_FALSE(Update("key", "13")) << "it may expire meanwhile";
  sink_.refuses = true;
  EXPECT_FALSE(Update("other", "cd"));
  sink_.refuses = false;
  PublishAll();
  EXPECT_EQ(Seen("key"), "12");
  EXPECT_EQ(Seen("other"), "ab");
}

// Many keys share each entry of WaitingKeys, and each hash chain has other keys in it.
TEST_P(UpdateEitherWayTest, FindsEachKeysLastUpdateAmongMany) {
  constexpr int kKeys = 2'000;
  for (int i = 0; i < kKeys; ++i) Put("k" + std::to_string(i), "1");
  PublishAll();
  int updated = 0;
  for (int round = 2; round < 5; ++round) {
    for (int i = 0; i < kKeys; ++i) {
      updated += Update("k" + std::to_string(i), std::to_string(round)).has_value();
    }
  }
  EXPECT_GT(updated, 2 * kKeys) << "most items lie where they are guessed";
  for (int i = 0; i < kKeys; ++i) {
    const Decided sum =
        writes_.Increment("k" + std::to_string(i), {.delta = 1, .initial = 0}, {}, {}, At(kNowMs));
    ASSERT_THAT(sum.outcome.number, testing::AnyOf(5, 2)) << i;
  }
  PublishAll();
  EXPECT_THAT(Seen("k0"), testing::AnyOf("5", "2"));
}

// What the room has is given back although others are in the queue, which need none.
TEST_F(WaitingUpdateTest, RoomIsFoundAgainBesideUpdatesThatNeedNone) {
  const std::string value(900, 'v');
  Put("key", value);
  PublishAll();
  for (size_t i = 0; i < 4 * ValueRoom::kBytes / value.size(); ++i) {
    sink_.gives_memory = i % 3 != 0;
    ASSERT_TRUE(Update("key", value)) << i;
    if (i % 100 == 0) PublishAll();
  }
}

TEST_F(WaitingUpdateTest, DoesNotWaitForAKeyInALane) {
  {
    const Store::Locked key(*store_, (*store_).HashOf("key"), "key", At(kNowMs));
    EXPECT_FALSE(TryUpdateInLane(*store_, writes_, "key", "11"));
  }
  EXPECT_TRUE(TryUpdateInLane(*store_, writes_, "key", "11"));
}

TEST_F(WaitingUpdateTest, AlonePlacesItAsALaneDoes) {
  for (const bool gives_memory : {false, true}) {
    sink_.gives_memory = gives_memory;
    ASSERT_TRUE(TryUpdateInLane(*store_, writes_, "key", "12", 0, {}, /*alone=*/true));
    PublishAll();
    EXPECT_EQ(Seen("key"), "12");
    ASSERT_TRUE(TryUpdateInLane(*store_, writes_, "key", "11"));
    PublishAll();
  }
}

TEST_F(WaitingUpdateTest, IsRefusedIfTheRoomIsFull) {
  const std::string value(900, 'v');
  Put("key", value);
  PublishAll();
  size_t updates = 0;
  while (Update("key", value)) ++updates;
  EXPECT_GT(updates * (value.size() + 3), ValueRoom::kBytes * 9 / 10);
  EXPECT_LE(updates * (value.size() + 3), ValueRoom::kBytes);
  EXPECT_EQ(StatusOf(Put("key", std::string(900, 'w'))), ReplyStatus::kOk) << "the other path";
  PublishAll();
  EXPECT_EQ(Seen("key"), std::string(900, 'w'));
  EXPECT_TRUE(Update("key", value));
  PublishAll();
  EXPECT_EQ(Seen("key"), value);
}

// Workers update and publish at the same time, each its own keys and one that all share.
TEST_F(WaitingUpdateTest, WorkersUpdateAndPublishBesideEachOther) {
  constexpr int kWorkers = 3;
  constexpr int kUpdates = 3'000;
  for (int i = 0; i < kWorkers; ++i) Put("own" + std::to_string(i), "0000");
  Put("all", "0000");
  PublishAll();
  std::vector<std::thread> workers;
  std::atomic<int> wrong{0};
  for (int i = 0; i < kWorkers; ++i) {
    workers.emplace_back([&, i] {
      const std::string own = "own" + std::to_string(i);
      for (int n = 1000; n < 1000 + kUpdates; ++n) {
        const auto mine = Update(own, std::to_string(n));
        const auto ours = Update("all", std::to_string(n));
        if (!mine || !ours) return void(++wrong);
        writes_.Publish(sink_.end);
        wrong += writes_.published() < ours->ticket;
        wrong += Seen(own) != std::to_string(n);
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(Seen("all"), std::to_string(1000 + kUpdates - 1));
}

TEST(ValueRoomTest, APieceDoesNotCrossTheEnd) {
  ValueRoom room;
  constexpr size_t kPiece = 1000;
  const std::byte* const begin = room.Open(kPiece).data();
  size_t in_use = 0;
  uint64_t given_up = 0;
  for (int i = 1; i <= 5'000; ++i) {
    std::span<std::byte> memory = room.Open(kPiece);
    while (memory.empty()) {
      room.GiveUpTo(++given_up);
      in_use -= kPiece - given_up % 7;
      memory = room.Open(kPiece);
    }
    ASSERT_GE(memory.size(), kPiece);
    EXPECT_LE(static_cast<size_t>(memory.data() - begin) + memory.size(), ValueRoom::kBytes);
    room.Take(kPiece - i % 7, static_cast<uint64_t>(i));
    EXPECT_LE(in_use += kPiece - i % 7, ValueRoom::kBytes);
  }
  EXPECT_GT(given_up, 3'000u) << "it never went round";
}

TEST(ValueRoomTest, LendsNoMemoryThatIsTaken) {
  ValueRoom room;
  const std::byte* const first = room.Open(1).data();
  room.Take(ValueRoom::kBytes / 2, 1);
  EXPECT_EQ(room.Open(1).size(), ValueRoom::kBytes / 2);
  room.Take(ValueRoom::kBytes / 2, 2);
  EXPECT_TRUE(room.Open(1).empty());
  room.GiveUpTo(1);
  EXPECT_EQ(room.Open(1).data(), first);
  EXPECT_EQ(room.Open(1).size(), ValueRoom::kBytes / 2);
}

TEST(StableQueueTest, ElementsStayAndKeepTheirOrder) {
  StableQueue<int> queue;
  std::vector<const int*> places;
  int in = 0;
  int out = 0;
  for (int round = 0; round < 100; ++round) {
    for (int i = 0; i < 10 + round; ++i) {
      int& place = queue.PushBack();
      place = in++;
      places.push_back(&place);
    }
    for (size_t i = 0; i < queue.size(); ++i) {
      ASSERT_EQ(queue[i], out + static_cast<int>(i));
      ASSERT_EQ(&queue[i], places[static_cast<size_t>(out) + i]);
    }
    ASSERT_EQ(queue.back(), in - 1);
    const std::span<const int> run = queue.FirstRun();
    ASSERT_FALSE(run.empty());
    ASSERT_EQ(run.data(), &queue.front());
    ASSERT_EQ(&run.back(), &queue[run.size() - 1]);
    const int left = round % 3 == 0 ? 0 : 5 * round;
    for (; in - out > left; ++out) {
      ASSERT_EQ(queue.front(), out);
      queue.PopFront();
    }
  }
}

}  // namespace
}  // namespace gannet
