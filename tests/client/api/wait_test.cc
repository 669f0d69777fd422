// How clients wait, against a real server: a GET at depth 1 gives up no core, and an application
// that sleeps misses nothing.

#include <dlfcn.h>
#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "softverbs/tests/support/test_seed.h"
#include "tests/client/api/async_run.h"
#include "tests/client/api/patient_options.h"
#include "tests/common/rdma/test_device.h"
#include "tests/support/server_process.h"

namespace {

// How often this thread gave up its core, or would have slept.
thread_local uint64_t naps = 0;

}  // namespace

// In place of the C library's, for the client that is linked into this program.
extern "C" {
int sched_yield() noexcept {
  ++naps;
  static const auto real = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "sched_yield"));
  return real();
}
int ppoll(pollfd* fds, nfds_t n, const timespec* timeout, const sigset_t* mask) {
  ++naps;
  using Ppoll = int (*)(pollfd*, nfds_t, const timespec*, const sigset_t*);
  static const auto real = reinterpret_cast<Ppoll>(dlsym(RTLD_NEXT, "ppoll"));
  return real(fds, n, timeout, mask);
}
}

namespace gannet {
namespace {

using std::chrono::steady_clock;

// Whoever sleeps is woken after so much at the latest, by the next heartbeat; by what it waits for
// much sooner. Servers of these tests tolerate so long a silence that heartbeats are this rare.
constexpr std::chrono::milliseconds kHeartbeatEvery{2000};
// Who sleeps longer for an answer was not woken by it.
constexpr std::chrono::milliseconds kLostAfter = kHeartbeatEvery * 3 / 4;
const std::vector<std::string> kSilence = {"--silence_ms=60000"};

// As little polling as there can be: whoever may sleep does.
Options SleepyOptions() {
  Options options = PatientOptions();
  options.poll_max = std::chrono::microseconds(0);
  return options;
}

std::string KeyOf(int i) { return "key" + std::to_string(i); }

class WaitTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new ServerProcess(kSilence); }
  static void TearDownTestSuite() { delete server_; }

  static std::unique_ptr<AsyncClient> Connect(const Options& options) {
    auto client = AsyncClient::Connect({server_->endpoint()}, options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }

  static ServerProcess* server_;
};
ServerProcess* WaitTest::server_ = nullptr;

// softverbs executes READs within the post. So the answer is there, whatever was learned of others.
TEST_F(WaitTest, AGetAtDepthOneNeitherSleepsNorYields) {
  if (TestDevice().kind != DeviceKind::kSoftverbs) {
    GTEST_SKIP() << "only softverbs completes a READ within its post";
  }
  constexpr int kKeys = 300;
  const auto writer = Client::Connect({server_->endpoint()}, PatientOptions()).value();
  for (int i = 0; i < kKeys; ++i) ASSERT_TRUE(writer->Put(KeyOf(i), "value").ok());

  Options options = SleepyOptions();
  options.location_cache_bytes = 0;  // two READs each
  const auto async = Connect(options);
  const auto sync = Client::Connect({server_->endpoint()}, options).value();
  std::vector<std::byte> out(16);
  const auto get_all = [&] {
    for (int i = 0; i < kKeys; ++i) {
      EXPECT_TRUE(async->Get(KeyOf(i), out, 1).ok());
      Completion done;
      EXPECT_EQ(async->Wait({&done, 1}, kHang), 1u);
      EXPECT_TRUE(done.found);
      const auto got = sync->Get(KeyOf(i));
      EXPECT_TRUE(got.ok() && got->has_value());
    }
  };
  // The first READs of a queue pair, of which more join meanwhile, are not executed in the post.
  uint64_t least = UINT64_MAX;
  for (int round = 0; round < 20 && least > 0; ++round) {
    const uint64_t before = naps;
    get_all();
    least = std::min(least, naps - before);
  }
  EXPECT_EQ(least, 0u);
  // They are counted. A server that gets the core at once may answer a PUT before its client naps.
  const uint64_t before = naps;
  for (int i = 0; i < 1000 && naps == before; ++i) ASSERT_TRUE(sync->Put("key", "value").ok());
  EXPECT_GT(naps, before);
}

// What a client waits for may come with the very Poll that it does before it sleeps.
TEST_F(WaitTest, ConnectingLosesNoWakeUp) {
  for (int i = 0; i < 1000 / TestSlowness(); ++i) {
    const auto began = steady_clock::now();
    ASSERT_TRUE(Client::Connect({server_->endpoint()}, PatientOptions()).ok());
    ASSERT_LT(steady_clock::now() - began, kLostAfter * TestSlowness()) << "connection " << i;
  }
}

TEST_F(WaitTest, WaitReturnsWhatIsFinished) {
  for (const Wait wait : {Wait::kAdaptive, Wait::kPoll}) {
    Options options = PatientOptions();
    options.wait = wait;
    const auto client = Connect(options);
    for (uint64_t i = 0; i < 50; ++i) {
      ASSERT_TRUE(client->Put(KeyOf(static_cast<int>(i)), "value", {}, i).ok());
    }
    std::set<uint64_t> ended;
    while (ended.size() < 50) {
      Completion done[16];
      const size_t n = client->Wait(done, kHang);
      ASSERT_GT(n, 0u);
      for (size_t i = 0; i < n; ++i) EXPECT_TRUE(ended.insert(done[i].user_data).second);
    }
    EXPECT_EQ(client->in_flight(), 0u);
  }
}

TEST_F(WaitTest, WaitEndsAtItsDeadline) {
  for (const Wait wait : {Wait::kAdaptive, Wait::kPoll}) {
    Options options = PatientOptions();
    options.wait = wait;
    const auto client = Connect(options);
    Completion done;
    const auto began = steady_clock::now();
    EXPECT_EQ(client->Wait({&done, 1}, std::chrono::milliseconds(20)), 0u);
    EXPECT_GE(steady_clock::now() - began, std::chrono::milliseconds(20));
    EXPECT_EQ(client->Wait({&done, 1}, std::chrono::nanoseconds(-1)), 0u);
  }
}

// An application that does nothing but sleep on the descriptor, and what it says.
class Sleeper {
 public:
  explicit Sleeper(AsyncClient& client) : client_(client) {}

  // Sleeps and polls until so many more operations ended.
  std::vector<Completion> Finish(size_t count) {
    std::vector<Completion> ended;
    while (ended.size() < count) {
      while (client_.Arm()) Take(&ended);
      if (ended.size() >= count) break;
      pollfd one{client_.fd(), POLLIN, 0};
      const auto began = steady_clock::now();
      const int readable = poll(&one, 1, static_cast<int>(kHang / std::chrono::milliseconds(1)));
      EXPECT_EQ(readable, 1) << "nothing wakes the application";
      if (readable != 1) break;
      const size_t before = ended.size();
      Take(&ended);
      if (ended.size() > before) longest_ = std::max(longest_, steady_clock::now() - began);
    }
    return ended;
  }
  // It slept for an answer.
  steady_clock::duration longest() const { return longest_; }

 private:
  void Take(std::vector<Completion>* ended) {
    Completion batch[8];
    const size_t n = client_.Poll(batch);
    ended->insert(ended->end(), batch, batch + n);
  }

  AsyncClient& client_;
  steady_clock::duration longest_{0};
};

TEST_F(WaitTest, ASleepingApplicationSurvivesABreakAndARestart) {
  ServerProcess server(kSilence);
  auto client = AsyncClient::Connect({server.endpoint()}, PatientOptions()).value();
  Sleeper sleeper(*client);
  ASSERT_TRUE(client->Put("key", "value", {}, 1).ok());
  ASSERT_EQ(sleeper.Finish(1)[0].code, absl::StatusCode::kOk);
  server.Kill();
  // The application only sleeps, and still learns that the server is gone: at last its pings end
  // with Unavailable.
  absl::StatusCode code = absl::StatusCode::kOk;
  while (code == absl::StatusCode::kOk) {
    ASSERT_TRUE(client->Ping(0, 2).ok());
    code = sleeper.Finish(1)[0].code;
  }
  EXPECT_EQ(code, absl::StatusCode::kUnavailable);
  server.Restart();
  while (code != absl::StatusCode::kOk) {
    client->set_deadline(std::chrono::milliseconds(50));
    ASSERT_TRUE(client->Ping(0, 3).ok());
    code = sleeper.Finish(1)[0].code;
  }
}

TEST_F(WaitTest, ASleepingApplicationHearsOfDeadlines) {
  ServerProcess server(kSilence);
  auto client = AsyncClient::Connect({server.endpoint()}, PatientOptions()).value();
  server.process().Stop();
  client->set_deadline(std::chrono::milliseconds(30));
  ASSERT_TRUE(client->Put("key", "value", {}, 1).ok());
  Sleeper sleeper(*client);
  EXPECT_EQ(sleeper.Finish(1)[0].code, absl::StatusCode::kDeadlineExceeded);
  server.process().Signal(SIGCONT);
}

// More long values than there are buffers for: those that wait for one go on when others gave
// theirs back, which no completion tells of.
TEST_F(WaitTest, ASleepingApplicationGetsManyLongValues) {
  const auto client = Connect(SleepyOptions());
  ASSERT_EQ(RunPut(*client, "long", std::string(1 << 20, 'x')).code, absl::StatusCode::kOk);
  constexpr size_t kGets = 60;
  for (size_t i = 0; i < kGets; ++i) ASSERT_TRUE(client->Get("long", {}, i).ok());
  Sleeper sleeper(*client);
  for (const Completion& done : sleeper.Finish(kGets)) EXPECT_TRUE(done.found);
  EXPECT_LT(sleeper.longest(), kLostAfter * TestSlowness());
}

// The server READs what is put, and the client what it gets. Both sleep. Such a READ is longer than
// a ring of softverbs, unless its initiator executes it (it does not with SOFTVERBS_ACCELERATE=0).
TEST_F(WaitTest, LongValuesToAndFroLoseNoWakeUp) {
  const auto client = Connect(SleepyOptions());
  Sleeper sleeper(*client);
  const std::string value(1 << 20, 'x');
  for (int round = 0; round < 100; ++round) {
    // If there is one alone, nothing else wakes who waits for its packets.
    const uint64_t values = round % 4 == 0 ? 8 : 1;
    for (uint64_t i = 0; i < values; ++i) {
      ASSERT_TRUE(client->Put(KeyOf(static_cast<int>(i)), value, {}, i).ok());
    }
    for (const Completion& done : sleeper.Finish(values)) {
      ASSERT_EQ(done.code, absl::StatusCode::kOk);
    }
    for (uint64_t i = 0; i < values; ++i) {
      ASSERT_TRUE(client->Get(KeyOf(static_cast<int>(i)), {}, i).ok());
    }
    for (const Completion& done : sleeper.Finish(values)) ASSERT_TRUE(done.found);
  }
  EXPECT_LT(sleeper.longest(), kLostAfter * TestSlowness());
}

// Operations in random bursts, by applications that sleep in all three ways at once. An answer that
// nobody is woken for waits for the next heartbeat.
TEST_F(WaitTest, NoWakeUpIsLost) {
  const uint64_t seed = test_support::TestSeed();
  const auto give_up = kLostAfter * TestSlowness();
  const auto until = steady_clock::now() + std::chrono::seconds(2);
  const auto shared = Client::Connect({server_->endpoint()}, SleepyOptions()).value();
  const auto begin_burst = [](AsyncClient& client, std::mt19937_64& random) {
    const size_t n = 1 + random() % 12;
    for (size_t i = 0; i < n; ++i) {
      const std::string key = KeyOf(static_cast<int>(random() % 50));
      const bool put = random() % 2 == 0;
      EXPECT_TRUE((put ? client.Put(key, "value", {}, i) : client.Get(key, {}, i)).ok());
      if (random() % 4 == 0) std::this_thread::yield();
    }
    return n;
  };
  const auto on_fd = [&](uint64_t thread) {
    std::mt19937_64 random(seed + thread);
    const auto client = Connect(SleepyOptions());
    Sleeper sleeper(*client);
    while (steady_clock::now() < until) {
      const size_t n = begin_burst(*client, random);
      ASSERT_EQ(sleeper.Finish(n).size(), n);
    }
    EXPECT_LT(sleeper.longest(), give_up);
  };
  const auto in_wait = [&](uint64_t thread) {
    std::mt19937_64 random(seed + thread);
    const auto client = Connect(SleepyOptions());
    while (steady_clock::now() < until) {
      size_t left = begin_burst(*client, random);
      const auto began = steady_clock::now();
      while (left > 0) {
        Completion done[8];
        left -= client->Wait(done, kHang);
      }
      EXPECT_LT(steady_clock::now() - began, give_up);
    }
  };
  const auto on_shared = [&](uint64_t thread) {
    std::mt19937_64 random(seed + thread);
    while (steady_clock::now() < until) {
      const auto began = steady_clock::now();
      EXPECT_TRUE(shared->Put(KeyOf(static_cast<int>(random() % 50)), "value").ok());
      EXPECT_LT(steady_clock::now() - began, give_up);
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(on_fd, 1);
  threads.emplace_back(in_wait, 2);
  for (uint64_t i = 3; i < 7; ++i) threads.emplace_back(on_shared, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gannet
