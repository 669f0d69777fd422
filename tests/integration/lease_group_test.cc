// Clients with near caches GET popular keys of a group of real processes from copies, while its
// primary is killed, stands still or hands over, and the next one takes writes of these keys at
// once. What all saw of each key is one history, across all epochs.

#include <gannet/client.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/client/api/patient_options.h"
#include "tests/integration/group_of_processes.h"
#include "tests/linearizability/linearizability.h"
#include "tests/support/rest.h"

namespace gannet {
namespace {

using linearizability::Kind;
using linearizability::Operation;
using linearizability::Outcome;

constexpr int kLeaseMs = 600;
constexpr size_t kKeys = 2;
constexpr int kReaders = 2;
// So many answers from copies show that a key is leased.
constexpr uint64_t kAnswers = 200;

std::string KeyOf(size_t key) { return absl::StrCat("popular", key); }

// A client with a near cache, whose thread GETs the keys in turn.
class Reader {
 public:
  Reader(const std::string& endpoint, uint32_t number) : number_(number) {
    Options options = PatientOptions();
    options.near_cache_bytes = 1 << 20;
    auto client = Client::Connect({endpoint}, options);
    EXPECT_TRUE(client.ok()) << client.status();
    if (!client.ok()) return;
    client_ = *std::move(client);
    thread_ = std::thread([this] {
      for (size_t i = 0; !stop_.load(std::memory_order_relaxed); ++i) Get(i % kKeys);
    });
  }
  ~Reader() { Stop(); }

  void Stop() {
    stop_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
  }
  // GETs that were answered from copies.
  uint64_t answers() const { return client_->Info()[0].near_cache_answers; }
  // After Stop.
  const std::vector<Operation>& seen(size_t key) const { return seen_[key]; }

 private:
  void Get(size_t key) {
    Operation op{.client = number_, .invoke_ns = MonotonicNs()};
    const auto got = client_->Get(KeyOf(key));
    op.respond_ns = MonotonicNs();
    EXPECT_TRUE(got.ok()) << got.status();
    if (!got.ok()) return;
    op.found = got->has_value();
    if (op.found) {
      EXPECT_TRUE(absl::SimpleAtoi((*got)->data, &op.value)) << (*got)->data;
    }
    Keep(key, op);
  }
  // Of GETs in a row that found the same, the first and the last say all.
  void Keep(size_t key, const Operation& op) {
    std::vector<Operation>& seen = seen_[key];
    const size_t n = seen.size();
    const auto same = [&op](const Operation& it) {
      return it.found == op.found && it.value == op.value;
    };
    if (n >= 2 && same(seen[n - 1]) && same(seen[n - 2])) {
      seen.back() = op;
    } else {
      seen.push_back(op);
    }
  }

  const uint32_t number_;
  std::unique_ptr<Client> client_;
  std::array<std::vector<Operation>, kKeys> seen_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class LeaseGroupTest : public testing::Test {
 protected:
  void SetUp() override {
    random_.seed(test_support::TestSeed());
    group_.AwaitAllInSync();
    ASSERT_FALSE(HasFailure());
    auto client = Client::Connect({group_.Endpoint()}, PatientOptions());
    ASSERT_TRUE(client.ok()) << client.status();
    writer_ = *std::move(client);
    for (size_t key = 0; key < kKeys; ++key) Put(key);
    for (uint32_t i = 1; i <= kReaders; ++i) {
      readers_.push_back(std::make_unique<Reader>(group_.Endpoint(), i));
    }
    ASSERT_FALSE(HasFailure());
  }

  // What each member logged helps to understand a failure.
  void TearDown() override {
    if (!HasFailure()) return;
    for (int i = 0; i < GroupOfProcesses::kMembers; ++i) {
      std::cout << "--- n" << i + 1 << "\n" << group_.Log(i) << std::endl;
    }
  }

  void Put(size_t key) {
    Operation op{.kind = Kind::kPut, .value = ++values_, .invoke_ns = MonotonicNs()};
    const auto put = writer_->Put(KeyOf(key), absl::StrCat(op.value));
    op.respond_ns = MonotonicNs();
    if (!put.ok()) op.outcome = Outcome::kUnknown;
    writes_[key].push_back(op);
  }

  // Returns once each reader has answered from copies again. A key that was written is not leased
  // for a while.
  void AwaitCopies() {
    const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
    for (const auto& reader : readers_) {
      const uint64_t wanted = reader->answers() + kAnswers;
      while (reader->answers() < wanted) {
        ASSERT_LT(std::chrono::steady_clock::now(), give_up) << "nobody answers from copies";
        test_support::Rest();
      }
    }
  }

  enum class How : uint8_t { kKilled, kStandsStill, kHandsOver };
  // The primary loses its place while copies answer, and keys are written as soon as another member
  // takes the writes. The former one would take those that come while it hands over.
  void Unseat(How how) {
    const auto before = group_.AwaitAllInSync();
    AwaitCopies();
    if (HasFailure()) return;
    ServerProcess& primary = group_.member(before.primary);
    if (how == How::kKilled) primary.Kill();
    if (how == How::kStandsStill) primary.process().Stop();
    if (how == How::kHandsOver) {
      primary.process().Signal(SIGTERM);
      group_.AwaitInSync(1, before.epoch + 1);
    }
    const size_t first = random_() % kKeys;
    Put(first);
    Put((first + 1) % kKeys);
    if (how == How::kStandsStill) {
      primary.process().Signal(SIGCONT);
    } else {
      if (how == How::kHandsOver) {
        EXPECT_EQ(primary.process().Wait(), 0);
      }
      primary.Restart();
    }
    group_.AwaitAllInSync(before.epoch + 1);
  }

  void Check() {
    uint64_t answers = 0;
    for (const auto& reader : readers_) {
      answers += reader->answers();
      reader->Stop();
    }
    for (size_t key = 0; key < kKeys; ++key) {
      std::vector<Operation> history = writes_[key];
      for (const auto& reader : readers_) {
        history.insert(history.end(), reader->seen(key).begin(), reader->seen(key).end());
      }
      std::string why;
      EXPECT_TRUE(linearizability::Check(history, &why)) << KeyOf(key) << ": " << why;
      std::cout << history.size() << " operations kept of a key" << std::endl;
    }
    std::cout << answers << " answers from copies" << std::endl;
  }

  std::mt19937_64 random_;
  GroupOfProcesses group_{kLeaseMs, {}, {"--item_lease_ms=100"}};
  std::unique_ptr<Client> writer_;
  std::array<std::vector<Operation>, kKeys> writes_;
  std::vector<std::unique_ptr<Reader>> readers_;
  uint64_t values_ = 0;
};

TEST_F(LeaseGroupTest, AnswersFromCopiesAreOfOneHistoryAcrossEpochs) {
  std::array all = {How::kKilled, How::kStandsStill, How::kHandsOver};
  std::shuffle(all.begin(), all.end(), random_);
  for (const How how : all) {
    if (!HasFailure()) Unseat(how);
  }
  Check();
}

}  // namespace
}  // namespace gannet
