// A group of three real processes with two rails each, whose cables are pulled while clients write.
// ctest sets SOFTVERBS_DEVICES=2.

#include <gannet/client.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/common/etcd/etcd_caller.h"
#include "tests/integration/group_of_processes.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kDown{1500};
constexpr milliseconds kUp{500};
constexpr int kRounds = 2;

// Folders whose files take the ports of a member down.
class Cables {
 public:
  Cables() {
    for (int i = 0; i < GroupOfProcesses::kMembers; ++i) {
      std::filesystem::create_directories(Folder(i));
    }
  }
  ~Cables() { std::filesystem::remove_all(path_); }
  std::string Folder(int member) const { return (path_ / absl::StrCat(member)).string(); }
  void Pull(int member, int device) const { std::ofstream(File(member, device)) << ""; }
  void Plug(int member, int device) const { std::filesystem::remove(File(member, device)); }

 private:
  std::filesystem::path File(int member, int device) const {
    return path_ / absl::StrCat(member) / absl::StrCat(device, ".down");
  }
  const std::filesystem::path path_ =
      std::filesystem::path(testing::TempDir()) / absl::StrCat("cables-", getpid());
};

// Increments, PUTs and GETs, each of which has to succeed, until it is told to stop.
class Load {
 public:
  Load(const std::string& endpoint, int number)
      : number_(number), thread_([this, endpoint] { Run(endpoint); }) {}
  ~Load() { Stop(); }
  void Stop() {
    stops_ = true;
    if (thread_.joinable()) thread_.join();
  }
  uint64_t increments() const { return increments_; }
  Clock::duration slowest() const { return slowest_; }

 private:
  void Run(const std::string& endpoint) {
    Options options;
    options.deadline = seconds(30);
    auto client = Client::Connect({endpoint}, options);
    ASSERT_TRUE(client.ok()) << client.status();
    for (uint64_t i = 0; !stops_; ++i) {
      const auto began = Clock::now();
      const std::string key = absl::StrCat("key", number_, "-", i % 50);
      const auto put = (*client)->Put(key, absl::StrCat("value", i));
      EXPECT_TRUE(put.ok()) << put.status();
      const auto value = (*client)->Get(key);
      ASSERT_TRUE(value.ok() && value->has_value()) << value.status();
      EXPECT_EQ((*value)->data, absl::StrCat("value", i));
      const auto count = (*client)->Incr("count", 1, {.initial = 0});
      EXPECT_TRUE(count.ok()) << count.status();
      increments_ += count.ok();
      slowest_ = std::max(slowest_, Clock::now() - began);
    }
  }

  const int number_;
  std::atomic<bool> stops_ = false;
  uint64_t increments_ = 0;     // behind Stop
  Clock::duration slowest_{0};  // the same
  std::thread thread_;
};

class GroupRailsTest : public testing::Test {
 protected:
  // What etcd has of the group: nobody took over, nobody left those in sync, nobody joined anew.
  std::string Register() { return caller_.Range("/gannet/c/groups/g1")->items.at(0).value; }
  void PullAndPlug(int member, int device) {
    cables_.Pull(member, device);
    std::this_thread::sleep_for(kDown);
    cables_.Plug(member, device);
    std::this_thread::sleep_for(kUp);
  }

  Cables cables_;
  GroupOfProcesses group_{1'200, [this](int i) {
                            setenv("SOFTVERBS_PORTS", cables_.Folder(i).c_str(), 1);
                            return "--listen=" + FreeEndpoint() + ",127.0.1.1:0";
                          }};
  EtcdCaller caller_{{group_.EtcdUrl()}};
};

TEST_F(GroupRailsTest, NobodyTakesOverOrJoinsAnewBecauseOfACable) {
  const int primary = group_.AwaitAllInSync().primary;
  const std::string before = Register();
  std::vector<std::unique_ptr<Load>> loads;
  for (int i = 0; i < 2; ++i) loads.push_back(std::make_unique<Load>(group_.Endpoint(), i));
  for (int round = 0; round < kRounds; ++round) {
    for (int device = 0; device < 2; ++device) {
      PullAndPlug(primary, device);
      PullAndPlug((primary + 1) % GroupOfProcesses::kMembers, device);
    }
  }
  uint64_t increments = 0;
  for (const auto& load : loads) {
    load->Stop();
    increments += load->increments();
    RecordProperty("slowest_ms", absl::StrCat(load->slowest() / milliseconds(1)));
    std::cout << "the slowest three took " << load->slowest() / milliseconds(1) << " ms\n";
  }
  EXPECT_EQ(Register(), before);
  auto client = Client::Connect({group_.Endpoint()});
  ASSERT_TRUE(client.ok()) << client.status();
  const auto count = (*client)->Get("count");
  ASSERT_TRUE(count.ok() && count->has_value()) << count.status();
  EXPECT_EQ((*count)->data, absl::StrCat(increments));
}

}  // namespace
}  // namespace gannet
