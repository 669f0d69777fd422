#include <gannet/client.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "softverbs/tests/support/test_seed.h"
#include "tests/client/api/patient_options.h"
#include "tests/common/rdma/test_device.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

constexpr std::chrono::seconds kPatient{20};

// Returns bytes computed from a seed. The first eight are the seed, as far as they fit.
std::string Bytes(uint64_t seed, size_t size) {
  std::string bytes(size, '\0');
  uint64_t word = seed;
  for (size_t i = 0; i < size; i += 8) {
    std::memcpy(bytes.data() + i, &word, std::min<size_t>(8, size - i));
    word = word * 6364136223846793005u + 1442695040888963407u;
  }
  return bytes;
}

bool IsWhole(const std::string& value) {
  uint64_t seed = 0;
  if (value.size() < sizeof(seed)) return false;
  std::memcpy(&seed, value.data(), sizeof(seed));
  return value == Bytes(seed, value.size());
}

class ValuesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    client_ = Connect();
    ASSERT_NE(client_, nullptr);
  }
  std::unique_ptr<Client> Connect() {
    auto client = Client::Connect({server_.endpoint()}, PatientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  void ExpectRoundTrip(const std::string& key, const std::string& value) {
    const auto version = client_->Put(key, value, {}, kPatient);
    ASSERT_TRUE(version.ok()) << version.status();
    const auto got = client_->Get(key, kPatient);
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_TRUE(got->has_value());
    EXPECT_EQ((*got)->info.version, *version);
    EXPECT_EQ((*got)->info.value_bytes, value.size());
    EXPECT_TRUE((*got)->data == value) << "the value of " << value.size() << " bytes differs";
  }

  ServerProcess server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ValuesTest, ValuesOfEverySizeComeBack) {
  for (const size_t size :
       {0u,    1u,    7u,    8u,    9u,    63u,    64u,    65u,      127u,     128u,    255u,
        1000u, 3800u, 4000u, 4096u, 4097u, 65535u, 65536u, 1000003u, 1048575u, 1048576u}) {
    SCOPED_TRACE(size);
    ASSERT_NO_FATAL_FAILURE(ExpectRoundTrip("key", Bytes(size, size)));
  }
}

TEST_F(ValuesTest, KeysOfEveryLengthAndAnyBytes) {
  for (size_t length = 1; length <= 250; ++length) {
    SCOPED_TRACE(length);
    ASSERT_NO_FATAL_FAILURE(ExpectRoundTrip(Bytes(0xff00 + length, length), Bytes(length, 50)));
  }
  for (size_t length = 1; length <= 250; ++length) {
    const auto got = client_->Get(Bytes(0xff00 + length, length), kPatient);
    ASSERT_TRUE(got.ok() && got->has_value()) << length << ": " << got.status();
    EXPECT_EQ((*got)->data, Bytes(length, 50));
  }
}

TEST_F(ValuesTest, WhatCannotBeAKeyOrValueIsRefusedBeforeAnythingIsSent) {
  const auto before = client_->Stats().at(0).stats;
  ASSERT_TRUE(before.ok()) << before.status();
  for (const std::string& key : {std::string(), std::string(251, 'k')}) {
    EXPECT_EQ(client_->Get(key).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(client_->Put(key, "v").status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(client_->Delete(key).status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(client_->TryLock(key).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(client_->Put("key", std::string((64 << 20) + 1, 'v')).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto after = client_->Stats().at(0).stats;
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_LE(after->rpcs - before->rpcs, 1u);  // the second Stats itself
}

TEST_F(ValuesTest, MissesAndDeletesAreAnswers) {
  const auto miss = client_->Get("nothing");
  ASSERT_TRUE(miss.ok()) << miss.status();
  EXPECT_FALSE(miss->has_value());
  ASSERT_NO_FATAL_FAILURE(ExpectRoundTrip("key", "value"));
  const auto deleted = client_->Delete("key");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_TRUE(*deleted);
  const auto again = client_->Delete("key");
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(*again);
  const auto gone = client_->Get("key");
  ASSERT_TRUE(gone.ok()) << gone.status();
  EXPECT_FALSE(gone->has_value());
}

TEST_F(ValuesTest, FullServerRefusesAndKeepsWhatItHas) {
  std::vector<std::string> kept;
  absl::Status status;
  for (int i = 0; i < 200 && status.ok(); ++i) {
    const std::string key = "filler-" + std::to_string(i);
    status = client_->Put(key, Bytes(i, 1 << 20), {}, kPatient).status();
    if (status.ok()) kept.push_back(key);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  ASSERT_FALSE(kept.empty());
  for (const std::string& key : kept) {
    const auto got = client_->Get(key, kPatient);
    ASSERT_TRUE(got.ok() && got->has_value()) << key << ": " << got.status();
    EXPECT_TRUE(IsWhole((*got)->data)) << key;
  }
  EXPECT_TRUE(*client_->Delete(kept.front(), {}, kPatient));
  EXPECT_TRUE(client_->Put("one more", Bytes(1, 1 << 20), {}, kPatient).ok());
}

// Several clients add to one counter and to one value at once. Nothing is lost or done twice.
TEST_F(ValuesTest, SeveralClientsChangeOneValue) {
  constexpr int kClients = 3;
  const int rounds = 300 / TestSlowness();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(Connect());
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([client = clients[i].get(), rounds] {
      for (int round = 0; round < rounds; ++round) {
        ASSERT_TRUE(client->Incr("counter", 3, {}, kPatient).ok());
        ASSERT_TRUE(client->Decr("counter", 1, {}, kPatient).ok());
        ASSERT_TRUE(client->Append("value", "aa", {}, kPatient).ok());
        ASSERT_TRUE(client->Prepend("value", "p", {}, kPatient).ok());
        const auto touched = client->GetAndTouch("value", std::chrono::hours(1), kPatient);
        ASSERT_TRUE(touched.ok() && touched->has_value()) << touched.status();
        ASSERT_EQ((*touched)->data.find_first_not_of('p'), (*touched)->data.find('a'));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const size_t changes = static_cast<size_t>(kClients * rounds);
  EXPECT_EQ((*client_->Get("counter"))->data, std::to_string(2 * changes));
  EXPECT_EQ((*client_->Get("value"))->data,
            std::string(changes, 'p') + std::string(2 * changes, 'a'));
}

// Sizes that make the item move all the time, and that cross the eager limit.
constexpr size_t kHammerSizes[] = {8, 64, 100, 1000, 4096, 20000};
constexpr int kHammerPuts = 3000;  // of each writer, on a machine that is not slow

void HammerPut(Client* client, uint64_t writer, uint64_t seed) {
  std::mt19937_64 random(seed + writer);
  for (int i = 0; i < kHammerPuts / TestSlowness(); ++i) {
    const std::string value = Bytes(writer << 32 | static_cast<uint64_t>(i),
                                    kHammerSizes[random() % std::size(kHammerSizes)]);
    const auto version = client->Put("hammered", value, {}, kPatient);
    ASSERT_TRUE(version.ok()) << version.status();
  }
}

// Expects that each read returns one whole value, and that versions never go back.
void HammerGet(Client* client, const std::atomic<int>* writing) {
  uint64_t newest = 0;
  int gets = 0;
  while (writing->load(std::memory_order_relaxed) > 0 || gets == 0) {
    const auto got = client->Get("hammered", kPatient);
    ASSERT_TRUE(got.ok() && got->has_value()) << got.status();
    ASSERT_TRUE(IsWhole((*got)->data)) << "after " << gets << " gets";
    ASSERT_GE((*got)->info.version, newest);
    newest = (*got)->info.version;
    ++gets;
  }
}

TEST_F(ValuesTest, TwoClientsHammeringOneKeySeeOnlyWholeValues) {
  const uint64_t seed = test_support::TestSeed();
  ASSERT_TRUE(client_->Put("hammered", Bytes(1, 64)).ok());
  constexpr int kClients = 2;
  std::atomic<int> writing{kClients};  // counts; publishes nothing else
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 2 * kClients; ++i) {
    clients.push_back(Connect());
    ASSERT_NE(clients.back(), nullptr);
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i] {
      HammerPut(clients[i].get(), i + 1, seed);
      writing.fetch_sub(1, std::memory_order_relaxed);
    });
    threads.emplace_back([&, i] { HammerGet(clients[kClients + i].get(), &writing); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gannet
