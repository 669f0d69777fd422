#include <gannet/client.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <memory>
#include <string>

#include "tests/client/api/patient_options.h"
#include "tests/common/rdma/test_device.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using std::chrono::seconds;
using test_support::ChildProcess;

class LockFailureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto client = Client::Connect({server_.endpoint()}, PatientOptions());
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    ASSERT_TRUE(client_->Put("key", "before").ok());
    StartHolder();
  }
  void StartHolder() {
    holder_ = std::make_unique<ChildProcess>(
        ChildProcess::Options{.argv = {test_support::TestProgramPath("lock_holder"),
                                       TestDevice().name, server_.endpoint(), "key"}});
    ASSERT_EQ(holder_->ReadLine(), "CONNECTED") << holder_->Stderr();
    ASSERT_TRUE(holder_->WriteLine("lock"));
    const std::string answer = holder_->ReadLine().value_or("");
    ASSERT_TRUE(answer.starts_with("LOCKED ")) << answer << holder_->Stderr();
  }
  // Returns the holder's answer to a put under its lock. Unavailable means that the put was not
  // applied, so this tries again, as a caller does.
  std::string HolderPut(const std::string& value) {
    std::string answer;
    for (int tries = 0; tries < 20; ++tries) {
      EXPECT_TRUE(holder_->WriteLine("put " + value));
      answer = holder_->ReadLine().value_or("nothing");
      if (answer != "UNAVAILABLE") break;
    }
    return answer;
  }
  std::string Value() {
    const auto value = client_->Get("key", seconds(10));
    EXPECT_TRUE(value.ok() && value->has_value()) << value.status();
    return value.ok() && value->has_value() ? (*value)->data : "";
  }

  ServerProcess server_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<ChildProcess> holder_;
};

TEST_F(LockFailureTest, HeldLockKeepsOthersOutAndAllowsTheHolder) {
  const auto lock = client_->TryLock("key", seconds(10));
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_FALSE(lock->has_value());
  EXPECT_EQ(HolderPut("holder"), "OK");
  EXPECT_EQ(Value(), "holder");
}

TEST_F(LockFailureTest, LockOfAKilledClientBecomesFree) {
  for (int round = 0; round < 3; ++round) {
    holder_->Signal(SIGKILL);
    const auto lock = client_->AcquireLock("key", test_support::kStepTimeout);
    ASSERT_TRUE(lock.ok()) << "round " << round << ": " << lock.status();
    ASSERT_TRUE(client_->Unlock(*lock).ok());
    ASSERT_NO_FATAL_FAILURE(StartHolder());
  }
}

TEST_F(LockFailureTest, LateWriteOfAStoppedHolderIsRefused) {
  holder_->Stop();
  const auto lock = client_->AcquireLock("key", test_support::kStepTimeout);
  ASSERT_TRUE(lock.ok()) << lock.status();
  const auto current = client_->Get("key");
  ASSERT_TRUE(current.ok() && current->has_value()) << current.status();
  PutOptions options;
  options.lock = &*lock;
  options.only_if_version = (*current)->info.version;
  ASSERT_TRUE(client_->Put("key", "taken over", options).ok());
  holder_->Signal(SIGCONT);
  EXPECT_EQ(HolderPut("late"), "ABORTED");
  EXPECT_EQ(Value(), "taken over");
  EXPECT_TRUE(client_->Unlock(*lock).ok());
}

TEST_F(LockFailureTest, LateWriteIsRefusedAlsoAfterTheLockIsFreeAgain) {
  holder_->Stop();
  const auto lock = client_->AcquireLock("key", test_support::kStepTimeout);
  ASSERT_TRUE(lock.ok()) << lock.status();
  ASSERT_TRUE(client_->Unlock(*lock).ok());
  holder_->Signal(SIGCONT);
  EXPECT_EQ(HolderPut("late"), "ABORTED");
  EXPECT_EQ(Value(), "before");
}

}  // namespace
}  // namespace gannet
