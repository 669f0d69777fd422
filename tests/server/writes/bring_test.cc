// Changes of another group, which come with their versions.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/writes/writes.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

constexpr uint64_t kBringMs = 1'000;
constexpr size_t kBringMegabyte = 1 << 20;

// A change that owns its bytes.
struct OwnChange {
  explicit OwnChange(const Change& given) : change(given), key(given.key), value(given.value) {}
  Change Get() const {
    Change whole = change;
    whole.key = key;
    whole.value = value;
    return whole;
  }
  Change change;
  std::string key;
  std::string value;
};

// Keeps all changes; their positions are 1, 2, 3 ...
struct KeptChanges : ChangeSink, ChangeRecorder {
  std::optional<ChangePlace> Reserve(const Change& change) override {
    if (refuses) return std::nullopt;
    kept.emplace_back(change);
    return ChangePlace{.end = kept.size()};
  }
  std::optional<ChangePlace> ReserveUndo(const Change& deletion,
                                         std::span<const SessionRecord>) override {
    return Reserve(deletion);
  }
  void Fill(const Change&, const ChangePlace&) override {}
  bool BeginUpdates(UpdateLane*) override { return false; }
  void EndUpdates(UpdateLane*) override {}
  void RecordSession(const SessionRecord&) override {}
  bool Record(const Change& change) override { return Reserve(change).has_value(); }

  bool refuses = false;
  std::vector<OwnChange> kept;
};

Change BroughtPut(std::string_view key, std::string_view value, uint64_t version) {
  return {.version = version, .key = key, .value = value};
}
Change BroughtDeletion(std::string_view key, uint64_t version) {
  return {.kind = Change::Kind::kDelete, .version = version, .key = key};
}

// A server whose writes wait, as those of a group do, and its stream.
class Receiver {
 public:
  explicit Receiver(size_t region_bytes, uint64_t index_slots = 0,
                    TestStore::OnFull on_full = TestStore::OnFull::kReject)
      : store_(region_bytes, index_slots, /*index_grows=*/true, on_full) {
    store_->UseSink(&stream_);
    store_.writes().WaitFor(&stream_);
  }
  ReplyStatus Bring(const Change& change, Writes::Brings brings = Writes::Brings::kChange,
                    uint64_t now_ms = kBringMs) {
    decided_ = store_.writes().Bring(change, brings, At(now_ms));
    return decided_.outcome.status;
  }
  ReplyStatus BringWalked(const Change& put) { return Bring(put, Writes::Brings::kWalkedItem); }
  void Publish() { store_.writes().Publish(stream_.kept.size()); }
  std::optional<std::string> Get(std::string_view key, uint64_t now_ms = kBringMs) {
    return store_.Get(key, now_ms);
  }

  TestStore store_;
  KeptChanges stream_;
  Writes::Decided decided_;
};

TEST(BringTest, AnItemKeepsItsVersionFlagsAndExpiry) {
  Receiver receiver(kBringMegabyte);
  Change put = BroughtPut("key", "value", 5'000);
  put.flags = 7;
  put.expiry = ExpiresAt(kBringMs + 10);
  put.session_token = 3;
  put.sequence = 4;
  put.opcode = 1;
  put.item_checksum = 9;
  ASSERT_EQ(receiver.Bring(put), ReplyStatus::kOk);
  EXPECT_EQ(receiver.Get("key"), std::nullopt) << "it is not safe yet";
  EXPECT_GT(receiver.decided_.ticket, 0u);
  receiver.Publish();
  EXPECT_EQ(receiver.store_.writes().published(), receiver.decided_.ticket);
  EXPECT_EQ(receiver.Get("key"), "value");
  EXPECT_EQ(receiver.Get("key", kBringMs + 10), std::nullopt);
  ASSERT_EQ(receiver.stream_.kept.size(), 1u);
  Change wanted = put;
  wanted.session_token = wanted.sequence = wanted.item_checksum = wanted.opcode = 0;
  EXPECT_EQ(receiver.stream_.kept[0].Get(), wanted) << "the sessions are the other group's";
}

TEST(BringTest, VersionsThatAreGivenLaterAreHigher) {
  Receiver receiver(kBringMegabyte);
  ASSERT_EQ(receiver.Bring(BroughtPut("key", "value", 5'000)), ReplyStatus::kOk);
  EXPECT_EQ(receiver.store_->NextVersion(), 5'001u);
  ASSERT_EQ(receiver.Bring(BroughtPut("other", "value", 100)), ReplyStatus::kOk);
  EXPECT_EQ(receiver.store_->NextVersion(), 5'002u) << "they do not fall";
  ASSERT_EQ(receiver.Bring(BroughtDeletion("nobody", 6'000)), ReplyStatus::kNotFound);
  EXPECT_EQ(receiver.store_->NextVersion(), 6'001u) << "a deleted key has no item that would tell";
}

TEST(BringTest, AVersionIsRecordedWithoutAnItem) {
  Receiver receiver(kBringMegabyte);
  receiver.store_.Put("gannet.version.0", "a user's");
  ASSERT_EQ(receiver.store_.writes().RecordVersion(5'000, At(kBringMs)).outcome.status,
            ReplyStatus::kOk);
  EXPECT_EQ(receiver.store_->NextVersion(), 5'001u);
  receiver.Publish();
  EXPECT_EQ(receiver.Get("gannet.version.0"), "a user's");
  EXPECT_EQ(receiver.stream_.kept.back().Get(), BroughtDeletion("gannet.version.1", 5'000));
}

TEST(BringTest, TheHigherVersionWins) {
  Receiver receiver(kBringMegabyte);
  ASSERT_EQ(receiver.Bring(BroughtPut("key", "new", 20)), ReplyStatus::kOk);
  for (const bool published : {false, true}) {
    if (published) receiver.Publish();
    EXPECT_EQ(receiver.Bring(BroughtPut("key", "old", 19)), ReplyStatus::kExists);
    EXPECT_EQ(receiver.Bring(BroughtPut("key", "new", 20)), ReplyStatus::kExists);
    EXPECT_EQ(receiver.Bring(BroughtPut("key", std::string(10'000, 'o'), 19)),
              ReplyStatus::kExists);
    EXPECT_EQ(receiver.Bring(BroughtDeletion("key", 19)), ReplyStatus::kExists);
    EXPECT_EQ(receiver.BringWalked(BroughtPut("key", "newer", 21)), ReplyStatus::kExists);
    EXPECT_EQ(receiver.stream_.kept.size(), 1u);
  }
  EXPECT_EQ(receiver.Get("key"), "new");
  ASSERT_EQ(receiver.Bring(BroughtDeletion("key", 21)), ReplyStatus::kOk);
  EXPECT_EQ(receiver.BringWalked(BroughtPut("key", "again", 22)), ReplyStatus::kOk);
  receiver.Publish();
  EXPECT_EQ(receiver.Get("key"), "again");
}

TEST(BringTest, WhatHasExpiredDeletes) {
  Receiver receiver(kBringMegabyte);
  Change put = BroughtPut("key", "value", 5);
  put.expiry = ExpiresAt(kBringMs);
  EXPECT_EQ(receiver.Bring(put), ReplyStatus::kNotFound);
  ASSERT_EQ(receiver.Bring(BroughtPut("key", "value", 4)), ReplyStatus::kOk);
  ASSERT_EQ(receiver.Bring(put), ReplyStatus::kOk);
  receiver.Publish();
  EXPECT_EQ(receiver.Get("key", 1), std::nullopt);
  EXPECT_EQ(receiver.stream_.kept.back().Get(), BroughtDeletion("key", 5));
}

TEST(BringTest, LongValuesMayHave64MiB) {
  Receiver receiver(200 * kBringMegabyte);
  std::string value(kValueBytesMax + 1, 'v');
  EXPECT_EQ(receiver.Bring(BroughtPut("key", value, 5)), ReplyStatus::kInvalidArgument);
  EXPECT_EQ(receiver.Bring(BroughtPut("", "value", 5)), ReplyStatus::kInvalidArgument);
  value.pop_back();
  ASSERT_EQ(receiver.Bring(BroughtPut("key", value, 5)), ReplyStatus::kOk);
  receiver.Publish();
  std::string read(kValueBytesMax, '\0');
  const auto room = std::as_writable_bytes(std::span(read));
  EXPECT_EQ(receiver.store_->Get("key", room, At(kBringMs)).status, ReplyStatus::kOk);
  EXPECT_TRUE(read == value);
}

TEST(BringTest, IsRefusedIfTheStreamTakesNothing) {
  Receiver receiver(kBringMegabyte);
  receiver.stream_.refuses = true;
  EXPECT_EQ(receiver.Bring(BroughtPut("key", "value", 5)), ReplyStatus::kDiskRefuses);
  EXPECT_EQ(receiver.Bring(BroughtPut("long", std::string(10'000, 'v'), 5)),
            ReplyStatus::kDiskRefuses);
  receiver.stream_.refuses = false;
  EXPECT_EQ(receiver.Bring(BroughtPut("key", "value", 5)), ReplyStatus::kOk);
}

TEST(BringTest, AFullStoreEvictsIfItMayAndRefusesOtherwise) {
  const std::string value(20'000, 'v');
  for (const bool evicts : {false, true}) {
    Receiver receiver(4 * kBringMegabyte, 1000,
                      evicts ? TestStore::OnFull::kEvict : TestStore::OnFull::kReject);
    int refused = 0;
    for (uint64_t i = 1; i <= 500; ++i) {
      const std::string key = absl::StrCat("key", i);
      ReplyStatus status = receiver.Bring(BroughtPut(key, value, i));
      // Until evictions are safe, there is no room.
      for (int tries = 0; status == ReplyStatus::kTryAgain && tries < 100; ++tries) {
        receiver.Publish();
        status = receiver.Bring(BroughtPut(key, value, i));
      }
      if (status != ReplyStatus::kOk) {
        ++refused;
        EXPECT_EQ(status, ReplyStatus::kHeapFull);
      }
      receiver.Publish();
    }
    EXPECT_EQ(refused == 0, evicts) << refused;
    // An eviction is behind the item that it deletes, also by its version.
    std::map<std::string, uint64_t> versions;
    for (const OwnChange& it : receiver.stream_.kept) {
      EXPECT_LT(versions[it.key], it.change.version);
      versions[it.key] = it.change.version;
    }
  }
}

// Another group's changes are brought among own ones of other keys. A
// backup, which makes the receiver's stream, ends with the same items.
TEST(BringTest, ABackupHasTheSameAlthoughVersionsOfTheStreamFall) {
  std::mt19937_64 random(test_support::TestSeed());
  Receiver receiver(16 * kBringMegabyte, 4000);
  TestStore giver(16 * kBringMegabyte, 4000, /*index_grows=*/true);
  KeptChanges given;
  giver->UseSink(&given);
  giver->BeginVersions(1 << 20);
  size_t brought = 0;
  for (int i = 0; i < 5'000; ++i) {
    const std::string key = absl::StrCat("given", random() % 200);
    const std::string value(random() % 50 == 0 ? 5'000 + random() % 5'000 : random() % 100,
                            'a' + i % 26);
    if (random() % 4 == 0) {
      giver.writes().Delete(key, {}, At(kBringMs));
    } else {
      giver.Put(key, value, kBringMs);
    }
    // Its version is far lower until something is brought, and then higher than what comes next.
    receiver.store_.writes().Put(absl::StrCat("own", i), "value", {}, {}, At(kBringMs));
    for (uint64_t n = i < 10 ? 0 : random() % 3; n > 0 && brought < given.kept.size(); --n) {
      receiver.Bring(given.kept[brought++].Get());
    }
    if (random() % 3 == 0) receiver.Publish();
  }
  while (brought < given.kept.size()) receiver.Bring(given.kept[brought++].Get());
  receiver.Publish();
  TestStore backup(16 * kBringMegabyte, 4000, /*index_grows=*/true);
  bool fell = false;
  uint64_t highest = 0;
  for (const OwnChange& it : receiver.stream_.kept) {
    fell |= it.change.version < highest;
    highest = std::max(highest, it.change.version);
    ASSERT_EQ(backup->Apply(it.Get(), At(kBringMs)), ReplyStatus::kOk);
  }
  EXPECT_TRUE(fell) << "the test has nothing to show";
  for (int i = 0; i < 5'000; ++i) {
    const std::string own = absl::StrCat("own", i);
    ASSERT_EQ(backup.Get(own, kBringMs), receiver.Get(own));
    const std::string key = absl::StrCat("given", i % 200);
    ASSERT_EQ(receiver.Get(key), giver.Get(key, kBringMs)) << key;
    ASSERT_EQ(backup.Get(key, kBringMs), giver.Get(key, kBringMs)) << key;
  }
}

}  // namespace
}  // namespace gannet
