// Calls for many keys, against a real server: an answer for each key, one deadline for all, more
// keys than there is room for, and servers that die meanwhile.

#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/client/api/async_run.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;

std::vector<std::string> Keys(int count) {
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i) keys.push_back("key" + std::to_string(i));
  return keys;
}

std::unique_ptr<Client> Connect(std::vector<std::string> endpoints,
                                const Options& options = PatientOptions()) {
  auto client = Client::Connect(std::move(endpoints), options);
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

class BatchesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    client_ = Connect({server_.endpoint()});
    ASSERT_NE(client_, nullptr);
  }
  void PutAll(const std::vector<std::string>& keys, const std::string& value) {
    std::vector<Client::KeyValue> items;
    for (const std::string& key : keys) items.push_back({key, value});
    for (const auto& version : client_->MultiPut(items)) ASSERT_TRUE(version.ok());
  }

  ServerProcess server_{{"--memory=256M"}};
  std::unique_ptr<Client> client_;
};

TEST_F(BatchesTest, MultiExistsAnswersInOrder) {
  for (const size_t bytes : {10, 3000, 100'000}) {
    ASSERT_TRUE(client_->Put("there", std::string(bytes, 'v')).ok());
    const std::vector<std::string> keys = {"absent", "there", "none", "there", "absent"};
    for (int round = 0; round < 2; ++round) {
      const auto found = client_->MultiExists(keys);
      ASSERT_EQ(found.size(), keys.size());
      for (size_t i = 0; i < keys.size(); ++i) {
        ASSERT_TRUE(found[i].ok()) << found[i].status();
        EXPECT_EQ(*found[i], keys[i] == "there") << i;
      }
    }
    EXPECT_TRUE(*client_->Exists("there"));
    EXPECT_FALSE(*client_->Exists("none"));
  }
  EXPECT_TRUE(client_->MultiExists({}).empty());
}

TEST_F(BatchesTest, AKeyThatIsNoneIsItsOwnError) {
  PutAll(Keys(3), "value");
  const std::vector<std::string> keys = {"key0", "", "key1", std::string(251, 'k'), "key2"};
  for (const auto& answers : {client_->MultiExists(keys), client_->MultiDelete(keys)}) {
    for (size_t i = 0; i < keys.size(); ++i) {
      if (i % 2 == 1) {
        EXPECT_TRUE(absl::IsInvalidArgument(answers[i].status())) << answers[i].status();
      } else {
        EXPECT_TRUE(answers[i].ok() && *answers[i]) << i;
      }
    }
  }
}

TEST_F(BatchesTest, MultiDeleteSaysWhatWasThereAndDeletesEqualKeysInOrder) {
  PutAll({"a", "b"}, "value");
  const std::vector<std::string> keys = {"a", "none", "b", "a"};
  const auto found = client_->MultiDelete(keys);
  ASSERT_EQ(found.size(), 4u);
  EXPECT_TRUE(*found[0]);
  EXPECT_FALSE(*found[1]);
  EXPECT_TRUE(*found[2]);
  EXPECT_FALSE(*found[3]);
  for (const auto& answer : client_->MultiExists(keys)) EXPECT_FALSE(*answer);
}

TEST_F(BatchesTest, MoreKeysThanThereIsRoomFor) {
  Options options = PatientOptions();
  options.depth = 8;
  const std::unique_ptr<Client> small = Connect({server_.endpoint()}, options);
  ASSERT_NE(small, nullptr);
  std::vector<std::string> keys = Keys(300);
  PutAll({keys.begin(), keys.begin() + 200}, std::string(2000, 'v'));
  const auto found = small->MultiExists(keys);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(*found[i], i < 200) << i;
  const auto deleted = small->MultiDelete(keys);
  for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(*deleted[i], i < 200) << i;
}

TEST_F(BatchesTest, MultiPutFromTakesPiecesFromRegisteredMemory) {
  constexpr size_t kBytes = 20'000, kPuts = 40;
  auto memory = client_->AllocateMemory(kPuts * kBytes);
  ASSERT_TRUE(memory.ok()) << memory.status();
  std::vector<std::vector<RegisteredSpan>> pieces(kPuts);
  std::vector<PutSource> sources;
  const std::vector<std::string> keys = Keys(kPuts);
  for (size_t i = 0; i < kPuts; ++i) {
    std::memset(memory->data() + i * kBytes, static_cast<int>('a' + i % 26), kBytes);
    // The second half first.
    pieces[i] = {RegisteredSpan(*memory, i * kBytes + kBytes / 2, kBytes / 2),
                 RegisteredSpan(*memory, i * kBytes, kBytes / 2 - i)};
    sources.push_back({keys[i], pieces[i], {.flags = static_cast<uint32_t>(i)}});
  }
  sources[7].options.only_if_present = true;  // it is not
  const RegisteredSpan none;
  sources[9].from = {&none, 1};
  const auto versions = client_->MultiPutFrom(sources);
  ASSERT_EQ(versions.size(), kPuts);
  for (size_t i = 0; i < kPuts; ++i) {
    const auto value = client_->Get(keys[i]);
    ASSERT_TRUE(value.ok()) << value.status();
    if (i == 7 || i == 9) {
      EXPECT_EQ(versions[i].status().code(),
                i == 7 ? absl::StatusCode::kNotFound : absl::StatusCode::kInvalidArgument);
      EXPECT_FALSE(value->has_value());
      continue;
    }
    ASSERT_TRUE(versions[i].ok()) << versions[i].status();
    EXPECT_EQ((*value)->info.version, *versions[i]);
    EXPECT_EQ((*value)->info.flags, i);
    EXPECT_TRUE((*value)->data == std::string(kBytes - i, static_cast<char>('a' + i % 26))) << i;
  }
}

TEST_F(BatchesTest, GetIfChangedBringsWhatChanged) {
  EXPECT_TRUE(client_->GetIfChanged("key", 0)->changed);
  EXPECT_FALSE(client_->GetIfChanged("key", 0)->value.has_value());
  for (const size_t bytes : {0, 10, 3000, 100'000}) {
    const auto version = client_->Put("key", std::string(bytes, 'v'));
    ASSERT_TRUE(version.ok()) << version.status();
    for (int round = 0; round < 3; ++round) {
      const auto same = client_->GetIfChanged("key", *version);
      ASSERT_TRUE(same.ok()) << same.status();
      EXPECT_FALSE(same->changed);
      EXPECT_FALSE(same->value.has_value());
      const auto other = client_->GetIfChanged("key", *version - 1);
      ASSERT_TRUE(other.ok() && other->changed && other->value.has_value()) << other.status();
      EXPECT_EQ(other->value->info.version, *version);
      EXPECT_TRUE(other->value->data == std::string(bytes, 'v'));
    }
  }
}

TEST_F(BatchesTest, AnAsyncClientHasThemToo) {
  const auto version = client_->Put("key", "value");
  ASSERT_TRUE(version.ok());
  auto async = AsyncClient::Connect({server_.endpoint()}, PatientOptions());
  ASSERT_TRUE(async.ok()) << async.status();
  const auto run = [&](absl::Status begun) {
    EXPECT_TRUE(begun.ok()) << begun;
    Completion done;
    EXPECT_EQ((*async)->Wait({&done, 1}, std::chrono::seconds(60)), 1u);
    EXPECT_EQ(done.code, absl::StatusCode::kOk);
    return done;
  };
  char room[16] = "untouched";
  const std::span<std::byte> out = std::as_writable_bytes(std::span(room));
  EXPECT_FALSE(run((*async)->Exists("none", 1)).found);
  for (int round = 0; round < 2; ++round) {
    const Completion there = run((*async)->Exists("key", 2));
    EXPECT_TRUE(there.found);
    EXPECT_EQ(there.type, OpType::kExists);
    EXPECT_EQ(there.info.version, *version);
    const Completion same = run((*async)->GetIfChanged("key", *version, out, 3));
    EXPECT_TRUE(same.found);
    EXPECT_EQ(same.info.version, *version);
    EXPECT_STREQ(room, "untouched");
  }
  const Completion changed = run((*async)->GetIfChanged("key", 1, out, 4));
  EXPECT_EQ(changed.info.version, *version);
  EXPECT_EQ(std::string(room, 5), "value");
}

TEST_F(BatchesTest, OneDeadlineIsForAllKeys) {
  Options options = PatientOptions();
  options.depth = 4;
  const std::unique_ptr<Client> small = Connect({server_.endpoint()}, options);
  ASSERT_NE(small, nullptr);
  server_.process().Stop();
  const auto begin = std::chrono::steady_clock::now();
  const auto deleted = small->MultiDelete(Keys(2'000), milliseconds(200));
  const auto took = std::chrono::steady_clock::now() - begin;
  server_.process().Signal(SIGCONT);
  for (const auto& answer : deleted) {
    EXPECT_TRUE(absl::IsDeadlineExceeded(answer.status())) << answer.status();
  }
  EXPECT_LT(took, kHang) << "each of 500 chunks waited for a deadline of its own";
}

// Only the keys of the server that died fail.
TEST_F(BatchesTest, AServerThatDiesIsAnErrorOfItsOwnKeys) {
  ServerProcess other;
  const std::unique_ptr<Client> both = Connect({server_.endpoint(), other.endpoint()});
  ASSERT_NE(both, nullptr);
  const std::vector<std::string> keys = Keys(60);
  for (const std::string& key : keys) ASSERT_TRUE(both->Put(key, "value").ok());
  std::thread killer([&] { other.Kill(); });
  std::vector<absl::StatusOr<bool>> found;
  const auto give_up = std::chrono::steady_clock::now() + kHang;
  size_t failed = 0;
  while (failed == 0 && std::chrono::steady_clock::now() < give_up) {
    found = both->MultiExists(keys, milliseconds(500));
    for (const auto& answer : found) failed += !answer.ok();
  }
  killer.join();
  found = both->MultiExists(keys, milliseconds(500));
  const auto deleted = both->MultiDelete(keys, milliseconds(500));
  size_t there = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(found[i].ok(), deleted[i].ok()) << i;
    there += found[i].ok() && *found[i] && *deleted[i];
    if (!found[i].ok()) {
      EXPECT_TRUE(absl::IsUnavailable(found[i].status()) ||
                  absl::IsDeadlineExceeded(found[i].status()))
          << found[i].status();
    }
  }
  EXPECT_GT(failed, 0u);
  EXPECT_GT(there, 0u);
  EXPECT_LT(there, keys.size());
}

// While the index grows, lookups go from one index to the next, or ask the server.
TEST_F(BatchesTest, KeysAreFoundWhileTheIndexGrows) {
  ServerProcess growing({"--index_slots=256", "--memory=64M"});
  const std::unique_ptr<Client> writer = Connect({growing.endpoint()});
  const std::unique_ptr<Client> reader = Connect({growing.endpoint()});
  ASSERT_TRUE(writer != nullptr && reader != nullptr);
  const std::vector<std::string> keys = Keys(4000);
  for (size_t begin = 0; begin < keys.size(); begin += 200) {
    for (size_t i = begin; i < begin + 200; ++i) ASSERT_TRUE(writer->Put(keys[i], "value").ok());
    const auto found =
        reader->MultiExists(std::span(keys).first(std::min(begin + 400, keys.size())));
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_TRUE(found[i].ok()) << found[i].status();
      ASSERT_EQ(*found[i], i < begin + 200) << i;
    }
  }
  EXPECT_GT(writer->Stats()[0].stats->index_growths, 0u);
}

}  // namespace
}  // namespace gannet
