// The writes that make an item's new content from the old one, many PUTs in one call, and the
// removal of all items, against a real server.

#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/api/change_requests.h"
#include "common/base/client_clock.h"
#include "tests/client/api/async_run.h"
#include "tests/client/api/patient_options.h"
#include "tests/client/engine/engine_run.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;

class ChangesTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new ServerProcess({"--memory=128M"}); }
  static void TearDownTestSuite() { delete server_; }

  void SetUp() override {
    auto client = Client::Connect({server_->endpoint()}, PatientOptions());
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    ASSERT_TRUE(client_->Flush().ok());
  }
  std::string Read(std::string_view key) {
    const auto value = client_->Get(key);
    EXPECT_TRUE(value.ok()) << value.status();
    if (!value.ok()) return "error";
    return value->has_value() ? (*value)->data : "absent";
  }
  ItemInfo Info(std::string_view key) {
    const auto value = client_->Get(key);
    return value.ok() && value->has_value() ? (*value)->info : ItemInfo{};
  }

  static ServerProcess* server_;
  std::unique_ptr<Client> client_;
};
ServerProcess* ChangesTest::server_ = nullptr;

TEST_F(ChangesTest, AddAndReplaceDependOnWhetherTheKeyIsThere) {
  EXPECT_TRUE(absl::IsNotFound(client_->Replace("key", "1").status()));
  EXPECT_EQ(Read("key"), "absent");
  EXPECT_TRUE(client_->Add("key", "2").ok());
  EXPECT_TRUE(absl::IsAlreadyExists(client_->Add("key", "3").status()));
  EXPECT_EQ(Read("key"), "2");
  EXPECT_TRUE(client_->Replace("key", "4").ok());
  EXPECT_TRUE(client_->Replace("key", std::string(100'000, 'v')).ok()) << "the server fetches it";
  EXPECT_EQ(Read("key"), std::string(100'000, 'v'));
  EXPECT_TRUE(absl::IsNotFound(client_->Replace("other", std::string(100'000, 'v')).status()));
  const PutOptions both{.only_if_absent = true, .only_if_present = true};
  EXPECT_TRUE(absl::IsInvalidArgument(client_->Put("key", "5", both).status()));
}

TEST_F(ChangesTest, AppendsAndPrepends) {
  const auto made = client_->Append("key", "b", {.flags = 5});
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(client_->Prepend("key", "a").ok());
  const auto version = client_->Append("key", "c", {.flags = 6});
  EXPECT_EQ(Read("key"), "abc");
  EXPECT_EQ(Info("key").version, version.value());
  EXPECT_EQ(Info("key").flags, 5u);
  EXPECT_TRUE(absl::IsNotFound(client_->Append("no", "x", {.only_if_present = true}).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      client_->Append("key", "x", {.only_if_version = *version + 1}).status()));
  const std::string piece(Client::kPieceBytesMax, 'p');
  EXPECT_TRUE(client_->Append("key", piece).ok());
  EXPECT_EQ(Read("key"), "abc" + piece);
  EXPECT_TRUE(absl::IsInvalidArgument(client_->Append("key", piece + "x").status()));
  ASSERT_TRUE(client_->Put("key", std::string(1 << 20, 'v')).ok());
  EXPECT_TRUE(absl::IsOutOfRange(client_->Append("key", "x").status()));
}

TEST_F(ChangesTest, Counts) {
  EXPECT_EQ(client_->Incr("n").value(), 1);
  EXPECT_EQ(client_->Incr("n", 41).value(), 42);
  EXPECT_EQ(client_->Decr("n", 50).value(), -8);
  EXPECT_EQ(Read("n"), "-8");
  EXPECT_EQ(client_->Incr("m", 1, {.initial = 100}).value(), 101);
  EXPECT_TRUE(absl::IsNotFound(client_->Incr("o", 1, {.only_if_present = true}).status()));
  ASSERT_TRUE(client_->Put("n", "text").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(client_->Incr("n").status()));
  ASSERT_TRUE(client_->Put("n", absl::StrCat(INT64_MAX)).ok());
  EXPECT_TRUE(absl::IsOutOfRange(client_->Incr("n").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(client_->Decr("n", INT64_MIN).status()));
}

TEST_F(ChangesTest, CountsUnderALock) {
  ASSERT_TRUE(client_->Put("n", "1").ok());
  const auto locked = client_->LockAndGet("n");
  ASSERT_TRUE(locked.ok()) << locked.status();
  const uint64_t version = locked->value->info.version;
  EXPECT_EQ(client_->Incr("n", 1, {.only_if_version = version, .lock = &locked->lock}).value(), 2);
  EXPECT_TRUE(client_->Unlock(locked->lock).ok());
  const uint64_t now = Info("n").version;
  EXPECT_TRUE(absl::IsAborted(
      client_->Incr("n", 1, {.only_if_version = now, .lock = &locked->lock}).status()));
}

TEST_F(ChangesTest, ATouchChangesOnlyTheTimeToLive) {
  ASSERT_TRUE(client_->Put("key", "value", {.flags = 3}).ok());
  const uint64_t version = Info("key").version;
  EXPECT_TRUE(client_->Touch("key", std::chrono::hours(1)).value());
  const ItemInfo info = Info("key");
  EXPECT_GT(info.ttl_left, std::chrono::minutes(59));
  EXPECT_EQ(info.flags, 3u);
  EXPECT_NE(info.version, version);
  EXPECT_FALSE(client_->Touch("absent", std::chrono::hours(1)).value());
  EXPECT_TRUE(client_->Touch("key", milliseconds(0)).value());
  EXPECT_EQ(Info("key").expiry_ms, 0u);
  EXPECT_TRUE(absl::IsFailedPrecondition(
      client_->Touch("key", milliseconds(1), {.only_if_version = version}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(client_->Touch("key", milliseconds(-1)).status()));
}

TEST_F(ChangesTest, GetAndTouchReturnsTheValue) {
  for (const size_t bytes : {5, 2000, 100'000}) {
    ASSERT_TRUE(client_->Put("key", std::string(bytes, 'v')).ok());
    const auto value = client_->GetAndTouch("key", std::chrono::hours(1));
    ASSERT_TRUE(value.ok() && value->has_value()) << value.status();
    EXPECT_EQ((*value)->data, std::string(bytes, 'v'));
    EXPECT_GT((*value)->info.ttl_left, std::chrono::minutes(59));
    EXPECT_EQ((*value)->info.version, Info("key").version);
  }
  EXPECT_EQ(client_->GetAndTouch("absent", std::chrono::hours(1)).value(), std::nullopt);
}

// One doorbell for as many requests as there are credits.
TEST_F(ChangesTest, ManyPutsShareOnePost) {
  EngineRun run({.endpoints = {server_->endpoint()},
                 .options = PatientOptions(),
                 .clock = ClientClock::Real()});
  std::vector<std::string> keys;
  for (int i = 0; i < 16; ++i) keys.push_back(absl::StrCat("key", i));
  for (const std::string& key : keys) run.Begin(PutRequest(key, key, {}));
  uint32_t posts = 0;
  uint32_t sends = 0;
  for (const OpResult& result : run.Finish(keys.size())) {
    EXPECT_EQ(result.outcome, Outcome::kOk);
    posts += result.cost.posts;
    sends += result.cost.sends;
  }
  EXPECT_EQ(posts, 1u);
  EXPECT_EQ(sends, 16u);
}

TEST_F(ChangesTest, MultiPutHasAnAnswerForEach) {
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.push_back(absl::StrCat("key", i % 290));
  std::vector<std::string> values;
  for (int i = 0; i < 300; ++i) values.push_back(absl::StrCat("value", i));
  std::vector<Client::KeyValue> items;
  for (int i = 0; i < 300; ++i) items.push_back({keys[i], values[i], {.flags = 2}});
  items[7].key = "";
  items[8].options.only_if_present = true;
  const auto answers = client_->MultiPut(items);
  ASSERT_EQ(answers.size(), 300u);
  EXPECT_TRUE(absl::IsInvalidArgument(answers[7].status()));
  EXPECT_TRUE(absl::IsNotFound(answers[8].status()));
  for (int i = 0; i < 290; ++i) {
    if (i == 7 || i == 8) continue;
    const int last = i < 10 ? i + 290 : i;
    EXPECT_EQ(Read(keys[i]), values[last]);
    EXPECT_EQ(Info(keys[i]).version, answers[last].value());
  }
}

TEST_F(ChangesTest, FlushRemovesEverythingAndTellsHowMuch) {
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(client_->Put(absl::StrCat("key", i), "v").ok());
  EXPECT_EQ(client_->Flush().value(), 1000u);
  EXPECT_EQ(Read("key7"), "absent");
  EXPECT_EQ(client_->Stats()[0].stats->items, 0u);
  EXPECT_EQ(client_->Flush().value(), 0u);
  EXPECT_TRUE(absl::IsDeadlineExceeded(client_->Flush(milliseconds(0)).status()));
}

TEST_F(ChangesTest, AnAsyncClientHasThemAll) {
  auto client = AsyncClient::Connect({server_->endpoint()}, PatientOptions()).value();
  // All of one key are under way at once, and take effect in order.
  ASSERT_TRUE(client->Add("n", "5", {}, 0).ok());
  ASSERT_TRUE(client->Incr("n", 10, {}, 1).ok());
  ASSERT_TRUE(client->Decr("n", 3, {}, 2).ok());
  ASSERT_TRUE(client->Append("n", "0", {}, 3).ok());
  ASSERT_TRUE(client->Prepend("n", "4", {}, 4).ok());
  ASSERT_TRUE(client->Touch("n", std::chrono::hours(1), {}, 5).ok());
  std::vector<std::byte> out(10);
  ASSERT_TRUE(client->Get("n", out, 6).ok());
  std::vector<std::byte> touched(10);
  ASSERT_TRUE(client->GetAndTouch("n", std::chrono::hours(2), touched, 7).ok());
  std::vector<Completion> done(8);
  for (const Completion& completion : PollUntil(*client, 8))
    done[completion.user_data] = completion;
  for (const Completion& completion : done) EXPECT_EQ(completion.code, absl::StatusCode::kOk);
  EXPECT_EQ(done[1].number(), 15);
  EXPECT_EQ(done[2].number(), 12);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(out.data()), 4), "4120");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(touched.data()), 4), "4120");
  EXPECT_TRUE(done[5].found && done[6].found && done[7].found);
  EXPECT_GT(done[6].info.ttl_left, std::chrono::minutes(59));
  EXPECT_GT(done[7].info.ttl_left, std::chrono::minutes(119));
  EXPECT_EQ(RunOne(*client, [&] { return client->Replace("n", "end", {}, 8); }).code,
            absl::StatusCode::kOk);
  EXPECT_EQ(Read("n"), "end");
  const Completion flushed = RunOne(*client, [&] { return client->Flush(0, 1); });
  EXPECT_EQ(flushed.number(), 1);
}

// The connection breaks when the requests are sent and not answered. Each is applied once.
TEST_F(ChangesTest, EachIsAppliedOnceAcrossReconnects) {
  EngineRun run({.endpoints = {server_->endpoint()},
                 .options = PatientOptions(),
                 .clock = ClientClock::Real()});
  std::string text;
  for (int64_t round = 1; round <= 50; ++round) {
    run.Begin(IncrRequest("n", 1, {}));
    run.Begin(AppendRequest(OpType::kAppend, "text", "a", {}));
    run.Begin(AppendRequest(OpType::kPrepend, "text", "p", {}));
    run.Begin(TouchRequest(OpType::kGetAndTouch, "text", std::chrono::hours(1), {}));
    run.Poll();
    if (round % 2 == 0) run.Poll();
    run.Break();
    text = absl::StrCat("p", text, "a");
    bool counted = false;
    for (const OpResult& result : run.Finish(4)) {
      ASSERT_EQ(result.outcome, Outcome::kOk);
      if (result.value == text) counted |= result.found;
    }
    EXPECT_TRUE(counted) << "the value of the GetAndTouch";
    ASSERT_EQ(run.Get("n").value, absl::StrCat(round));
    ASSERT_EQ(run.Get("text").value, text);
  }
}

}  // namespace
}  // namespace gannet
