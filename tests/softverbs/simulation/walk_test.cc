#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/softverbs/simulation/simulation.h"
#include "tests/softverbs/simulation/walk_end.h"

// A random walk of verbs calls on the simulated device, with and without faults, against the oracle
// of walk_end.h. A seed is a run: GANNET_TEST_SEED=N repeats it.

namespace softverbs {
namespace {

constexpr int kConnections = 3;
constexpr int kRounds = 4;
constexpr int kActionsPerRound = 150;
// Each plan meets the walk with and without disturbance several times.
constexpr uint64_t kSeeds = 200;

// What a run suffers from, by its seed. None of these makes a request fail, so that everything must
// be right; those of kBreaking do.
constexpr const char* kHarmless[] = {
    "",
    "tear_read=0.5:5us",
    "delay_completion=0.3:20us",
    "delay_post=0.3:20us",
    "stall_peer=0.2:20us",
    "rnr=0.3",
    "strict=1",
    "atomics=hca",
    "tear_read=0.3,delay_completion=0.2,delay_post=0.2,stall_peer=0.1,rnr=0.1",
};
constexpr const char* kBreaking[] = {
    "error=any:0.02",
    "lost_ack=any:0.02",
    "drop_connection_after=20",
    "error=any:0.01,lost_ack=any:0.01,tear_read=0.3,delay_completion=0.2,delay_post=0.2,rnr=0.1",
};

class Walk {
 public:
  struct Options {
    uint64_t seed = 0;
    std::string plan;
    bool requests_fail = false;  // by the plan
    bool disturb = false;        // by the walk itself
  };

  explicit Walk(const Options& options)
      : options_(options), random_(options.seed), simulation_(options.seed, options.plan) {
    device_ = OpenDevice();
    pd_.reset(ibv_alloc_pd(device_.get()));
    for (Owned<ibv_cq>& cq : cqs_)
      cq.reset(ibv_create_cq(device_.get(), 1024, nullptr, nullptr, 0));
  }

  ~Walk() { ends_.clear(); }

  // The log of what happened.
  std::string Run() {
    for (int i = 0; i < kConnections; ++i) Replace(i);
    for (int round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
      for (int i = 0; i < kActionsPerRound && !testing::Test::HasFailure(); ++i) Act();
      Quiesce();
      for (int i = 0; i < kConnections; ++i) {
        if (End(2 * i).broken() || End(2 * i + 1).broken()) Replace(i);
      }
    }
    return simulation_.log();
  }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  WalkEnd& End(size_t index) { return *ends_[index]; }

  // A new connection in this place. Its ends share CQs with those of other connections.
  void Replace(int connection) {
    ends_.resize(2 * kConnections);
    const auto below = [this](uint64_t bound) { return Below(bound); };
    for (int i = 2 * connection; i < 2 * connection + 2; ++i) {
      ends_[i].reset();
      ends_[i] = std::make_unique<WalkEnd>(
          device_.get(),
          WalkEnd::Options{.number = ++last_number_,
                           .kind = Below(2) == 0 ? MemoryKind::kPrivate : MemoryKind::kMapped,
                           .pd = pd_.get(),
                           .cq = cqs_[Below(2)].get(),
                           .signal_all = Below(2) == 0},
          below);
    }
    End(2 * connection).Connect(End(2 * connection + 1));
    if (options_.requests_fail) End(2 * connection).Disturb();
  }

  void Act() {
    WalkEnd& end = End(Below(ends_.size()));
    const uint64_t action = Below(options_.disturb ? 82 : 80);
    simulation_.Note("action " + std::to_string(action) + " of " + std::to_string(end.number()));
    if (action < 10) return end.PostReceive();
    if (action < 20) return end.PostSend();
    if (action < 28) return end.PostWrite();
    if (action < 36) return end.PostRead();
    if (action < 44) return end.PostAtomic();
    if (action < 60) return Poll(cqs_[Below(2)].get(), 1 + static_cast<int>(Below(4)));
    if (action < 80) return Step(Below(12));
    Disturb(end);
  }

  void Disturb(WalkEnd& end) {
    switch (Below(4)) {
      case 0:
        return end.PostWrongKey();
      case 1:
        return end.ToError();
      case 2:
        return end.Reregister();
      default:
        // Destroyed as it is, with requests under way.
        return Replace(static_cast<int>(Below(kConnections)));
    }
  }

  void Step(uint64_t count) {
    while (count-- > 0 && softverbs_step() != 0) {
    }
  }

  void Poll(ibv_cq* cq, int entries) {
    ibv_wc wcs[16];
    const int count = ibv_poll_cq(cq, entries, wcs);
    ASSERT_GE(count, 0);
    polled_ += static_cast<uint64_t>(count);
    for (int i = 0; i < count; ++i) {
      simulation_.Note("polled " + ToString(wcs[i]));
      WalkEnd* end = Owner(wcs[i].wr_id);
      ASSERT_NE(end, nullptr) << "a completion of a queue pair that is gone";
      end->TakeCompletion(wcs[i]);
    }
  }

  WalkEnd* Owner(uint64_t wr_id) {
    for (const auto& end : ends_) {
      if (end->number() == WalkEnd::EndOf(wr_id)) return end.get();
    }
    return nullptr;
  }

  // Until nothing happens any more, whatever is offered; then everything must be as it should.
  void Quiesce() {
    simulation_.Note("quiesce");
    uint64_t before;
    do {
      before = polled_;
      for (const auto& end : ends_) end->FeedReceives();
      // Not to the end: a sender may be trying for ever to reach a receive that FeedReceives owes.
      Step(2000);
      for (const Owned<ibv_cq>& cq : cqs_) Poll(cq.get(), 16);
    } while ((polled_ != before || softverbs_step() != 0) && !testing::Test::HasFailure());
    for (const auto& end : ends_) end->CheckQuiet();
    for (const auto& end : ends_) end->CheckArea();
  }

  const Options options_;
  std::mt19937_64 random_;
  Simulation simulation_;
  Owned<ibv_context> device_;
  Owned<ibv_pd> pd_;
  Owned<ibv_cq> cqs_[2];
  std::vector<std::unique_ptr<WalkEnd>> ends_;
  uint32_t last_number_ = 0;
  uint64_t polled_ = 0;
};

Walk::Options OptionsOf(uint64_t seed) {
  const size_t harmless = std::size(kHarmless), all = harmless + std::size(kBreaking);
  const size_t plan = seed % all;
  return {.seed = seed,
          .plan = plan < harmless ? kHarmless[plan] : kBreaking[plan - harmless],
          .requests_fail = plan >= harmless,
          .disturb = seed / all % 2 == 1};
}

// Runs the seed; false, and the seed printed, when it found something.
bool RunSeed(uint64_t seed) {
  const Walk::Options options = OptionsOf(seed);
  SCOPED_TRACE("GANNET_TEST_SEED=" + std::to_string(seed) + " plan \"" + options.plan + "\"");
  Walk(options).Run();
  return !testing::Test::HasFailure();
}

std::optional<uint64_t> SeedFromEnvironment() {
  const char* given = getenv("GANNET_TEST_SEED");
  if (given == nullptr) return std::nullopt;
  return strtoull(given, nullptr, 10);
}

TEST(WalkTest, DeviceDoesWhatTheModelSays) {
  if (const auto seed = SeedFromEnvironment()) {
    printf("GANNET_TEST_SEED=%llu\n", static_cast<unsigned long long>(*seed));
    RunSeed(*seed);
    return;
  }
  for (uint64_t seed = 1; seed <= kSeeds && RunSeed(seed); ++seed) {
  }
}

TEST(WalkTest, OneSeedGivesOneRun) {
  for (const uint64_t seed : {5u, 9u, 13u, 25u, 26u}) {
    const std::string log = Walk(OptionsOf(seed)).Run();
    EXPECT_GT(log.size(), 1000u);
    EXPECT_TRUE(log == Walk(OptionsOf(seed)).Run()) << "seed " << seed;
    Walk::Options other = OptionsOf(seed);
    ++other.seed;
    EXPECT_TRUE(log != Walk(other).Run()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace softverbs
