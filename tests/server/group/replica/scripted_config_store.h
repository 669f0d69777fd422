#ifndef GANNET_TESTS_SERVER_GROUP_REPLICA_SCRIPTED_CONFIG_STORE_H_
#define GANNET_TESTS_SERVER_GROUP_REPLICA_SCRIPTED_CONFIG_STORE_H_

#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "server/group/replica/config_store.h"

namespace gannet {

// A register that answers as the test says.
class ScriptedConfigStore : public ConfigStore {
 public:
  explicit ScriptedConfigStore(GroupRegister now) : now_(std::move(now)) {}

  void Read() override { FAIL() << "nobody reads"; }
  void Txn(uint64_t revision, const GroupConfiguration& wanted) override {
    EXPECT_FALSE(sent_.has_value()) << "one request at a time";
    sent_ = {.revision = revision, .configuration = wanted};
  }
  std::optional<Answer> Poll() override { return std::exchange(answer_, std::nullopt); }
  std::optional<GroupRegister> Seen() const override { return seen_; }
  Standing standing() const override { return standing_; }
  void Adopt(const GroupConfiguration& known) override {
    EXPECT_EQ(standing_, Standing::kUnfounded);
    Txn(now_.revision, known);
    adopts_ = true;
  }

  // The transaction under way: the revision that it compares with, and what is wanted.
  const std::optional<GroupRegister>& sent() const { return sent_; }
  const GroupRegister& now() const { return now_; }

  void SetStanding(Standing standing) { standing_ = standing; }
  // Whether the transaction under way, or the last one, adopts the register.
  bool adopts() const { return adopts_; }
  // Executes it, and answers.
  void Execute() {
    const bool wins = sent_->revision == now_.revision;
    if (wins) now_ = {.revision = now_.revision + 1, .configuration = sent_->configuration};
    Give(wins ? Result::kWon : Result::kLost);
  }
  // Does not take it, though the revision is the same.
  void Refuse() { Give(Result::kLost); }
  // Says that the result is unknown. Returns the transaction, which may be executed later.
  GroupRegister Forget() {
    const GroupRegister forgotten = *sent_;
    Give(Result::kUnknown);
    return forgotten;
  }
  void ExecuteLate(const GroupRegister& forgotten) {
    if (forgotten.revision != now_.revision) return;
    now_ = {.revision = now_.revision + 1, .configuration = forgotten.configuration};
  }
  // Somebody else changes it.
  void Change(const GroupConfiguration& configuration) {
    now_ = {.revision = now_.revision + 1, .configuration = configuration};
  }
  void Show() { seen_ = now_; }

 private:
  void Give(Result result) {
    sent_.reset();
    answer_ = {.result = result, .now = result == Result::kUnknown ? GroupRegister{} : now_};
  }

  GroupRegister now_;
  std::optional<GroupRegister> sent_;
  std::optional<Answer> answer_;
  std::optional<GroupRegister> seen_;
  Standing standing_ = Standing::kThere;
  bool adopts_ = false;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_REPLICA_SCRIPTED_CONFIG_STORE_H_
