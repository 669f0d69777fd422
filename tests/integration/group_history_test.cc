// A group of three real processes loses members under load from several clients, one way after the
// other. What the clients saw of each key is one history, across all epochs.

#include <gannet/client.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/client/api/patient_options.h"
#include "tests/integration/group_observer.h"
#include "tests/integration/group_of_processes.h"
#include "tests/linearizability/history_file.h"
#include "tests/linearizability/linearizability.h"
#include "tests/support/rest.h"

namespace gannet {
namespace {

using linearizability::Operation;

constexpr int kLeaseMs = 600;
// One of them only GETs.
constexpr int kClients = 4;
constexpr int kKeys = GroupObserver::kKeys;
constexpr auto kDeadline = GroupObserver::kDeadline;

// Somebody who holds a lock while members are lost.
class LockHolder {
 public:
  explicit LockHolder(GroupOfProcesses* group) : group_(group) {
    // It learns of the others.
    auto client =
        Client::Connect({absl::StrCat("cluster:", group->member(0).endpoint())}, PatientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    if (client.ok()) client_ = *std::move(client);
  }

  // Takes the lock, and writes under it. Each version is larger than any before.
  void Take() {
    while (true) {  // on a busy machine it may be lost at once
      epoch_ = group_->Read().epoch;
      const auto lock = client_->AcquireLock(kKey, kDeadline);
      ASSERT_TRUE(lock.ok()) << lock.status();
      lock_ = *lock;
      const auto version = Write();
      if (absl::IsAborted(version.status())) continue;
      ASSERT_TRUE(version.ok()) << version.status();
      EXPECT_GT(*version, newest_);
      newest_ = *version;
      if (group_->Read().epoch == epoch_) return;
    }
  }
  // The lock is lost if another member became primary. Otherwise it is mostly still held: on a busy
  // machine a connection may break.
  void Check() {
    const bool lost = group_->Read().epoch != epoch_;
    const auto version = Write();
    if (!lost && version.ok()) {
      newest_ = *version;
      const absl::Status unlocked = client_->Unlock(lock_, kDeadline);
      EXPECT_TRUE(unlocked.ok() || absl::IsAborted(unlocked)) << unlocked;
      return;
    }
    EXPECT_TRUE(absl::IsAborted(version.status())) << version.status();
    losses_ += lost;
  }
  int losses() const { return losses_; }

 private:
  static constexpr char kKey[] = "locked";
  absl::StatusOr<uint64_t> Write() {
    return client_->Put(kKey, "x", {.only_if_version = newest_, .lock = &lock_}, kDeadline);
  }

  GroupOfProcesses* const group_;
  std::unique_ptr<Client> client_;
  Lock lock_;
  uint64_t epoch_ = 0;   // of the lock
  uint64_t newest_ = 0;  // version of what was written under a lock
  int losses_ = 0;
};

class GroupHistoryTest : public testing::Test {
 protected:
  void SetUp() override {
    seed_ = test_support::TestSeed();
    random_.seed(seed_);
    group_.AwaitAllInSync();
    ASSERT_FALSE(HasFailure());
    for (uint32_t i = 0; i < kClients; ++i) {
      const auto work = i == 0 ? GroupObserver::Work::kGets : GroupObserver::Work::kAll;
      all_.push_back(std::make_unique<GroupObserver>(group_.Endpoint(), i, work, seed_));
    }
    locks_ = std::make_unique<LockHolder>(&group_);
    ASSERT_FALSE(HasFailure());
    AwaitAnswers();
  }

  // What each member logged helps to understand a failure.
  void TearDown() override {
    if (!HasFailure()) return;
    for (const auto& one : all_) {
      one->Stop();
      std::cout << "--- a client; its last error: " << one->last_error() << "\n"
                << one->Log() << std::endl;
    }
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
        test_support::Rest();
      }
    }
  }

  // Kills a member, and waits for answers without it.
  void Kill(int member) {
    group_.member(member).Kill();
    ++kills_;
    AwaitAnswers();
  }
  // Starts a member again, and waits until all are in sync.
  void Restart(int member, uint64_t epoch_after) {
    group_.member(member).Restart();
    group_.AwaitAllInSync(epoch_after);
    AwaitAnswers();
  }

  void KillPrimary() {
    const auto now = group_.AwaitAllInSync();
    Kill(now.primary);
    Restart(now.primary, now.epoch + 1);
  }
  void KillBackup() {
    const auto now = group_.AwaitAllInSync();
    const int which = static_cast<int>(random_() % 2);
    const int member = (now.primary + 1 + which) % GroupOfProcesses::kMembers;
    Kill(member);
    Restart(member, now.epoch);
  }
  // The last one that is left has all that was acknowledged.
  void KillAllButOne() {
    const auto first = group_.AwaitAllInSync();
    Kill(first.primary);
    const auto second = group_.AwaitInSync(2, first.epoch + 1);
    Kill(second.primary);
    group_.member(first.primary).Restart();
    Restart(second.primary, second.epoch + 1);
  }
  // It hands over before it ends, unless the machine is so busy that its backups take over first.
  void TerminatePrimary() {
    const auto now = group_.AwaitAllInSync();
    test_support::ChildProcess& process = group_.member(now.primary).process();
    process.Signal(SIGTERM);
    EXPECT_EQ(process.Wait(), 0);
    hand_overs_ += group_.Read().primary != now.primary;
    ++terminations_;
    AwaitAnswers();
    Restart(now.primary, now.epoch + 1);
  }
  // The clients get answers while the primary is stopped, so another took over.
  void StopPrimary() {
    const auto now = group_.AwaitAllInSync();
    test_support::ChildProcess& process = group_.member(now.primary).process();
    process.Stop();
    ++stops_;
    AwaitAnswers();
    process.Signal(SIGCONT);
    group_.AwaitAllInSync(now.epoch + 1);
    AwaitAnswers();
  }
  void StopEtcd(std::chrono::seconds at_least) {
    const auto before = group_.AwaitAllInSync();
    const auto goes_on = std::chrono::steady_clock::now() + at_least;
    group_.etcd().Stop();
    ++etcd_stops_;
    do {
      AwaitAnswers();
    } while (std::chrono::steady_clock::now() < goes_on && !HasFailure());
    group_.etcd().Signal(SIGCONT);
    EXPECT_EQ(group_.AwaitAllInSync().epoch, before.epoch);
  }

  void Fault(int i, bool long_form) {
    switch (i % 6) {
      case 0:
        return KillPrimary();
      case 1:
        return KillBackup();
      case 2:
        return StopPrimary();
      case 3:
        return StopEtcd(std::chrono::seconds(long_form && i == 3 ? 60 : 0));
      case 4:
        return TerminatePrimary();
      default:
        return KillAllButOne();
    }
  }

  void Check() {
    for (const auto& one : all_) one->Stop();
    std::cout << kills_ << " kills; " << stops_ << " stops of the primary and " << terminations_
              << " terminations, at " << hand_overs_ << " of which it handed over; " << etcd_stops_
              << " stops of etcd; " << locks_->losses() << " locks lost" << std::endl;
    EXPECT_GT(locks_->losses(), 0);
    CheckKeys();
    CheckCounter();
    std::cout << all_[0]->reads_disbelieved() << " READs disbelieved" << std::endl;
    // READs of a stopped primary's memory go on, and its lease is over some time.
    if (stops_ > 0) {
      EXPECT_GT(all_[0]->reads_disbelieved(), 0u);
    }
  }

  // GANNET_HISTORY: where to write what was seen, for other checkers.
  void CheckKeys() {
    const char* const path = std::getenv("GANNET_HISTORY");
    std::ofstream file;
    if (path != nullptr) file.open(path);
    for (int key = 0; key < kKeys; ++key) {
      std::vector<Operation> history;
      for (const auto& one : all_) {
        history.insert(history.end(), one->seen(key).begin(), one->seen(key).end());
      }
      if (path != nullptr) {
        linearizability::WriteHistory(GroupObserver::Key(key), history, &file);
        EXPECT_TRUE(file.flush()) << path;
      }
      std::string why;
      EXPECT_TRUE(linearizability::Check(history, &why)) << GroupObserver::Key(key) << ": " << why;
      std::cout << history.size() << " operations in the history of a key" << std::endl;
    }
    for (const auto& one : all_) {
      std::cout << one->operations() << " operations, " << one->unknown()
                << " of them without an answer; longest GET " << one->longest_get_ns() / 1000000
                << " ms, longest write " << one->longest_write_ns() / 1000000 << " ms" << std::endl;
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
    auto client = Client::Connect({group_.Endpoint()}, PatientOptions());
    ASSERT_TRUE(client.ok()) << client.status();
    const auto value = (*client)->Incr(GroupObserver::kCounter, 0, {}, kDeadline);
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_GE(static_cast<uint64_t>(*value), sure);
    EXPECT_LE(static_cast<uint64_t>(*value), sure + unknown);
    std::cout << sure << " increments, " << unknown << " without an answer" << std::endl;
  }

  uint64_t seed_ = 0;
  std::mt19937_64 random_;
  GroupOfProcesses group_{kLeaseMs};
  std::vector<std::unique_ptr<GroupObserver>> all_;
  std::unique_ptr<LockHolder> locks_;
  int kills_ = 0;
  int stops_ = 0;
  int terminations_ = 0;
  int hand_overs_ = 0;
  int etcd_stops_ = 0;
};

// GANNET_GROUP_ROUNDS says how many faults there are. With a hundred or more, etcd is stopped for a
// minute once. GANNET_GROUP_PAUSE_US: for how long a client pauses after an answer, so that the
// history of a thousand faults fits into memory.
TEST_F(GroupHistoryTest, EachKeyHasOneHistoryAcrossEpochs) {
  const char* const given = std::getenv("GANNET_GROUP_ROUNDS");
  const int rounds = given != nullptr ? std::atoi(given) : 12;
  for (int i = 0; i < rounds && !HasFailure(); ++i) {
    locks_->Take();
    Fault(i, rounds >= 100);
    locks_->Check();
  }
  Check();
}

}  // namespace
}  // namespace gannet
