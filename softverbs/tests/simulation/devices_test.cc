#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <set>
#include <string>

#include "softverbs/tests/devices/two_devices.h"
#include "softverbs/tests/simulation/simulation.h"
#include "softverbs/tests/support/verbs_fixture.h"

// Several devices in a simulated process: whether two of them lose an atomic, and what a port that
// goes down leaves undone, depends on the seed alone.

namespace softverbs {
namespace {

constexpr uint64_t kSeeds = 20;

// A client's connection to the device with this number.
struct Connection {
  Connection(int device, const TestMemory& words)
      : context(OpenOfTwo(device)),
        client(context.get(), {}),
        server(context.get(), {}),
        region(ibv_reg_mr(server.pd, words.data(), words.size(), kAllAccess)) {
    ConnectEach(client, server, {.retry_cnt = 3, .timeout = 10});
    at = {.qp_num = 0, .psn = 0, .gid = {}, .memory = words.address(), .rkey = region->rkey};
  }
  Owned<ibv_context> context;
  Side client, server;
  Owned<ibv_mr> region;
  Address at{};
};

// Lets two clients swap a free lock word for their own numbers. Returns how many got the lock.
int Holders(uint64_t seed, int device_of_one, int device_of_other) {
  Simulation simulation(seed);
  TestMemory words(MemoryKind::kPrivate, 4096);
  Connection one(device_of_one, words), other(device_of_other, words);
  EXPECT_EQ(one.client.CompareSwap(1, 0, one.at, 0, 0, 1), 0);
  EXPECT_EQ(other.client.CompareSwap(1, 0, other.at, 0, 0, 2), 0);
  EXPECT_EQ(Only(simulation, one.client).status, IBV_WC_SUCCESS);
  EXPECT_EQ(Only(simulation, other.client).status, IBV_WC_SUCCESS);
  return (one.client.Word(0) == 0 ? 1 : 0) + (other.client.Word(0) == 0 ? 1 : 0);
}

TEST(SimulatedDevicesTest, OneDeviceGivesALockOnce) {
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) EXPECT_EQ(Holders(seed, 1, 1), 1) << seed;
}

TEST(SimulatedDevicesTest, TwoDevicesGiveALockTwiceAndTheSeedRepeatsIt) {
  std::set<int> seen;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const int holders = Holders(seed, 0, 1);
    EXPECT_EQ(Holders(seed, 0, 1), holders) << seed;
    seen.insert(holders);
  }
  EXPECT_TRUE(seen.contains(2)) << "no seed loses a swap";
}

// Returns the status of a WRITE whose device's port goes down after so many steps, and whether it
// was executed.
std::string WriteThroughAPortThatGoesDown(uint64_t seed, uint64_t steps) {
  Simulation simulation(seed);
  TestMemory words(MemoryKind::kPrivate, 4096);
  Connection one(1, words);
  one.client.Word(0) = 7;
  EXPECT_EQ(one.client.Write(1, 0, 8, one.at, 0), 0);
  for (uint64_t step = 0; step < steps; ++step) softverbs_step();
  EXPECT_EQ(softverbs_set_port(1, 0), 0);
  const std::string status = ToString(Only(simulation, one.client));
  return status + (words.data()[0] == 7 ? ", executed" : ", not executed");
}

TEST(SimulatedDevicesTest, APortGoesDownBeforeARequestOrBehindIt) {
  std::set<std::string> seen;
  for (uint64_t steps = 0; steps < 6; ++steps) {
    const std::string end = WriteThroughAPortThatGoesDown(3, steps);
    EXPECT_EQ(WriteThroughAPortThatGoesDown(3, steps), end) << steps;
    seen.insert(end);
  }
  EXPECT_TRUE(seen.contains("wr 1 transport retry counter exceeded, not executed"));
  EXPECT_TRUE(seen.contains("wr 1 success, executed"));
}

}  // namespace
}  // namespace softverbs
