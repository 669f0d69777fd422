// A group of three real processes loses members under load from several clients, one way after the
// other. What the clients saw of each key is one history, across all epochs.

#include <gannet/client.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "tests/integration/group_of_processes.h"
#include "tests/linearizability/linearizability.h"
#include "tests/support/test_seed.h"

namespace gannet {
namespace {

using linearizability::Kind;
using linearizability::Operation;
using linearizability::Outcome;

constexpr int kLeaseMs = 600;
// Longer than any takeover, so that almost every write has a known outcome.
constexpr std::chrono::milliseconds kDeadline{10000};
constexpr int kClients = 3;
constexpr int kKeys = 2;
constexpr char kCounter[] = "counter";

std::string Key(int i) { return absl::StrCat("key", i); }

// One client with a thread. It keeps what it saw of each key.
class Observer {
 public:
  Observer(const std::string& endpoint, uint32_t number, uint64_t seed)
      : number_(number), random_(seed + number) {
    auto client = Client::Connect({endpoint});
    EXPECT_TRUE(client.ok()) << client.status();
    if (!client.ok()) return;
    client_ = *std::move(client);
    thread_ = std::thread([this] {
      while (!stop_.load(std::memory_order_relaxed)) Step();
    });
  }
  ~Observer() { Stop(); }

  void Stop() {
    stop_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
  }
  uint64_t answers() const { return answers_.load(std::memory_order_relaxed); }

  // The rest may be called after Stop.
  const std::vector<Operation>& seen(int key) const { return seen_[key]; }
  uint64_t incremented() const { return incremented_; }
  uint64_t increments_unknown() const { return increments_unknown_; }
  uint64_t unknown() const { return unknown_; }
  int64_t longest_ns(Kind kind) const { return longest_ns_[kind == Kind::kGet ? 0 : 1]; }

 private:
  void Step() {
    if (random_() % 8 == 0) return Increment();
    const int key = static_cast<int>(random_() % kKeys);
    const uint64_t what = random_() % 8;
    Operation op{.client = number_, .invoke_ns = MonotonicNs()};
    absl::Status status;
    if (what < 4) {
      status = Get(key, &op);
    } else if (what < 7) {
      op.kind = Kind::kPut;
      op.value = uint64_t{number_ + 1} << 40 | ++values_;
      status = client_->Put(Key(key), absl::StrCat(op.value), {}, kDeadline).status();
    } else {
      op.kind = Kind::kDelete;
      const auto deleted = client_->Delete(Key(key), {}, kDeadline);
      if (deleted.ok()) op.found = *deleted;
      status = deleted.status();
    }
    op.respond_ns = MonotonicNs();
    int64_t& longest = longest_ns_[op.kind == Kind::kGet ? 0 : 1];
    longest = std::max(longest, op.respond_ns - op.invoke_ns);
    if (status.ok()) {
      answers_.fetch_add(1, std::memory_order_relaxed);
    } else {
      op.outcome = Outcome::kUnknown;
      ++unknown_;
    }
    if (status.ok() || op.kind != Kind::kGet) seen_[key].push_back(op);
  }

  absl::Status Get(int key, Operation* op) {
    const auto got = client_->Get(Key(key), kDeadline);
    if (!got.ok()) return got.status();
    op->found = got->has_value();
    if (op->found) {
      EXPECT_TRUE(absl::SimpleAtoi((*got)->data, &op->value)) << (*got)->data;
    }
    return absl::OkStatus();
  }

  // What this client reads must grow, as nobody counts down.
  void Increment() {
    const auto now = client_->Incr(kCounter, 1, {}, kDeadline);
    if (!now.ok()) {
      ++increments_unknown_;
      return;
    }
    EXPECT_GT(*now, counter_);
    counter_ = *now;
    ++incremented_;
  }

  const uint32_t number_;
  std::mt19937_64 random_;
  std::unique_ptr<Client> client_;
  std::array<std::vector<Operation>, kKeys> seen_;
  std::array<int64_t, 2> longest_ns_{};
  uint64_t values_ = 0;
  uint64_t incremented_ = 0;
  uint64_t increments_unknown_ = 0;
  uint64_t unknown_ = 0;
  int64_t counter_ = 0;
  std::atomic<uint64_t> answers_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class GroupHistoryTest : public testing::Test {
 protected:
  void SetUp() override {
    seed_ = test_support::TestSeed();
    random_.seed(seed_);
    group_.AwaitAllInSync();
    ASSERT_FALSE(HasFailure());
    for (uint32_t i = 0; i < kClients; ++i) {
      all_.push_back(std::make_unique<Observer>(group_.Endpoint(), i, seed_));
    }
    ASSERT_FALSE(HasFailure());
    AwaitAnswers();
  }

  // What each member logged helps to understand a failure.
  void TearDown() override {
    all_.clear();
    if (!HasFailure()) return;
    for (int i = 0; i < GroupOfProcesses::kMembers; ++i) {
      std::cout << "--- n" << i + 1 << "\n" << group_.Log(i) << std::endl;
    }
  }

  // Returns once each client had another 20 answers.
  void AwaitAnswers() {
    const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
    for (const auto& one : all_) {
      const uint64_t wanted = one->answers() + 20;
      while (one->answers() < wanted) {
        ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "a client gets no answers";
        std::this_thread::yield();
      }
    }
  }

  // Kills a member, waits for answers without it, starts it again, and waits until it is in sync.
  void KillAndRestart(int member, uint64_t epoch_after) {
    group_.member(member).Kill();
    AwaitAnswers();
    group_.member(member).Restart();
    group_.AwaitAllInSync(epoch_after);
    AwaitAnswers();
  }

  void KillPrimary() {
    const auto now = group_.AwaitAllInSync();
    KillAndRestart(now.primary, now.epoch + 1);
  }
  void KillBackup() {
    const auto now = group_.AwaitAllInSync();
    const int member = static_cast<int>(random_() % 2);
    KillAndRestart((now.primary + 1 + member) % GroupOfProcesses::kMembers, now.epoch);
  }
  // The clients get answers while the primary is stopped, so another took over.
  void StopPrimary() {
    const auto now = group_.AwaitAllInSync();
    group_.member(now.primary).process().Stop();
    AwaitAnswers();
    group_.member(now.primary).process().Signal(SIGCONT);
    group_.AwaitAllInSync(now.epoch + 1);
    AwaitAnswers();
  }
  void StopEtcd() {
    const auto before = group_.AwaitAllInSync();
    group_.etcd().Stop();
    AwaitAnswers();
    group_.etcd().Signal(SIGCONT);
    EXPECT_EQ(group_.AwaitAllInSync().epoch, before.epoch);
  }

  void Check() {
    for (const auto& one : all_) one->Stop();
    CheckKeys();
    CheckCounter();
  }

  void CheckKeys() {
    for (int key = 0; key < kKeys; ++key) {
      std::vector<Operation> history;
      for (const auto& one : all_) {
        history.insert(history.end(), one->seen(key).begin(), one->seen(key).end());
      }
      std::string why;
      EXPECT_TRUE(linearizability::Check(history, &why)) << Key(key) << ": " << why;
      std::cout << history.size() << " operations" << std::endl;
    }
    for (const auto& one : all_) {
      std::cout << one->unknown() << " calls without an answer; longest GET "
                << one->longest_ns(Kind::kGet) / 1000000 << " ms, longest write "
                << one->longest_ns(Kind::kPut) / 1000000 << " ms" << std::endl;
    }
  }

  // Each INCR was applied once. One without an answer was applied once or never.
  void CheckCounter() {
    uint64_t sure = 0;
    uint64_t unknown = 0;
    for (const auto& one : all_) {
      sure += one->incremented();
      unknown += one->increments_unknown();
    }
    auto client = Client::Connect({group_.Endpoint()});
    ASSERT_TRUE(client.ok()) << client.status();
    const auto value = (*client)->Incr(kCounter, 0, {}, kDeadline);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_GE(static_cast<uint64_t>(*value), sure);
    EXPECT_LE(static_cast<uint64_t>(*value), sure + unknown);
    std::cout << sure << " increments, " << unknown << " without an answer" << std::endl;
  }

  uint64_t seed_ = 0;
  std::mt19937_64 random_;
  GroupOfProcesses group_{kLeaseMs};
  std::vector<std::unique_ptr<Observer>> all_;
};

// GANNET_GROUP_ROUNDS says how many faults there are.
TEST_F(GroupHistoryTest, EachKeyHasOneHistoryAcrossEpochs) {
  const char* given = std::getenv("GANNET_GROUP_ROUNDS");
  const int rounds = given != nullptr ? std::atoi(given) : 20;
  for (int i = 0; i < rounds && !HasFailure(); ++i) {
    switch (i % 4) {
      case 0:
        KillPrimary();
        break;
      case 1:
        KillBackup();
        break;
      case 2:
        StopPrimary();
        break;
      case 3:
        StopEtcd();
        break;
    }
  }
  Check();
}

}  // namespace
}  // namespace gannet
