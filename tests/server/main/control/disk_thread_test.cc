#include "server/main/control/disk_thread.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "common/base/clocks.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/log/journal/hooked_files.h"
#include "tests/server/log/journal/simulated_files.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {
namespace {

using ::testing::ElementsAre;

TEST(DiskThreadTest, WritesWhatIsRecordedWhileASyncHangs) {
  SimulatedFiles simulated(1);
  std::atomic<bool> hangs{false};
  std::atomic<bool> in_sync{false};
  HookedFiles files(&simulated, [&] {
    in_sync = hangs.load();
    while (hangs) std::this_thread::yield();
  });
  TestStore store(8 << 20);
  const auto log = DiskLog::Open({.files = &files,
                                  .store = &*store,
                                  .changes = &store.changes(),
                                  .writes = &store.writes(),
                                  .clock = MonotonicNs,
                                  .wall = MachineWallTime,
                                  .new_number = 77},
                                 At(1'000));
  ASSERT_TRUE(log.ok()) << log.status();
  const auto wanted = WakeUp::Create();
  ASSERT_TRUE(wanted.ok()) << wanted.status();
  hangs = true;
  const auto thread = DiskThread::Start(log->get(), wanted->get(), nullptr);
  ASSERT_TRUE(thread.ok()) << thread.status();
  EXPECT_EQ(store.Put("early", "1").status, ReplyStatus::kOk);
  while (!in_sync) std::this_thread::yield();
  EXPECT_EQ(store.Put("late", "2").status, ReplyStatus::kOk);
  while ((*log)->written() < (*log)->appended()) std::this_thread::yield();
  EXPECT_LT((*log)->safe(), (*log)->appended());
  std::vector<std::string> keys;
  const auto read = ReadDirectory(&files, [&](const Change& change) {
    keys.emplace_back(change.key);
    return absl::OkStatus();
  });
  EXPECT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(keys, ElementsAre("early", "late")) << "what a kill -9 would leave";
  hangs = false;
  EXPECT_TRUE((*thread)->Stop().ok());
  EXPECT_EQ((*log)->safe(), (*log)->appended());
}

}  // namespace
}  // namespace gannet
