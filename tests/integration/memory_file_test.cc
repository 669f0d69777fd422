// A server with a memory file is killed under load, and started again on the same file. What it
// acknowledged is there.

#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "softverbs/tests/support/child_process.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/rest.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::chrono::milliseconds kCallMax{500};
constexpr int kWriters = 3;
constexpr int kKeysOfAClient = 40;

// A file of this test's own, removed at its end.
class FileOfTest {
 public:
  FileOfTest() : path_(absl::StrCat("/dev/shm/gannet-memory-file-test-", getpid())) {}
  ~FileOfTest() { std::filesystem::remove(path_); }
  FileOfTest(const FileOfTest&) = delete;
  FileOfTest& operator=(const FileOfTest&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// One client that writes keys of its own. It knows what each may be: the last acknowledged state,
// or that of writes whose outcome it does not know.
class Writer {
 public:
  Writer(const std::string& endpoint, int number, uint64_t seed)
      : number_(number), random_(seed), keys_(kKeysOfAClient) {
    auto client = Client::Connect({endpoint}, PatientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    if (client.ok()) client_ = *std::move(client);
  }

  // Writes until the server was killed. Counts what it acknowledged. A busy machine may also let a
  // write come to its deadline while the server lives.
  void WriteUntilKilled(const std::atomic<bool>& killed, std::atomic<uint64_t>* acknowledged) {
    while (!killed.load(std::memory_order_relaxed)) {
      if (WriteOne()) acknowledged->fetch_add(1, std::memory_order_relaxed);
    }
  }
  // Every key is what it may be, by this client or by another one.
  void Check() {
    for (int i = 0; i < kKeysOfAClient; ++i) {
      const auto got = GetWhenReached(Key(i));
      ASSERT_TRUE(got.ok()) << got.status();
      const std::string value = got->has_value() ? (*got)->data : "";
      std::vector<std::string>& may_be = keys_[i];
      const bool known =
          may_be.empty() ? value.empty() : std::ranges::find(may_be, value) != may_be.end();
      ASSERT_TRUE(known) << Key(i) << " has " << value.size() << " bytes of "
                         << value.substr(0, 30);
      may_be = {value};
    }
  }

 private:
  std::string Key(int i) const { return absl::StrCat("client", number_, "/", i); }

  // Tries again while the server starts, or is slow.
  absl::StatusOr<std::optional<Value>> GetWhenReached(const std::string& key) {
    const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
    auto got = client_->Get(key, kCallMax);
    while ((absl::IsUnavailable(got.status()) || absl::IsDeadlineExceeded(got.status())) &&
           std::chrono::steady_clock::now() < give_up) {
      got = client_->Get(key, kCallMax);
    }
    return got;
  }

  bool WriteOne() {
    const int i = static_cast<int>(random_() % kKeysOfAClient);
    std::string value;  // empty: deleted
    absl::Status status;
    if (random_() % 5 == 0) {
      status = client_->Delete(Key(i), {}, kCallMax).status();
    } else {
      value = absl::StrCat("value ", ++values_, " of ", Key(i), " ");
      value.append(random_() % 10 == 0 ? 8000 : random_() % 200, 'x');
      status = client_->Put(Key(i), value, {}, kCallMax).status();
    }
    if (status.ok()) {
      keys_[i] = {value};
      return true;
    }
    if (keys_[i].empty()) keys_[i].push_back("");
    keys_[i].push_back(value);
    return false;
  }

  const int number_;
  std::mt19937_64 random_;
  std::unique_ptr<Client> client_;
  std::vector<std::vector<std::string>> keys_;  // what each may be; none: absent
  uint64_t values_ = 0;
};

std::vector<std::string> Flags(const FileOfTest& file) {
  return {"--memory=32M", absl::StrCat("--memory_file=", file.path())};
}

// Runs kvserver --check, which must end by itself. Returns what it prints.
std::string CheckOf(const FileOfTest& file, int exit_code) {
  const std::vector<std::string> argv = {test_support::ProgramPath("kvserver"),
                                         "--check=" + file.path(), "--json"};
  test_support::ChildProcess process(
      {.argv = argv, .streams = test_support::ChildProcess::Streams::kCaptured});
  EXPECT_EQ(process.Wait(), exit_code);
  return process.Stdout() + process.Stderr();
}

TEST(MemoryFileTest, IsCheckedWhileNobodyServesFromIt) {
  const FileOfTest file;
  ServerProcess server(Flags(file));
  {
    const auto client = Client::Connect({server.endpoint()}, PatientOptions());
    ASSERT_TRUE(client.ok()) << client.status();
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE((*client)->Put(absl::StrCat("key", i), std::string(i * 100, 'v')).ok());
    }
    EXPECT_EQ((*client)->Storage(0)->memory_file, file.path());
    EXPECT_THAT(CheckOf(file, 1), HasSubstr("a server serves from it"));
  }
  server.Kill();
  EXPECT_THAT(CheckOf(file, 0), AllOf(HasSubstr("\"items\":100,"), HasSubstr("\"torn\":0,"),
                                      HasSubstr("\"stopped_in_order\":0,")));
  std::filesystem::resize_file(file.path(), 1 << 20);
  EXPECT_THAT(CheckOf(file, 1), HasSubstr("it was made with"));
}

// GANNET_KILLS says how often the server is killed.
TEST(MemoryFileTest, WhatWasAcknowledgedOutlivesKills) {
  const char* kills = std::getenv("GANNET_KILLS");
  const int rounds = kills != nullptr ? std::atoi(kills) : 4;
  const FileOfTest file;
  ServerProcess server(Flags(file));
  EXPECT_NE(server.ready_line().find("memory_file=" + file.path()), std::string::npos);
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::vector<std::unique_ptr<Writer>> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.push_back(std::make_unique<Writer>(server.endpoint(), i, seed + i));
  }
  std::mt19937_64 random(seed);
  for (int round = 0; round < rounds; ++round) {
    std::atomic<uint64_t> acknowledged{0};
    std::atomic<bool> killed{false};
    std::vector<std::thread> threads;
    for (auto& writer : writers) {
      threads.emplace_back([&] { writer->WriteUntilKilled(killed, &acknowledged); });
    }
    const uint64_t enough = 100 + random() % 1000;
    while (acknowledged.load(std::memory_order_relaxed) < enough) test_support::Rest();
    server.Kill();
    killed.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads) thread.join();
    server.Restart();
    for (auto& writer : writers) writer->Check();
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace gannet
