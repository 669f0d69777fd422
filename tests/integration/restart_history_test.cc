// A server is killed under load from several clients, and started again, many times. What they saw
// of each key is one history, across all restarts.

#include <gannet/client.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/client/api/patient_options.h"
#include "tests/linearizability/linearizability.h"
#include "tests/support/rest.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using linearizability::Kind;
using linearizability::Operation;
using linearizability::Outcome;

constexpr std::chrono::milliseconds kDeadline{500};
constexpr int kClients = 3;
constexpr size_t kFillerBytes = 8000;

// What is written, and where it may go.
struct Load {
  int keys = 2;
  uint64_t steps = 400;        // until a kill, at most
  size_t value_bytes_min = 0;  // of most values
  bool evicts = false;
};
// More than the memory has room for, and long enough for a disk. Some keys are used much more than
// others.
constexpr Load kEvicted{.keys = 1500, .steps = 20'000, .value_bytes_min = 4096, .evicts = true};

std::string Key(int i) { return absl::StrCat("key", i); }

void AwaitServer(Client& client) {
  const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
  while (!client.Get("nothing", kDeadline).ok()) {
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
  }
}

// One client. It keeps what it saw of each key.
class Observer {
 public:
  Observer(const std::string& endpoint, uint32_t number, uint64_t seed, const Load& load)
      : number_(number), load_(load), random_(seed + number), seen_(load.keys) {
    auto client = Client::Connect({endpoint}, PatientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    if (client.ok()) client_ = *std::move(client);
  }

  // Operates until `killed`, or until it gets no answer.
  void Run(const std::atomic<bool>& killed, std::atomic<uint64_t>* steps) {
    while (!killed.load(std::memory_order_relaxed) && Step()) {
      steps->fetch_add(1, std::memory_order_relaxed);
    }
    ended_.store(true, std::memory_order_relaxed);
  }
  bool ended() const { return ended_.load(std::memory_order_relaxed); }

  // Everything that Run called has returned, and who was called was dead at `dead_ns`.
  void EndUnknown(int64_t dead_ns) {
    for (std::vector<Operation>& seen : seen_) {
      for (Operation& op : seen) {
        if (op.outcome != Outcome::kUnknown || op.until_ns != linearizability::kNever) continue;
        op.until_ns = dead_ns;
        ++unknown_;
      }
    }
    ended_.store(false, std::memory_order_relaxed);
  }
  Client& client() { return *client_; }
  const std::vector<Operation>& seen(int key) const { return seen_[key]; }
  // The value that came with each version.
  const std::map<uint64_t, uint64_t>& versions() const { return versions_; }
  uint64_t unknown() const { return unknown_; }

 private:
  // Returns false if there was no answer.
  bool Step() {
    const uint64_t keys = load_.evicts ? 1 + random_() % load_.keys : load_.keys;
    const int key = static_cast<int>(random_() % keys);
    const uint64_t what = random_() % 8;
    Operation op{.client = number_, .invoke_ns = MonotonicNs()};
    absl::Status status;
    if (what < 4) {
      status = Get(key, &op);
    } else if (what < 7) {
      status = Put(key, &op);
    } else {
      op.kind = Kind::kDelete;
      const auto deleted = client_->Delete(Key(key), {}, kDeadline);
      if (deleted.ok()) op.found = *deleted;
      status = deleted.status();
    }
    op.respond_ns = MonotonicNs();
    if (!status.ok()) op.outcome = Outcome::kUnknown;
    if (status.ok() || op.kind != Kind::kGet) seen_[key].push_back(op);
    return status.ok();
  }

  absl::Status Get(int key, Operation* op) {
    const auto got = client_->Get(Key(key), kDeadline);
    if (!got.ok()) return got.status();
    op->found = got->has_value();
    if (!op->found) return absl::OkStatus();
    const std::string& text = (*got)->data;
    EXPECT_TRUE(absl::SimpleAtoi(text.substr(0, text.find(' ')), &op->value)) << text;
    EXPECT_TRUE(versions_.emplace((*got)->info.version, op->value).first->second == op->value);
    return absl::OkStatus();
  }

  // Every value is another one.
  absl::Status Put(int key, Operation* op) {
    op->kind = Kind::kPut;
    op->value = uint64_t{number_ + 1} << 40 | ++values_;
    const size_t more = load_.value_bytes_min + (random_() % 8 == 0 ? 8000 : random_() % 200);
    const auto version =
        client_->Put(Key(key), absl::StrCat(op->value, " ", std::string(more, 'x')), {}, kDeadline);
    if (version.ok()) {
      EXPECT_TRUE(versions_.emplace(*version, op->value).second);
    }
    return version.status();
  }

  const uint32_t number_;
  const Load load_;
  std::mt19937_64 random_;
  std::unique_ptr<Client> client_;
  std::vector<std::vector<Operation>> seen_;  // by key
  std::map<uint64_t, uint64_t> versions_;
  uint64_t values_ = 0;
  uint64_t unknown_ = 0;
  std::atomic<bool> ended_{false};
};

// Puts other keys, so that those that are observed have to go, and counts what came from a disk.
class Filler {
 public:
  explicit Filler(const std::string& endpoint) {
    auto client = Client::Connect({endpoint}, PatientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    if (client.ok()) client_ = *std::move(client);
  }

  // Until `killed`. A PUT without an answer does no harm: nobody looks for it.
  void Run(const std::atomic<bool>& killed) {
    constexpr uint64_t kPutsBetweenLooks = 16;
    const std::string value(kFillerBytes, 'f');
    while (!killed.load(std::memory_order_relaxed)) {
      (void)client_->Put(absl::StrCat("filler", ++fillers_), value, {}, kDeadline);
      if (fillers_ % kPutsBetweenLooks == 0) Look();
    }
  }
  Client& client() { return *client_; }
  // Whether some were seen that this server made.
  bool saw_reads() const { return saw_reads_.load(std::memory_order_relaxed); }
  void EndOfServer() { saw_reads_.store(false, std::memory_order_relaxed); }

 private:
  void Look() {
    const auto stats = client_->Stats().front().stats;
    if (!stats.ok()) return;
    if (stats->tier_reads > 0) saw_reads_.store(true, std::memory_order_relaxed);
    EXPECT_EQ(stats->tier_reads_failed, 0u) << "a stub whose value is not on the disk";
  }

  std::unique_ptr<Client> client_;
  uint64_t fillers_ = 0;
  std::atomic<bool> saw_reads_{false};
};

class Observers {
 public:
  Observers(const std::string& endpoint, uint64_t seed, const Load& load) : load_(load) {
    for (uint32_t i = 0; i < kClients; ++i) {
      all_.push_back(std::make_unique<Observer>(endpoint, i, seed, load));
    }
    if (load.evicts) filler_.emplace(endpoint);
  }

  // Lets the clients operate until they made so many steps, and some read from the disk, or none of
  // them gets an answer. Then kills the server.
  //
  // A write without an answer took effect before the server was dead, or never. For the next server
  // starts only when all calls have returned, and a client sends nothing for a call that returned.
  void RunAndKill(ServerProcess& server, uint64_t steps_wanted) {
    std::atomic<bool> killed{false};
    std::atomic<uint64_t> steps{0};
    std::vector<std::thread> threads;
    for (const auto& one : all_) ASSERT_NO_FATAL_FAILURE(AwaitServer(one->client()));
    if (filler_) {
      ASSERT_NO_FATAL_FAILURE(AwaitServer(filler_->client()));
    }
    for (const auto& one : all_) threads.emplace_back([&] { one->Run(killed, &steps); });
    if (filler_) threads.emplace_back([&] { filler_->Run(killed); });
    const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
    const auto all_ended = [&] {
      return std::ranges::all_of(all_, [](const auto& one) { return one->ended(); });
    };
    while (!all_ended() && (steps.load(std::memory_order_relaxed) < steps_wanted ||
                            (filler_ && !filler_->saw_reads()))) {
      test_support::Rest();
      if (std::chrono::steady_clock::now() < give_up) continue;
      ADD_FAILURE() << "too few steps, or nobody asked for what is on the disk";
      break;
    }
    server.Kill();
    const int64_t dead_ns = MonotonicNs();
    killed.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads) thread.join();
    for (const auto& one : all_) one->EndUnknown(dead_ns);
    if (filler_) filler_->EndOfServer();
  }

  void Check() const {
    uint64_t unknown = 0;
    std::map<uint64_t, uint64_t> versions;
    for (const auto& one : all_) {
      unknown += one->unknown();
      for (const auto& [version, value] : one->versions()) {
        EXPECT_EQ(versions.emplace(version, value).first->second, value)
            << "version " << version << " is of two values";
      }
    }
    uint64_t operations = 0;
    for (int key = 0; key < load_.keys; ++key) {
      std::vector<Operation> history;
      for (const auto& one : all_) {
        history.insert(history.end(), one->seen(key).begin(), one->seen(key).end());
      }
      operations += history.size();
      const auto evictions =
          load_.evicts ? linearizability::Evictions::kAnyTime : linearizability::Evictions::kNone;
      std::string why;
      EXPECT_TRUE(linearizability::Check(history, evictions, &why)) << Key(key) << ": " << why;
    }
    std::cout << operations << " operations, " << unknown << " writes without an answer"
              << std::endl;
  }

 private:
  const Load load_;
  std::vector<std::unique_ptr<Observer>> all_;
  std::optional<Filler> filler_;
};

// GANNET_KILLS says how often the server is killed.
void RunAcrossKills(const std::vector<std::string>& flags, const Load& load = {}) {
  const char* given = std::getenv("GANNET_KILLS");
  const int kills = given != nullptr ? std::atoi(given) : 4;
  const uint64_t seed = test_support::TestSeed();
  std::mt19937_64 random(seed);
  ServerProcess server(flags);
  Observers observers(server.endpoint(), seed, load);
  for (int i = 0; i < kills; ++i) {
    observers.RunAndKill(server, load.steps / 8 + random() % load.steps);
    server.Restart();
    if (::testing::Test::HasFailure()) return;
  }
  observers.RunAndKill(server, load.steps / 4);
  observers.Check();
}

TEST(RestartHistoryTest, EachKeyHasOneHistoryInAMemoryFile) {
  const std::string file = absl::StrCat("/dev/shm/gannet-restart-history-test-", getpid());
  RunAcrossKills({"--memory=32M", absl::StrCat("--memory_file=", file)});
  std::filesystem::remove(file);
}

// What is evicted goes to a disk, and outlives the server there, as its stub is in the file. A
// value may be missed at any time, but no older one comes back.
TEST(RestartHistoryTest, EachKeyHasOneHistoryInAMemoryFileWithADiskBehindIt) {
  const std::string file = absl::StrCat("/dev/shm/gannet-restart-history-test-", getpid());
  const test_support::TemporaryDirectory directory;
  RunAcrossKills({"--memory=8M", absl::StrCat("--memory_file=", file), "--on_full=evict",
                  "--tier=" + directory.path(), "--tier_bytes=1G"},
                 kEvicted);
  std::filesystem::remove(file);
}

TEST(RestartHistoryTest, EachKeyHasOneHistoryOnADiskWithSyncAlways) {
  const test_support::TemporaryDirectory directory;
  RunAcrossKills({"--memory=32M", "--data=" + directory.path(), "--sync=always"});
}

}  // namespace
}  // namespace gannet
