#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "softverbs/tests/support/temporary_directory.h"
#include "tests/common/rdma/test_device.h"
#include "tests/integration/hot_key_run.h"

namespace gannet {
namespace {

TEST(LinearizabilityTest, HoldsForHotKeysThatMove) {
  HotKeyRun({.operations = 1500, .value_bytes_min = 0}).Run();
}

TEST(LinearizabilityTest, HoldsWhenDeadlinesLeaveOutcomesUnknown) {
  HotKeyRun({.operations = 1000, .value_bytes_min = kIdBytes, .hasty = true}).Run();
}

// Homes of the hot keys are migrated from index to index meanwhile.
TEST(LinearizabilityTest, HoldsWhileTheIndexGrows) {
  HotKeyRun({.operations = 1000, .value_bytes_min = 0, .index_grows = true}).Run();
}

// Memory is too small: what a client reads may be evicted under its READ. A key may be missed at
// any time, but no older value comes back, and no write meets a value that is gone.
TEST(LinearizabilityTest, HoldsWhileKeysAreEvicted) {
  HotKeyRun({.operations = 1000, .value_bytes_min = 0, .evicts = true}).Run();
}

TEST(LinearizabilityTest, HoldsWhileKeysAreEvictedAndOutcomesAreUnknown) {
  HotKeyRun({.operations = 1000, .value_bytes_min = kIdBytes, .hasty = true, .evicts = true}).Run();
}

// What is evicted goes to a disk, and comes back from there.
TEST(LinearizabilityTest, HoldsWhileKeysGoToADiskAndComeBack) {
  const test_support::TemporaryDirectory directory;
  HotKeyRun({.operations = 1000, .value_bytes_min = 0, .evicts = true, .tier = directory.path()})
      .Run();
}

// The server stands still for so long that clients take it for dead. They come back with the same
// requests: each is applied once, and none ends as unknown.
TEST(LinearizabilityTest, HoldsWhenTheServerStandsStillAndRequestsAreSentAgain) {
  HotKeyRun run({.operations = 600, .value_bytes_min = 0});
  std::thread fault([&run] {
    for (const int after_steps : {500, 1500}) {
      WaitFor(run.steps(), after_steps / TestSlowness());
      const uint64_t lines = run.lines().load();
      run.server().process().Stop();
      WaitFor(run.lines(), lines + 1);
      run.server().process().Signal(SIGCONT);
    }
  });
  run.Run();
  fault.join();
  EXPECT_GT(run.lines().load(), 0u);
}

}  // namespace
}  // namespace gannet
