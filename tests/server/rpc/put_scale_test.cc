// Shows that a PUT's instructions do not grow with the number of a server's sessions. The ctest
// entry scale_sessions_flat and tools/figures/scale count them, by running these tests under
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
constexpr int kPutsOfPoll =
    10;  // the PUTs of each Poll, from as many different sessions as possible

class PutScaleTest : public PutTest, public testing::WithParamInterface<int> {
 protected:
  void SetUp() override { Start(/*connections_max=*/1024); }
};

// All sessions take turns. Each Poll finds kPutsOfPoll PUTs, of different sessions if there are so
// many. Otherwise the first sessions have several PUTs.
TEST_P(PutScaleTest, PutsInPlace) {
  const int sessions = GetParam();
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < sessions; ++i) {
    ASSERT_TRUE(peers.emplace_back(std::make_unique<RawPeer>(this))->Connect());
  }
  // The first PUT of a session, and of a key, is not counted.
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
