// That a PUT's instructions do not grow with the sessions a server has: counted by the ctest
// entry scale_sessions_flat and by tools/figures/scale, which run these tests under
// tools/figures/instructions.

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/rpc/put_fixture.h"

namespace gannet {
namespace {

constexpr int kPolls = 64;
constexpr int kPutsOfPoll = 10;  // in each Poll, as many sessions as there are, at most so many

class PutScaleTest : public PutTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override { Start(/*connections_max=*/1024); }
};

// All sessions take turns; each Poll finds a PUT of as many of them as there are, at most
// kPutsOfPoll, of which the first ones have several where there are fewer.
TEST_P(PutScaleTest, PutsInPlace) {
  const int sessions = GetParam();
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < sessions; ++i) {
    ASSERT_TRUE(peers.emplace_back(std::make_unique<RawPeer>(this))->Connect());
  }
  // No session's first PUT is counted, nor a key's.
  for (int i = 0; i < std::max(sessions, kPutsOfPoll); ++i) {
    ASSERT_EQ(peers[i % sessions]->Put(Key(i % kPutsOfPoll), value_), ReplyStatus::kOk);
  }
  Worker& worker = *server().workers()[0];
  const uint64_t rpcs = stats().rpcs;
  for (int poll = 0; poll < kPolls; ++poll) {
    const auto peer_of = [&](int i) -> RawPeer& {
      return *peers[(poll * kPutsOfPoll + i) % sessions];
    };
    for (int i = 0; i < kPutsOfPoll; ++i) {
      Send(peer_of(i), Key(i));
      ASSERT_TRUE(peer_of(i).WaitSent());
    }
    ServePuts(worker, now());
    ASSERT_EQ(stats().rpcs, rpcs + (poll + 1) * kPutsOfPoll) << "not all in one Poll";
    for (int i = 0; i < kPutsOfPoll; ++i) {
      ASSERT_EQ(peer_of(i).Receive()->status(), ReplyStatus::kOk);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sessions, PutScaleTest, testing::Values(1, 10, 100, 1000),
                         [](const auto& info) { return std::to_string(info.param); });

}  // namespace
}  // namespace gannet
