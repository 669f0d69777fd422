// kvserver --data: what clients wrote is there after SIGTERM and after kill -9, and a directory
// that is not this server's own and whole is refused with an error that says what to do.

#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "softverbs/tests/support/child_process.h"
#include "softverbs/tests/support/sanitizer.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/environment_variable.h"
#include "tests/support/rest.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using test_support::ChildProcess;
using ::testing::HasSubstr;

class DiskTest : public testing::Test {
 protected:
  static std::unique_ptr<Client> Connect(const ServerProcess& server) {
    auto client = Client::Connect({server.endpoint()}, PatientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  static std::string Value(Client* client, const std::string& key) {
    const auto got = client->Get(key);
    EXPECT_TRUE(got.ok()) << got.status();
    return got.ok() && got->has_value() ? (*got)->data : "nothing";
  }
  // Returns the first bytes of a file.
  static std::string FileBytes(const std::string& path) {
    std::string bytes(8192, '\0');
    std::ifstream file(path, std::ios::binary);
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<size_t>(file.gcount()));
    return bytes;
  }
  static ServerStats StatsOf(Client* client) { return *client->Stats().at(0).stats; }
  // Runs kvserver, which must end by itself.
  static void Run(const std::vector<std::string>& flags, int exit_code, const std::string& says) {
    std::vector<std::string> argv = {test_support::ProgramPath("kvserver"), "--listen=127.0.0.1:0",
                                     "--device=soft", "--memory=64M"};
    argv.insert(argv.end(), flags.begin(), flags.end());
    ChildProcess process({.argv = argv, .streams = ChildProcess::Streams::kCaptured});
    EXPECT_EQ(process.Wait(), exit_code);
    EXPECT_THAT(process.Stdout() + process.Stderr(), HasSubstr(says));
  }

  const test_support::TemporaryDirectory directory_;
  const std::string path_ = directory_.path();
};

TEST_F(DiskTest, FindsEverythingAgainAfterAStop) {
  ServerProcess server({"--data=" + path_});
  EXPECT_THAT(server.ready_line(), HasSubstr(" disk=interval"));
  const std::string lengthy(3 << 20, 'l');
  {
    const auto client = Connect(server);
    ASSERT_NE(client, nullptr);
    for (int i = 0; i < 500; ++i) {
      ASSERT_TRUE(client->Put("key" + std::to_string(i), "value" + std::to_string(i)).ok());
    }
    ASSERT_TRUE(client->Put("long", lengthy).ok());
    ASSERT_TRUE(client->Delete("key7").ok());
    EXPECT_EQ(StatsOf(client.get()).disk_sync, 2u);
  }
  Run({"--data=" + path_}, 1, "another process uses the directory");
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(), 0);
  Run({"--check=" + path_}, 0, "journal_changes 502\n");
  Run({"--check=" + path_, "--json"}, 0, "\"deletes\":1,");
  server.Restart();
  const auto client = Connect(server);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(Value(client.get(), "key499"), "value499");
  EXPECT_EQ(Value(client.get(), "long"), lengthy);
  EXPECT_EQ(Value(client.get(), "key7"), "nothing");
}

// One client writes numbers in a row, so what is found must be what the first of them made, with at
// least those that stats called synced.
TEST_F(DiskTest, FindsABeginningOfWhatWasWrittenAfterKill9) {
  constexpr int kKeys = 50;
  ServerProcess server({"--data=" + path_, "--sync_interval_ms=10"});
  int synced = 0;
  for (int life = 0; life < 3; ++life) {
    std::atomic<int> written{synced};
    std::atomic<bool> enough{false};
    std::thread writer([&] {
      const auto client = Connect(server);
      for (int n = synced + 1;; ++n) {
        if (!client->Put("key" + std::to_string(n % kKeys), std::to_string(n)).ok()) return;
        written = n;
        if (n == synced + 500) {
          while (StatsOf(client.get()).disk_behind_bytes != 0) {
          }
          enough = true;
        }
      }
    });
    while (!enough) test_support::Rest();
    const int certain = synced + 500;
    server.Kill();
    writer.join();
    server.Restart();
    const auto client = Connect(server);
    ASSERT_NE(client, nullptr);
    std::map<int, int> found;  // by key
    int last = 0;
    for (int key = 0; key < kKeys; ++key) {
      found[key] = std::atoi(Value(client.get(), "key" + std::to_string(key)).c_str());
      last = std::max(last, found[key]);
    }
    EXPECT_GE(last, certain);
    EXPECT_LE(last, written + 1);
    for (int n = last; n > last - kKeys; --n) EXPECT_EQ(found[n % kKeys], n);
    synced = last;
  }
}

template <class F>
bool HoldsSoon(F holds) {
  const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
  while (!holds()) {
    if (std::chrono::steady_clock::now() >= give_up) return false;
  }
  return true;
}

// Returns whether a file of this directory has these bytes in it, on the disk or not.
bool AnyFileHas(const std::string& path, const std::string& bytes) {
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    if (content.find(bytes) != std::string::npos) return true;
  }
  return false;
}

// More is written than fits in a segment, and the next one needs syncs, too.
TEST_F(DiskTest, LosesNothingThatWasWrittenToTheSystemAfterKill9WhileASyncHangs) {
  if (test_support::kThreadSanitizer || test_support::kAddressSanitizer) {
    GTEST_SKIP() << "the preloaded library is not instrumented";
  }
  constexpr int kKeys = 200;
  const std::string lengthy(64 << 10, 'v');
  const test_support::TemporaryDirectory other;
  const std::string hangs = other.path() + "/hangs";
  const test_support::EnvironmentVariable preload("LD_PRELOAD",
                                                  test_support::TestProgramPath("hanging_sync.so"));
  const test_support::EnvironmentVariable when("GANNET_HANGING_SYNC", hangs);
  for (const std::string sync : {"none", "interval"}) {
    const std::string data = path_ + "/" + sync;
    ASSERT_EQ(mkdir(data.c_str(), 0700), 0);
    ServerProcess server({"--data=" + data, "--sync=" + sync, "--sync_interval_ms=60000"});
    {
      const auto client = Connect(server);
      ASSERT_NE(client, nullptr);
      std::ofstream{hangs};
      for (int i = 0; i < kKeys; ++i) {
        ASSERT_TRUE(client->Put("key" + std::to_string(i), lengthy).ok());
      }
      ASSERT_TRUE(client->Put("last", "the last one").ok());
      const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
      while (!AnyFileHas(data, "the last one")) {
        ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "written nowhere, sync " << sync;
      }
    }
    server.Kill();
    std::filesystem::remove(hangs);
    server.Restart();
    const auto client = Connect(server);
    ASSERT_NE(client, nullptr);
    for (int i = 0; i < kKeys; ++i) {
      ASSERT_EQ(Value(client.get(), "key" + std::to_string(i)), lengthy) << i;
    }
    EXPECT_EQ(Value(client.get(), "last"), "the last one");
  }
}

TEST_F(DiskTest, WritesWaitWhileTheDiskHangsAndNoneIsRefused) {
  if (test_support::kThreadSanitizer || test_support::kAddressSanitizer) {
    GTEST_SKIP() << "the preloaded library is not instrumented";
  }
  const test_support::TemporaryDirectory other;
  const std::string hangs = other.path() + "/hangs";
  const test_support::EnvironmentVariable preload("LD_PRELOAD",
                                                  test_support::TestProgramPath("hanging_sync.so"));
  const test_support::EnvironmentVariable when("GANNET_HANGING_SYNC", hangs);
  ServerProcess server({"--data=" + path_, "--sync_interval_ms=1"});
  const auto watcher = Connect(server);
  ASSERT_NE(watcher, nullptr);
  std::ofstream{hangs};
  std::atomic<bool> enough{false};
  std::atomic<uint64_t> put{0};
  std::atomic<uint64_t> refused{0};
  const auto put_on = [&](size_t value_bytes) {
    const auto client = Connect(server);
    const std::string value(value_bytes, 'v');
    const std::string key = "key" + std::to_string(value_bytes);
    while (!enough) {
      if (client->Put(key, value).ok() && client->Incr("counter", 1).ok()) {
        ++put;
      } else {
        ++refused;
      }
    }
  };
  std::thread shorts(put_on, 100);
  std::thread longs(put_on, 1 << 20);
  // A second after the interval the server takes no more.
  while (StatsOf(watcher.get()).disk_behind_ms < 1'500) test_support::Rest();
  const uint64_t before = put;
  std::filesystem::remove(hangs);
  while (put < before + 100 && refused == 0) test_support::Rest();
  enough = true;
  shorts.join();
  longs.join();
  EXPECT_EQ(refused, 0u);
  EXPECT_EQ(StatsOf(watcher.get()).disk_refused, 0u);
  EXPECT_EQ(Value(watcher.get(), "counter"), std::to_string(put)) << "each was done once";
}

// A busy cloud disk.
TEST_F(DiskTest, RefusesNothingWhileEachSyncTakesLongerThanTheInterval) {
  if (test_support::kThreadSanitizer || test_support::kAddressSanitizer) {
    GTEST_SKIP() << "the preloaded library is not instrumented";
  }
  const test_support::EnvironmentVariable preload("LD_PRELOAD",
                                                  test_support::TestProgramPath("hanging_sync.so"));
  const test_support::EnvironmentVariable slow("GANNET_SYNC_MS", "800");
  ServerProcess server({"--data=" + path_, "--sync_interval_ms=200"});
  const auto client = Connect(server);
  ASSERT_NE(client, nullptr);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(4);
  int refused = 0;
  int put = 0;
  for (; std::chrono::steady_clock::now() < end; ++put) {
    refused += !client->Put("key" + std::to_string(put % 1'000), std::string(100, 'v')).ok();
  }
  EXPECT_EQ(refused, 0) << "of " << put;
  EXPECT_EQ(StatsOf(client.get()).disk_refused, 0u);
}

TEST_F(DiskTest, WritesASnapshotThatIsAskedFor) {
  ServerProcess server({"--data=" + path_});
  const auto client = Connect(server);
  ASSERT_NE(client, nullptr);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(client->Put("key" + std::to_string(i), "value").ok());
  }
  EXPECT_FALSE(client->Storage(0)->snapshot.has_value());
  const auto storage = client->Snapshot(0, std::chrono::seconds(20));
  ASSERT_TRUE(storage.ok()) << storage.status();
  EXPECT_EQ(storage->sync, "interval");
  EXPECT_EQ(storage->directory, path_);
  ASSERT_TRUE(storage->snapshot.has_value());
  EXPECT_EQ(storage->snapshot->items, 100u);
  EXPECT_GT(storage->snapshot->position, 0u);
  server.Kill();
  Run({"--check=" + path_}, 0, "snapshot_items 100\n");
}

TEST_F(DiskTest, SaysThatThereIsNoDiskForASnapshot) {
  ServerProcess server;
  const auto client = Connect(server);
  ASSERT_NE(client, nullptr);
  const absl::Status status = client->Snapshot(0).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("start it with --data=DIR"));
  EXPECT_EQ(client->Storage(0)->sync, "");
}

// Each thread counts one key up, and puts its last number into a key of its own.
TEST_F(DiskTest, LosesNothingThatItAcknowledgedAfterKill9WithSyncAlways) {
  constexpr int kThreads = 3;
  ServerProcess server({"--data=" + path_, "--sync=always"});
  EXPECT_THAT(server.ready_line(), HasSubstr(" disk=always"));
  std::array<std::atomic<int64_t>, kThreads> counted{};
  for (int life = 0; life < 3; ++life) {
    std::atomic<int> writes{0};
    std::vector<std::thread> writers;
    for (int i = 0; i < kThreads; ++i) {
      writers.emplace_back([&, i] {
        const auto client = Connect(server);
        for (;; ++writes) {
          const auto number = client->Incr("counter", 1);
          if (!number.ok()) return;
          counted[i] = *number;
          const auto put = client->Put("key" + std::to_string(i), std::to_string(*number));
          if (!put.ok()) return;
        }
      });
    }
    while (writes < 200) test_support::Rest();
    server.Kill();
    for (std::thread& writer : writers) writer.join();
    server.Restart();
    const auto client = Connect(server);
    ASSERT_NE(client, nullptr);
    const int64_t counter = std::atoll(Value(client.get(), "counter").c_str());
    for (int i = 0; i < kThreads; ++i) {
      EXPECT_GE(counter, counted[i]);
      EXPECT_LE(counter, *std::max_element(counted.begin(), counted.end()) + kThreads);
      const int64_t found = std::atoll(Value(client.get(), "key" + std::to_string(i)).c_str());
      // The last PUT may not have been answered.
      EXPECT_LE(found, counted[i]);
      EXPECT_GT(found, 0);
    }
  }
}

TEST_F(DiskTest, TakesAllWritesWithSyncAlways) {
  ServerProcess server({"--data=" + path_, "--sync=always", "--on_full=evict"});
  const std::string lengthy(3 << 20, 'l');
  {
    const auto client = Connect(server);
    ASSERT_NE(client, nullptr);
    EXPECT_EQ(StatsOf(client.get()).disk_sync, 3u);
    ASSERT_TRUE(client->Put("long", lengthy).ok());
    EXPECT_EQ(Value(client.get(), "long"), lengthy);
    ASSERT_TRUE(client->Put("key", "a").ok());
    EXPECT_EQ(client->Put("key", "x", {.only_if_absent = true}).status().code(),
              absl::StatusCode::kAlreadyExists);
    ASSERT_TRUE(client->Append("key", "b").ok());
    EXPECT_TRUE(*client->Touch("key", std::chrono::hours(1)));
    EXPECT_EQ(Value(client.get(), "key"), "ab");
    const auto lock = client->AcquireLock("key");
    ASSERT_TRUE(lock.ok()) << lock.status();
    const auto version = client->Put("key", "abc");
    EXPECT_EQ(client->Put("key", "x", {.only_if_version = 7, .lock = &*lock}).status().code(),
              absl::StatusCode::kFailedPrecondition);
    ASSERT_TRUE(client->Put("key", "ab", {.only_if_version = *version, .lock = &*lock}).ok());
    ASSERT_TRUE(client->Put("gone", "x").ok());
    EXPECT_TRUE(*client->Delete("gone"));
    EXPECT_EQ(StatsOf(client.get()).disk_behind_bytes, 0u);
  }
  server.Kill();
  server.Restart();
  const auto client = Connect(server);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(Value(client.get(), "key"), "ab");
  EXPECT_EQ(Value(client.get(), "long"), lengthy);
  EXPECT_EQ(Value(client.get(), "gone"), "nothing");
  EXPECT_EQ(*client->Flush(), 2u);
  EXPECT_EQ(Value(client.get(), "key"), "nothing");
}

TEST_F(DiskTest, RestoresASnapshotOfAnotherServer) {
  {
    ServerProcess server({"--data=" + path_});
    const auto client = Connect(server);
    ASSERT_NE(client, nullptr);
    ASSERT_TRUE(client->Put("key", "value").ok());
    server.process().Signal(SIGTERM);
    EXPECT_EQ(server.process().Wait(), 0);
  }
  const std::string other = path_ + "/other";
  ASSERT_EQ(mkdir(other.c_str(), 0700), 0);
  ServerProcess server({"--data=" + other, "--restore_from=" + path_});
  {
    const auto client = Connect(server);
    ASSERT_NE(client, nullptr);
    EXPECT_EQ(Value(client.get(), "key"), "value");
  }
  server.Kill();
  Run({"--check=" + other}, 0, "puts 1\n");
  Run({"--data=" + other, "--restore_from=" + path_}, 1, "has items already");
}

TEST_F(DiskTest, RefusesAJournalWhoseEndWasCutOffUntilItIsToldToStart) {
  ServerProcess server({"--data=" + path_, "--sync=always"});
  {
    const auto client = Connect(server);
    ASSERT_NE(client, nullptr);
    for (const char* key : {"first", "second"}) ASSERT_TRUE(client->Put(key, "value").ok());
  }
  server.Kill();
  const std::string segment = path_ + "/journal-0000000000000000";
  const auto made = std::filesystem::file_size(segment);
  std::filesystem::resize_file(segment, 64 + 88);  // the header and the first record
  const std::string says = "had " + std::to_string(made) + " before anything was written to it";
  Run({"--check=" + path_}, 1, says);
  Run({"--data=" + path_}, 1, says);
  std::filesystem::resize_file(segment, made);  // as the message says
  Run({"--check=" + path_}, 0, "journal_changes 1\n");
  server.Restart();
  const auto client = Connect(server);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(Value(client.get(), "first"), "value");
  EXPECT_EQ(Value(client.get(), "second"), "nothing");
}

TEST_F(DiskTest, TakesNoWriteOnceItsDirectoryIsElsewhere) {
  const std::string data = path_ + "/data";
  ServerProcess server({"--data=" + data, "--sync=always"});
  const auto client = Connect(server);
  ASSERT_NE(client, nullptr);
  ASSERT_TRUE(client->Put("key", "value").ok());
  std::filesystem::rename(data, path_ + "/gone");  // files come while it would be removed
  EXPECT_TRUE(server.process().AwaitStderr("was removed or renamed while the server runs"));
  EXPECT_FALSE(client->Put("key", "another").ok());
  EXPECT_EQ(Value(client.get(), "key"), "value");
}

// An item that somebody found expired, and a machine whose clock is an hour behind at the restart.
TEST_F(DiskTest, WhatHasExpiredStaysSoIfTheClockIsSetBack) {
  if (test_support::kThreadSanitizer || test_support::kAddressSanitizer) {
    GTEST_SKIP() << "the preloaded library is not instrumented";
  }
  const std::string memory = "/dev/shm/gannet-clock-" + std::to_string(getpid());
  for (const std::string& where : {"--data=" + path_ + "/data", "--memory_file=" + memory}) {
    ServerProcess server({where});
    auto client = Connect(server);
    ASSERT_NE(client, nullptr);
    ASSERT_TRUE(client->Put("short", "value", {.ttl = std::chrono::milliseconds(50)}).ok());
    ASSERT_TRUE(client->Put("long", "value", {.ttl = std::chrono::hours(2)}).ok());
    ASSERT_TRUE(HoldsSoon([&] { return Value(client.get(), "short") == "nothing"; }));
    // The next note says so. Nothing is written meanwhile.
    const std::string note = where.starts_with("--data") ? path_ + "/data/clock" : memory;
    const std::string before = FileBytes(note);
    ASSERT_TRUE(HoldsSoon([&] { return FileBytes(note) != before; })) << where;
    server.Kill();
    const test_support::EnvironmentVariable preload(
        "LD_PRELOAD", test_support::TestProgramPath("other_clock.so"));
    const test_support::EnvironmentVariable behind("GANNET_CLOCK_AHEAD_S", "-3600");
    server.Restart();
    client = Connect(server);
    ASSERT_NE(client, nullptr);
    EXPECT_EQ(Value(client.get(), "short"), "nothing") << where;
    EXPECT_EQ(Value(client.get(), "long"), "value") << where;
    EXPECT_THAT(server.process().Stderr(), HasSubstr("behind what the last run saw")) << where;
    server.Kill();
  }
  std::filesystem::remove(memory);
}

TEST_F(DiskTest, RefusesWhatIsNotItsOwnDirectory) {
  Run({"--data=" + path_ + "/none/data"}, 1, "is the path right?");
  Run({"--check=" + path_ + "/none"}, 1, "is the path right?");
  Run({"--data=" + path_ + "/new", "--restore_from=" + path_ + "/none"}, 1, "is the path right?");
  std::filesystem::remove(path_ + "/new");
  std::ofstream(path_ + "/photo.jpg") << "x";
  Run({"--data=" + path_}, 1, "give an empty one");
  std::filesystem::remove(path_ + "/photo.jpg");
  chmod(path_.c_str(), 0777);
  Run({"--data=" + path_}, 1, "chmod go-w");
  Run({"--check=" + path_}, 1, "has neither a snapshot nor a journal");  // whoever may write to it
  Run({"--data=" + path_, "--sync=often"}, 2, "--sync must be");
}

}  // namespace
}  // namespace gannet
