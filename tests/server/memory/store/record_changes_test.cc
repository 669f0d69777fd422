// What the store tells a sink of its changes, and what it does if the sink refuses.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "server/memory/store/recorded_updates.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

// Keeps what it is told, or refuses it.
class TestSink : public ChangeSink {
 public:
  struct Kept {
    Change change;
    std::string key;
    std::string value;
  };
  bool TakesUpdates() const override { return !refuses; }
  bool Record(const Change& change) override {
    if (refuses) return false;
    if (on_record) on_record();
    kept.push_back({change, std::string(change.key), std::string(change.value)});
    return true;
  }
  bool refuses = false;
  std::function<void()> on_record;
  std::vector<Kept> kept;
};

class RecordChangesTest : public testing::Test {
 protected:
  RecordChangesTest() { store_->UseSink(&sink_); }
  const TestSink::Kept& Last() const { return sink_.kept.back(); }

  TestStore store_{4 << 20};
  TestSink sink_;
};

constexpr ChangeOrigin kOrigin = {.session_token = 7, .sequence = 8, .opcode = 2};

TEST_F(RecordChangesTest, RecordsAPutWithAllThatMakesTheItem) {
  WriteConditions conditions;
  conditions.origin = &kOrigin;
  const WriteOutcome put = store_.Put("key", "value", {3, ExpiresAt(1'000)}, conditions, At(1));
  ASSERT_EQ(put.status, ReplyStatus::kOk);
  ASSERT_EQ(sink_.kept.size(), 1u);
  EXPECT_EQ(Last().key, "key");
  EXPECT_EQ(Last().value, "value");
  const Change& change = Last().change;
  EXPECT_EQ(change.kind, Change::Kind::kPut);
  EXPECT_EQ(change.version, put.version);
  EXPECT_EQ(change.flags, 3u);
  EXPECT_EQ(change.expiry.ms(), 1'000u);
  EXPECT_EQ(change.session_token, 7u);
  EXPECT_EQ(change.sequence, 8u);
  EXPECT_EQ(change.opcode, 2u);
}

// Updates that are recorded together, as a worker does them.
class RecordedUpdatesTest : public RecordChangesTest {
 protected:
  bool Add(std::string_view key, std::string_view value, Store::Update* update = nullptr) {
    Store::Guess guess;
    store_->GuessBucket(key, &guess);
    store_->GuessItem(&guess);
    Store::Update done;
    const bool added = updates_.Add(
        guess, key, value, [] { return 9u; }, /*session_token=*/7, /*sequence=*/8, &done);
    if (update != nullptr) *update = done;
    return added;
  }
  // Keys whose locks are different ones, and their items.
  std::vector<std::string> KeysApart(size_t count) {
    std::vector<std::string> keys;
    for (int i = 0; keys.size() < count; ++i) {
      const std::string key = "key" + std::to_string(i);
      store_.Put(key, "first");
      if (Add(key, "again")) keys.push_back(key);
    }
    updates_.Make();
    sink_.kept.clear();
    return keys;
  }

  Store::RecordedUpdates updates_{&*store_};
};

TEST_F(RecordedUpdatesTest, RecordsAnUpdateOrLeavesItUndone) {
  store_.Put("key", "first");
  Store::Update done;
  ASSERT_TRUE(Add("key", "other", &done));
  updates_.Make();
  ASSERT_EQ(sink_.kept.size(), 2u);
  EXPECT_EQ(Last().key, "key");
  EXPECT_EQ(Last().value, "other");
  EXPECT_EQ(Last().change.version, done.version);
  EXPECT_EQ(Last().change.flags, 9u);
  EXPECT_EQ(Last().change.expiry.ms(), 0u);
  EXPECT_EQ(Last().change.session_token, 7u);
  EXPECT_EQ(Last().change.sequence, 8u);
  EXPECT_EQ(Last().change.opcode, static_cast<uint8_t>(Opcode::kPut));
  sink_.refuses = true;
  EXPECT_FALSE(Add("key", "third"));
  updates_.Make();
  EXPECT_EQ(store_.Get("key"), "other");
}

TEST_F(RecordedUpdatesTest, WritesNoItemBeforeAllAreRecorded) {
  const std::vector<std::string> keys = KeysApart(3);
  std::vector<const char*> values;
  for (const std::string& key : keys) {
    Store::Update update;
    ASSERT_TRUE(Add(key, "after", &update));
    values.push_back(reinterpret_cast<const char*>(store_.region().data()) +
                     Slot(update.slot).offset() + sizeof(ItemHeader));
  }
  size_t recorded = 0;
  sink_.on_record = [&] {
    ++recorded;
    for (const char* const value : values) EXPECT_EQ(std::string_view(value, 5), "again");
  };
  updates_.Make();
  EXPECT_EQ(recorded, 3u);
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(sink_.kept[i].key, keys[i]);
    EXPECT_EQ(store_.Get(keys[i]), "after");
  }
}

// It would wait for the lock that it holds.
TEST_F(RecordedUpdatesTest, AnotherUpdateOfAKeyComesAfterTheFirst) {
  store_.Put("key", "first");
  ASSERT_TRUE(Add("key", "third"));
  EXPECT_FALSE(Add("key", "fifth"));
  updates_.Make();
  EXPECT_EQ(store_.Get("key"), "third");
  EXPECT_TRUE(Add("key", "fifth"));
  updates_.Make();
  EXPECT_EQ(store_.Get("key"), "fifth");
}

TEST_F(RecordedUpdatesTest, WhatIsNoUpdateHoldsNoLock) {
  store_.Put("key", "first");
  EXPECT_FALSE(Add("key", "longer than that"));
  EXPECT_FALSE(Add("none", "first"));
  updates_.Make();
  EXPECT_EQ(sink_.kept.size(), 1u);
  EXPECT_EQ(store_.Put("key", "by another way").status, ReplyStatus::kOk);
}

TEST_F(RecordedUpdatesTest, TakesSoManyAndNoMore) {
  TestStore large(64 << 20);
  large->UseSink(&sink_);
  Store::RecordedUpdates updates(&*large);
  size_t added = 0;
  for (int i = 0; i < 1'000; ++i) {
    const std::string key = "key" + std::to_string(i);
    large.Put(key, std::string(900, 'a'));
    Store::Guess guess;
    large->GuessBucket(key, &guess);
    large->GuessItem(&guess);
    Store::Update update;
    added += updates.Add(
        guess, key, std::string(900, 'b'), [] { return 0u; }, 7, 8, &update);
    if (added == Store::RecordedUpdates::kMax) break;
  }
  ASSERT_EQ(added, Store::RecordedUpdates::kMax);
  Store::Guess guess;
  large->GuessBucket("key0", &guess);
  large->GuessItem(&guess);
  Store::Update update;
  EXPECT_FALSE(updates.Add(
      guess, "key0", std::string(900, 'c'), [] { return 0u; }, 7, 8, &update));
  updates.Make();
  EXPECT_EQ(large.Get("key0"), std::string(900, 'b'));
}

TEST_F(RecordChangesTest, RecordsEveryWayToWrite) {
  const std::string lengthy(5'000, 'l');
  const std::string huge(200'000, 'h');
  const std::string keys[] = {"inserted", "lengthy", "huge", "reserved"};
  store_.Put(keys[0], "1");
  EXPECT_EQ(Last().value, "1");
  store_.Put(keys[0], "2");  // in place
  EXPECT_EQ(Last().value, "2");
  store_.Put(keys[0], std::string(300, 'x'));  // in another block
  EXPECT_EQ(Last().value, std::string(300, 'x'));
  store_.Put(keys[1], lengthy);
  EXPECT_EQ(Last().value, lengthy);
  store_.Put(keys[2], huge);
  EXPECT_EQ(Last().value, huge);
  store_.PutReserved(keys[3], lengthy);
  EXPECT_EQ(Last().key, keys[3]);
  EXPECT_EQ(Last().value, lengthy);
  store_.Append(keys[3], "!", Writes::End::kBack, {}, {}, At(1));
  EXPECT_EQ(Last().value, lengthy + "!");
  store_.Append(keys[0], "<", Writes::End::kFront, {}, {}, At(1));
  EXPECT_EQ(Last().value, "<" + std::string(300, 'x'));
  store_.Increment("n", {.delta = -5, .initial = 2}, {}, {}, At(1));
  EXPECT_EQ(Last().value, "-3");
  EXPECT_EQ(static_cast<int64_t>(Last().change.number), -3);
  store_.Touch(keys[2], 77, {}, At(1));
  EXPECT_EQ(Last().value, huge);
  EXPECT_EQ(Last().change.expiry.ms(), 77u);
  const uint64_t version = Last().change.version;
  store_.Delete(keys[2]);
  EXPECT_EQ(Last().key, keys[2]);
  EXPECT_EQ(Last().change.kind, Change::Kind::kDelete);
  EXPECT_GT(Last().change.version, version);
  const size_t before = sink_.kept.size();
  for (uint64_t position = 0; (position = store_.FlushSome(position).next) != 0;) {
  }
  EXPECT_EQ(sink_.kept.size(), before + 4) << "a flush deletes what is left: 3 keys and n";
  EXPECT_EQ(store_.Stats().items, 0u);
}

TEST_F(RecordChangesTest, RecordsNothingThatIsRefusedOrChangesNothing) {
  store_.Put("a", "1");
  WriteConditions absent;
  absent.only_if_absent = true;
  EXPECT_EQ(store_.Put("a", "2", {}, absent, At(1)).status, ReplyStatus::kExists);
  EXPECT_EQ(store_.Delete("none").status, ReplyStatus::kNotFound);
  EXPECT_EQ(sink_.kept.size(), 1u);
}

TEST_F(RecordChangesTest, ChangesNothingThatTheSinkRefuses) {
  const std::string lengthy(5'000, 'l');
  store_.Put("short", "1");
  store_.Put("long", lengthy);
  const StatsReply before = store_.Stats();
  sink_.refuses = true;
  constexpr auto kRefused = ReplyStatus::kDiskRefuses;
  EXPECT_EQ(store_.Put("short", "2").status, kRefused);
  EXPECT_EQ(store_.Put("short", std::string(300, 'x')).status, kRefused);
  EXPECT_EQ(store_.Put("new", "n").status, kRefused);
  EXPECT_EQ(store_.Put("new", lengthy).status, kRefused);
  EXPECT_EQ(store_.PutReserved("new", lengthy).status, kRefused);
  EXPECT_EQ(store_.PutReserved("long", lengthy).status, kRefused);
  EXPECT_EQ(store_.Append("short", "!", Writes::End::kBack, {}, {}, At(1)).status, kRefused);
  EXPECT_EQ(store_.Append("long", "!", Writes::End::kBack, {}, {}, At(1)).status, kRefused);
  EXPECT_EQ(store_.Increment("short", {.delta = 1, .initial = 0}, {}, {}, At(1)).status, kRefused);
  EXPECT_EQ(store_.Touch("short", 7, {}, At(1)).status, kRefused);
  EXPECT_EQ(store_.Touch("long", 7, {}, At(1)).status, kRefused);
  EXPECT_EQ(store_.Delete("short").status, kRefused);
  Writes::Flushed flushed{.next = 0};
  do {
    flushed = store_.FlushSome(flushed.next);
  } while (flushed.next != 0 && !flushed.refused);
  EXPECT_TRUE(flushed.refused);
  EXPECT_EQ(flushed.removed, 0u);
  const StatsReply after = store_.Stats();
  EXPECT_EQ(after.items, before.items);
  EXPECT_EQ(after.heap_bytes, before.heap_bytes) << "a block was lost";
  EXPECT_EQ(store_.Get("short"), "1");
  EXPECT_EQ(store_.Get("long"), lengthy);
  EXPECT_EQ(store_.Get("new"), std::nullopt);
  sink_.refuses = false;
  EXPECT_EQ(store_.Put("new", "n").status, ReplyStatus::kOk);
  EXPECT_EQ(store_.Get("new"), "n");
}

TEST(RecordEvictionsTest, RecordsAnEvictionAsADeletion) {
  TestStore store(2 << 20, 0, false, TestStore::OnFull::kEvict);
  TestSink sink;
  store->UseSink(&sink);
  for (int i = 0; i < 3'000; ++i) {
    ASSERT_EQ(store.Put("key" + std::to_string(i), std::string(1'000, 'v')).status,
              ReplyStatus::kOk);
  }
  ASSERT_GT(store.Stats().items_evicted, 0u);
  std::map<std::string, std::string> said;
  for (const TestSink::Kept& kept : sink.kept) {
    if (kept.change.kind == Change::Kind::kPut) {
      said[kept.key] = kept.value;
    } else {
      EXPECT_EQ(said.erase(kept.key), 1u);
      EXPECT_EQ(kept.change.session_token, 0u);
    }
  }
  EXPECT_EQ(said.size(), store.Stats().items);
  for (const auto& [key, value] : said) EXPECT_EQ(store.Get(key), value);
}

TEST_F(RecordChangesTest, IsVisitedHomeByHome) {
  std::map<std::string, std::string> items;
  for (int i = 0; i < 1'000; ++i) {
    items["key" + std::to_string(i)] = std::to_string(i);
    store_.Put("key" + std::to_string(i), std::to_string(i));
  }
  std::map<std::string, std::string> visited;
  uint64_t position = 0;
  do {
    const auto next = store_->VisitHome(position, [&](const Change& item) {
      EXPECT_TRUE(visited.emplace(item.key, item.value).second) << item.key << " twice";
    });
    ASSERT_TRUE(next.has_value());
    position = *next;
  } while (position != 0);
  EXPECT_EQ(visited, items);
}

TEST(RestoreTest, MakesTheRecordedChangesAgain) {
  TestStore first(4 << 20);
  TestSink sink;
  first->UseSink(&sink);
  const std::string huge(200'000, 'h');
  first.Put("a", "1", {9, ExpiresAt(50'000)}, {}, At(1));
  first.Put("b", huge, {}, {}, At(1));
  first.Put("c", "gone", {}, {}, At(1));
  first.Append("a", "2", Writes::End::kBack, {}, {}, At(1));
  first.Delete("c");
  first.Put("d", "expires", {0, ExpiresAt(20)}, {}, At(1));
  TestStore second(4 << 20);
  for (const TestSink::Kept& kept : sink.kept) {
    Change change = kept.change;
    change.key = kept.key;
    change.value = kept.value;
    ASSERT_EQ(second->Apply(change, At(30)), ReplyStatus::kOk);
  }
  EXPECT_EQ(second.Stats().items, 2u);
  EXPECT_EQ(second.Get("b"), huge);
  std::string value(100, '\0');
  const ReadOutcome a = second->Get("a", std::as_writable_bytes(std::span(value)), At(30));
  EXPECT_EQ(value.substr(0, a.value_bytes), "12");
  EXPECT_EQ(a.attributes.flags, 9u);
  EXPECT_EQ(a.attributes.expiry.ms(), 50'000u);
  const ReadOutcome was = first->Get("a", std::as_writable_bytes(std::span(value)), At(30));
  EXPECT_EQ(a.version, was.version);
}

}  // namespace
}  // namespace gannet
