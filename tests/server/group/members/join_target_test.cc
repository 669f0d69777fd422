// A joiner whose target wants some keys only.

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/server_time.h"
#include "server/group/members/joiner.h"
#include "tests/server/group/members/join_fixture.h"

namespace gannet {
namespace {

using JoinTargetTest = JoinFixture;

// Takes the keys that end with a digit.
class PickyTarget final : public JoinTarget {
 public:
  PickyTarget(Store* store, char digit) : all_(store), digit_(digit) {}
  bool Wants(std::string_view key) const override { return key.back() == digit_; }
  KeyHash HashOf(std::string_view key) const override { return all_.HashOf(key); }
  bool Has(std::string_view key, ServerTime now) override { return all_.Has(key, now); }
  ReplyStatus Insert(const Change& put, ServerTime now) override {
    EXPECT_TRUE(Wants(put.key)) << put.key;
    // Now and then there is no room for a while.
    return ++asked_ % 3 == 0 ? ReplyStatus::kTryAgain : all_.Insert(put, now);
  }

 private:
  StoreJoinTarget all_;
  const char digit_;
  uint64_t asked_ = 0;
};

TEST_F(JoinTargetTest, TakesOnlyWhatItsTargetWants) {
  StartPrimary();
  MakeBackup(32 * (1 << 20), 1000);
  for (int i = 0; i < 100; ++i) Put(absl::StrCat("key", i), "value");
  Put("long7", std::string(10'000, 'l'));
  Put("long8", std::string(10'000, 'l'));
  PickyTarget target(&*backup(), '7');
  Joiner::Options options = JoinOptions();
  options.target = &target;
  Join(std::move(options));
  EXPECT_EQ(Finish([this] { PassSome(kNsPerMs); }), Joiner::Step::kDone) << joiner().status();
  EXPECT_EQ(joiner().items(), 11u);
  EXPECT_TRUE(backup().Get("key77", now().server_time));
  EXPECT_TRUE(backup().Get("long7", now().server_time));
  EXPECT_FALSE(backup().Get("key78", now().server_time));
  EXPECT_FALSE(backup().Get("long8", now().server_time));
}

}  // namespace
}  // namespace gannet
