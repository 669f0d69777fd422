// The client with three processes of etcd, of which some are killed or stopped.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/etcd/etcd_client.h"
#include "tests/common/etcd/etcd_caller.h"
#include "tests/common/etcd/etcd_processes.h"

namespace gannet {
namespace {

using enum EtcdTxnResult::Outcome;

class EtcdClusterTest : public testing::Test {
 protected:
  EtcdClusterTest() {
    caller_.client().Watch("key", [this](EtcdNews news) {
      lost_ = news.kind == EtcdNews::Kind::kLost;
      for (const EtcdKeyValue& item : news.items) seen_ = item.value;
      for (const EtcdChange& change : news.changes) seen_ = change.item.value;
    });
    PutUntilWon("0");
  }

  // Members need some time to choose a leader, and to notice that there is none.
  //
  // Each try compares the revision. A try of unknown outcome may lie in a member that is stopped,
  // and etcd executes it when that member goes on: without the comparison it would then undo what a
  // later try has put.
  void PutUntilWon(const std::string& value) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + test_support::kStepTimeout;
    EtcdTxnResult result;
    do {
      const auto before = ReadUntilAnswered();
      result = caller_.Put("key", value, before ? before->mod_revision : 0);
      if (result.outcome == kWon) return;
      EXPECT_TRUE(result.outcome == kRefused || absl::IsUnavailable(result.status))
          << result.status;
    } while (Clock::now() < end);
    ADD_FAILURE() << "no transaction wins: " << result.status;
  }
  // Returns the key, or nullopt if there is none.
  std::optional<EtcdKeyValue> ReadUntilAnswered() {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + test_support::kStepTimeout;
    absl::StatusOr<EtcdRangeAnswer> answer;
    do {
      answer = caller_.Range("key");
      if (answer.ok() && answer->items.empty()) return std::nullopt;
      if (answer.ok()) return answer->items.front();
      EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
    } while (Clock::now() < end);
    ADD_FAILURE() << "no range is answered: " << answer.status();
    return std::nullopt;
  }
  std::string ReadValue() {
    const auto item = ReadUntilAnswered();
    return item ? item->value : "there is no key";
  }
  bool SeeByWatch(const std::string& value) {
    return caller_.PollUntil([&] { return seen_ == value; });
  }

  EtcdProcesses etcd_{3};
  EtcdCaller caller_{EtcdClient::Options{.endpoints = etcd_.Urls(), .call_ms = 1000}};
  std::string seen_;
  bool lost_ = false;
};

TEST_F(EtcdClusterTest, GoesOnWhenAMemberDies) {
  for (size_t member = 0; member < 3; ++member) {
    etcd_.Kill(member);
    PutUntilWon(absl::StrCat(member));
    EXPECT_EQ(ReadValue(), absl::StrCat(member));
    EXPECT_TRUE(SeeByWatch(absl::StrCat(member)));
    etcd_.Restart(member);
  }
}

TEST_F(EtcdClusterTest, GoesOnWhenAMemberStops) {
  for (size_t member = 0; member < 3; ++member) {
    etcd_.process(member).Stop();
    PutUntilWon(absl::StrCat(member));
    EXPECT_EQ(ReadValue(), absl::StrCat(member));
    EXPECT_TRUE(SeeByWatch(absl::StrCat(member)));
    etcd_.process(member).Signal(SIGCONT);
  }
}

// Without the header that asks for a leader, etcd would leave the watch as it is.
TEST_F(EtcdClusterTest, SaysThatMostMembersAreGone) {
  etcd_.Kill(0);
  etcd_.Kill(1);
  EXPECT_TRUE(caller_.PollUntil([&] { return lost_; }));
  const auto answer = caller_.Range("key");
  EXPECT_TRUE(absl::IsUnavailable(answer.status())) << answer.status();
  const EtcdTxnResult put = caller_.Put("key", "no");
  EXPECT_TRUE(put.outcome == kFailed || put.outcome == kUnknown);
  EXPECT_TRUE(absl::IsUnavailable(put.status)) << put.status;

  etcd_.Restart(0);
  PutUntilWon("again");
  EXPECT_TRUE(SeeByWatch("again"));
  EXPECT_FALSE(lost_);
}

}  // namespace
}  // namespace gannet
