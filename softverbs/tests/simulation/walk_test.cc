#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "softverbs/tests/simulation/shared_receives.h"
#include "softverbs/tests/simulation/simulation.h"
#include "softverbs/tests/simulation/walk_end.h"
#include "softverbs/tests/support/test_seed.h"

// A random walk of verbs calls on the simulated device, with and without faults, against the oracle
// of walk_end.h. A seed is a run: TEST_SEED=N repeats it.

namespace softverbs {
namespace {

constexpr int kConnections = 3;
constexpr int kRounds = 4;
constexpr int kActionsPerRound = 150;
// Each plan meets the walk with and without disturbance several times.
constexpr uint64_t kSeeds = 200;

// The faults of a run, by its seed. None of these makes a request fail, so everything must be
// right. Those of kBreaking do.
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

// What the walks have covered so far.
struct Coverage {
  uint64_t dry = 0;     // times that messages found no shared receive until one was posted
  uint64_t limits = 0;  // limit events
  // How often an end had as many READs and atomics in flight as allowed, if more than one.
  uint64_t full_depths = 0;
} coverage;

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
    const bool completions_delayed = options.plan.find("delay_completion") != std::string::npos;
    shared_ = std::make_unique<SharedReceives>(device_.get(), pd_.get(), completions_delayed);
    const int fd = device_->async_fd;
    EXPECT_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
  }

  ~Walk() { ends_.clear(); }

  // Returns the log of what happened.
  std::string Run() {
    for (int i = 0; i < kConnections; ++i) Replace(i);
    for (int round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
      for (int i = 0; i < kActionsPerRound && !testing::Test::HasFailure(); ++i) {
        Act();
        CheckDepths();
      }
      Quiesce();
      for (int i = 0; i < kConnections; ++i) {
        if (End(2 * i).broken() || End(2 * i + 1).broken()) Replace(i);
      }
    }
    coverage.limits += shared_->limits_reached();
    return simulation_.log();
  }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  WalkEnd& End(size_t index) { return *ends_[index]; }

  // Replaces a connection by a new one, whose ends share CQs with those of other connections.
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
                           .shared = Below(2) == 0 ? shared_.get() : nullptr,
                           .signal_all = Below(2) == 0},
          below);
    }
    End(2 * connection).Connect(End(2 * connection + 1));
    if (options_.requests_fail) End(2 * connection).Disturb();
  }

  void Act() {
    WalkEnd& end = End(Below(ends_.size()));
    const uint64_t action = Below(options_.disturb ? 84 : 82);
    simulation_.Note("action " + std::to_string(action) + " of " + std::to_string(end.number()));
    if (action < 10) return end.PostReceive();
    if (action < 20) return end.PostSend();
    if (action < 28) return end.PostWrite();
    if (action < 36) return end.PostRead();
    if (action < 44) return end.PostAtomic();
    if (action < 60) return Poll(cqs_[Below(2)].get(), 1 + static_cast<int>(Below(4)));
    if (action < 80) return Step(Below(12));
    if (action < 82) return shared_->Arm(static_cast<uint32_t>(Below(SharedReceives::kDepth + 1)));
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
        shared_->TakeLoss();
        return Replace(static_cast<int>(Below(kConnections)));
    }
  }

  void Step(uint64_t count) {
    while (count-- > 0 && StepOnce()) {
    }
  }

  // Takes events of the shared receives at once, so that their oracle knows the order.
  bool StepOnce() {
    const bool stepped = softverbs_step() != 0;
    TakeEvents();
    ibv_wc wc;
    while (ibv_poll_cq(shared_->cq(), 1, &wc) == 1) {
      simulation_.Note("shared receive " + ToString(wc));
      ++polled_;
      WalkEnd* end = Find([&](const WalkEnd& it) { return it.qp()->qp_num == wc.qp_num; });
      EXPECT_NE(end, nullptr) << "a completion of a queue pair that is gone";
      if (end != nullptr) end->TakeSharedReceive(wc);
    }
    shared_->CheckLimit();
    CheckDepths();
    return stepped && !testing::Test::HasFailure();
  }

  void CheckDepths() {
    for (const auto& end : ends_) {
      const uint32_t in_flight = softverbs_reads_in_flight(end->qp());
      EXPECT_LE(in_flight, end->reads_in_flight_max()) << "of " << end->number();
      coverage.full_depths += in_flight > 1 && in_flight == end->reads_in_flight_max();
    }
  }

  void TakeEvents() {
    ibv_async_event event;
    while (ibv_get_async_event(device_.get(), &event) == 0) {
      simulation_.Note("event " + std::to_string(event.event_type));
      if (event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED) shared_->TakeLimitEvent();
      if (event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED) {
        WalkEnd* end = Find([&](const WalkEnd& it) { return it.qp() == event.element.qp; });
        EXPECT_NE(end, nullptr) << "an event of a queue pair that is gone";
        if (end != nullptr) end->TakeLastReceiveEvent();
      }
      ibv_ack_async_event(&event);
    }
  }

  void Poll(ibv_cq* cq, int entries) {
    ibv_wc wcs[16];
    const int count = ibv_poll_cq(cq, entries, wcs);
    ASSERT_GE(count, 0);
    polled_ += static_cast<uint64_t>(count);
    for (int i = 0; i < count; ++i) {
      simulation_.Note("polled " + ToString(wcs[i]));
      const uint64_t number = WalkEnd::EndOf(wcs[i].wr_id);
      WalkEnd* end = Find([&](const WalkEnd& it) { return it.number() == number; });
      ASSERT_NE(end, nullptr) << "a completion of a queue pair that is gone";
      end->TakeCompletion(wcs[i]);
    }
  }

  template <class Matches>
  WalkEnd* Find(Matches matches) {
    const auto found = std::find_if(ends_.begin(), ends_.end(),
                                    [&](const auto& end) { return end && matches(*end); });
    return found != ends_.end() ? found->get() : nullptr;
  }

  // Makes sure that every message that was sent finds a receive.
  void FeedReceives() {
    uint64_t owed = 0;
    for (const auto& end : ends_) {
      end->FeedReceives();
      owed += end->SharedReceivesOwed();
    }
    if (owed > 0 && shared_->posted() == 0) ++coverage.dry;
    shared_->Feed(owed);
  }

  // Steps until nothing happens any more. Then everything must be as it should.
  void Quiesce() {
    simulation_.Note("quiesce");
    uint64_t before;
    do {
      before = polled_;
      FeedReceives();
      // Does not step to the end, because a sender may be trying for ever to reach a receive that
      // FeedReceives owes.
      Step(2000);
      for (const Owned<ibv_cq>& cq : cqs_) Poll(cq.get(), 16);
    } while ((polled_ != before || StepOnce()) && !testing::Test::HasFailure());
    for (const auto& end : ends_) end->CheckQuiet();
    for (const auto& end : ends_) end->CheckArea();
    shared_->CheckQuiet();
  }

  const Options options_;
  std::mt19937_64 random_;
  Simulation simulation_;
  Owned<ibv_context> device_;
  Owned<ibv_pd> pd_;
  Owned<ibv_cq> cqs_[2];
  std::unique_ptr<SharedReceives> shared_;
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

// Runs the seed. Returns false and prints the seed if it found something.
bool RunSeed(uint64_t seed) {
  const Walk::Options options = OptionsOf(seed);
  SCOPED_TRACE("TEST_SEED=" + std::to_string(seed) + " plan \"" + options.plan + "\"");
  Walk(options).Run();
  return !testing::Test::HasFailure();
}

TEST(WalkTest, DeviceDoesWhatTheModelSays) {
  if (const auto seed = test_support::GivenSeed()) {
    printf("TEST_SEED=%llu\n", static_cast<unsigned long long>(*seed));
    RunSeed(*seed);
    return;
  }
  for (uint64_t seed = 1; seed <= kSeeds && RunSeed(seed); ++seed) {
  }
  EXPECT_GT(coverage.dry, 0u);
  EXPECT_GT(coverage.limits, 0u);
  EXPECT_GT(coverage.full_depths, 0u);
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
