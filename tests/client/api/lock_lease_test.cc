// Leases, the list of locks and breaking one, against a real server.

#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/client/api/async_run.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;

class LockLeaseTest : public ::testing::Test {
 protected:
  std::unique_ptr<Client> Connect() {
    return Client::Connect({server_.endpoint()}, PatientOptions()).value();
  }
  std::set<uint64_t> HeldWords() {
    std::set<uint64_t> words;
    const auto locks = holder_->Locks(0);
    EXPECT_TRUE(locks.ok()) << locks.status();
    if (!locks.ok()) return words;
    for (const HeldLock& lock : *locks) words.insert(lock.word);
    return words;
  }

  ServerProcess server_;
  std::unique_ptr<Client> holder_ = Connect();
  std::unique_ptr<Client> other_ = Connect();
};

TEST_F(LockLeaseTest, AHolderThatHangsLosesItsLockAndItsWrites) {
  const Lock lock = holder_->AcquireLock("key", {}, {.lease = milliseconds(50)}).value();
  // The holder does nothing, but its keep-alive thread goes on.
  const auto taken = other_->AcquireLock("key");
  ASSERT_TRUE(taken.ok()) << taken.status();
  EXPECT_TRUE(
      absl::IsAborted(holder_->Put("key", "late", {.only_if_version = 0, .lock = &lock}).status()));
  EXPECT_TRUE(absl::IsAborted(holder_->Extend(lock, milliseconds(1000))));
  EXPECT_TRUE(absl::IsAborted(holder_->Unlock(lock)));
  EXPECT_TRUE(other_->Unlock(*taken).ok());
}

TEST_F(LockLeaseTest, ALeaseIsListedExtendedAndEndsWithTheLock) {
  const Lock lock = holder_->TryLock("key", {}, {.lease = std::chrono::hours(1)}).value().value();
  auto locks = other_->Locks(0).value();
  ASSERT_EQ(locks.size(), 1u);
  EXPECT_EQ(locks[0].word, lock.word);
  EXPECT_NE(locks[0].session_id, 0u);
  EXPECT_FALSE(locks[0].holder.empty());
  EXPECT_GT(locks[0].lease, std::chrono::minutes(30));
  EXPECT_LE(locks[0].lease, std::chrono::hours(1));
  ASSERT_TRUE(holder_->Extend(lock, std::chrono::hours(3)).ok());
  EXPECT_GT(other_->Locks(0).value().at(0).lease, std::chrono::hours(2));
  EXPECT_TRUE(holder_->Unlock(lock).ok());
  EXPECT_TRUE(other_->Locks(0).value().empty());
  const Lock plain = holder_->AcquireLock("key").value();
  EXPECT_EQ(other_->Locks(0).value().at(0).lease.count(), 0);
  EXPECT_TRUE(holder_->Unlock(plain).ok());
}

TEST_F(LockLeaseTest, ListsMoreLocksThanOneReplyHolds) {
  std::set<uint64_t> taken;
  for (int i = 0; i < 300; ++i) {
    const auto lock = holder_->TryLock("key" + std::to_string(i));
    if (absl::IsFailedPrecondition(lock.status())) continue;  // two keys of one word
    ASSERT_TRUE(lock.ok()) << lock.status();
    taken.insert((*lock)->word);
  }
  EXPECT_EQ(HeldWords(), taken);
}

TEST_F(LockLeaseTest, WhoeverHoldsALockItCanBeBroken) {
  const Lock lock = holder_->AcquireLock("key").value();
  EXPECT_TRUE(other_->BreakLock("key").value());
  EXPECT_FALSE(other_->BreakLock("key").value());
  EXPECT_TRUE(HeldWords().empty());
  EXPECT_TRUE(
      absl::IsAborted(holder_->Put("key", "late", {.only_if_version = 0, .lock = &lock}).status()));
  EXPECT_TRUE(other_->TryLock("key").value().has_value());
}

TEST_F(LockLeaseTest, LockAndGetWithALeaseReadsUnderIt) {
  ASSERT_TRUE(other_->Put("key", "value").ok());
  const auto locked = holder_->LockAndGet("key", {}, {.lease = std::chrono::hours(1)});
  ASSERT_TRUE(locked.ok()) << locked.status();
  EXPECT_EQ(locked->value->data, "value");
  EXPECT_GT(other_->Locks(0).value().at(0).lease.count(), 0);
  EXPECT_TRUE(holder_
                  ->Put("key", "new",
                        {.only_if_version = locked->value->info.version, .lock = &locked->lock})
                  .ok());
  EXPECT_TRUE(holder_->Unlock(locked->lock).ok());
}

TEST_F(LockLeaseTest, AsynchronousLocksHaveLeasesToo) {
  auto client = AsyncClient::Connect({server_.endpoint()}, PatientOptions()).value();
  const Completion locked =
      RunOne(*client, [&] { return client->TryLock("key", 1, {.lease = std::chrono::hours(1)}); });
  ASSERT_TRUE(locked.found);
  const Lock lock{"key", locked.lock_word, 0};
  EXPECT_EQ(RunOne(*client, [&] { return client->Extend(lock, milliseconds(20), 2); }).code,
            absl::StatusCode::kOk);
  EXPECT_TRUE(other_->AcquireLock("key").ok());
  EXPECT_EQ(RunOne(*client, [&] { return client->Extend(lock, milliseconds(20), 3); }).code,
            absl::StatusCode::kAborted);
}

}  // namespace
}  // namespace gannet
