// One Client, many threads.

#include <gannet/client.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

void RunThreads(int count, const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) threads.emplace_back(body, t);
  for (std::thread& thread : threads) thread.join();
}

TEST(ThreadsTest, EachThreadGetsItsOwnAnswers) {
  ServerProcess server;
  auto client = Client::Connect({server.endpoint()}, PatientOptions()).value();
  std::atomic<int> wrong{0};
  RunThreads(6, [&](int t) {
    for (int i = 0; i < 200; ++i) {
      const std::string key = "thread" + std::to_string(t) + "." + std::to_string(i % 20);
      const std::string value = key + "=" + std::to_string(i) + std::string(i * 13 % 3000, 'x');
      if (!client->Put(key, value).ok()) ++wrong;
      const auto got = client->Get(key);
      if (!got.ok() || !got->has_value() || (*got)->data != value) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

TEST(ThreadsTest, MoreThreadsThanOperationsThatFit) {
  ServerProcess server;
  Options options = PatientOptions();
  options.depth = 2;
  auto client = Client::Connect({server.endpoint()}, options).value();
  ASSERT_TRUE(client->Put("shared", "value").ok());
  std::atomic<int> wrong{0};
  RunThreads(6, [&](int) {
    const std::vector<std::string> keys(5, "shared");
    for (int i = 0; i < 50; ++i) {
      const auto values = client->MultiGet(keys);
      if (!values[4].ok() || (*values[4])->data != "value") ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

// Gets `count` values of `bytes` bytes by MultiGet, in several threads at once.
void GetManyLongValues(int threads, int count, size_t bytes) {
  SCOPED_TRACE(bytes);
  ServerProcess server({"--memory=256M"});
  auto client = Client::Connect({server.endpoint()}, PatientOptions()).value();
  std::vector<std::string> keys;
  for (int i = 0; i < count; ++i) {
    keys.push_back("key" + std::to_string(i));
    ASSERT_TRUE(client->Put(keys[i], keys[i] + std::string(bytes, 'v')).ok());
  }
  std::atomic<int> wrong{0};
  RunThreads(threads, [&](int) {
    const auto values = client->MultiGet(keys);
    for (int i = 0; i < count; ++i) {
      if (!values[i].ok() || !*values[i] || !(*values[i])->data.starts_with(keys[i])) ++wrong;
    }
  });
  EXPECT_EQ(wrong, 0);
}

// A client has 64 buffers of 16 KiB, 32 of 128 KiB, 8 of 1 MiB and 2 of 8 MiB. An operation keeps
// its buffer until its value is taken.
TEST(ThreadsTest, BatchesMayNeedMoreBuffersThanThereAre) {
  GetManyLongValues(1, 120, 2'000);
  GetManyLongValues(2, 60, 20'000);
  GetManyLongValues(3, 6, 200'000);
  GetManyLongValues(2, 3, 2'000'000);
}

TEST(ThreadsTest, IncrementsUnderALockAreNotLost) {
  ServerProcess server;
  auto client = Client::Connect({server.endpoint()}, PatientOptions()).value();
  ASSERT_TRUE(client->Put("counter", "0").ok());
  constexpr int kThreads = 4, kEach = 40;
  std::atomic<int> failed{0};
  RunThreads(kThreads, [&](int) {
    for (int i = 0; i < kEach; ++i) {
      const auto locked = client->LockAndGet("counter");
      if (!locked.ok()) {
        ++failed;
        continue;
      }
      const int next = std::stoi(locked->value->data) + 1;
      const PutOptions under{.only_if_version = locked->value->info.version, .lock = &locked->lock};
      if (!client->Put("counter", std::to_string(next), under).ok()) ++failed;
      if (!client->Unlock(locked->lock).ok()) ++failed;
    }
  });
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(client->Get("counter").value()->data, std::to_string(kThreads * kEach));
}

}  // namespace
}  // namespace gannet
