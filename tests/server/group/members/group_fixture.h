#ifndef GANNET_TESTS_SERVER_GROUP_MEMBERS_GROUP_FIXTURE_H_
#define GANNET_TESTS_SERVER_GROUP_MEMBERS_GROUP_FIXTURE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/boot_time.h"
#include "common/base/clocks.h"
#include "common/rdma/loopback.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/group/members/shared_register.h"
#include "tests/server/rpc/put_fixture.h"

namespace gannet {

// A primary that the test's own thread steps, and its backups, which it steps as well. The leases
// are so long that nobody takes over. Their clock is the machine's, and what the test skips.
class GroupPutTest : public PutTest {
 public:
  static constexpr int64_t kLeaseMs = 10'000;
  static constexpr int64_t kLeaseNs = kLeaseMs * kNsPerMs;

 protected:
  static constexpr size_t kBackupsMax = 2;

  GroupPutTest() = default;
  // A group with other terms, but for its history and its members.
  explicit GroupPutTest(GroupTerms terms) : shared_(WithMembers(std::move(terms))) {}

  void TearDown() override {
    for (Backup& backup : backups_) {
      if (backup.server != nullptr) backup.server->BeginStop();
    }
    ServerTest::TearDown();
    for (Backup& backup : backups_) backup.server.reset();
    own_.reset();
  }

  // The primary's; for StartGroup.
  void UseDisk(DiskOptions disk) { disk_ = std::move(disk); }
  // Of all servers, besides the first one's.
  void UseRails(std::vector<SocketAddress> more) { more_rails_ = std::move(more); }
  void StartGroup(size_t backups) {
    StartPrimary();
    ASSERT_TRUE(StepUntil([this] { return server().serves(); }));
    StartBackups(backups);
  }
  // The server that is going to found the group.
  void StartPrimary() {
    own_ = std::make_unique<SharedConfigStore>(&shared_);
    StartServer([this](auto* options) {
      options->memory_bytes = 64 << 20;
      options->disk = disk_;
      options->more_rails = more_rails_;
      SetGroup(options, own_.get(), "n1");
    });
    server().UseClock(&clock_);
  }
  void StartBackups(size_t backups) {
    for (size_t i = 0; i < backups; ++i) {
      StartBackup(i);
      if (HasFatalFailure()) return;
    }
    ASSERT_TRUE(
        StepUntil([&] { return shared_.now().configuration.in_sync.size() == backups + 1; }));
  }

  void Step() override {
    ServerTest::Step();
    server().member()->Poll(lease_now());
    if (DiskLog* const disk = server().disk()) disk->Poll(MonotonicNs());
    for (Backup& backup : backups_) {
      if (backup.server == nullptr) continue;
      backup.server->Poll(now());
      for (const auto& worker : backup.server->workers()) worker->Poll(now());
      if (!follow_apart_) backup.server->member()->Poll(lease_now());
    }
  }
  virtual BootTime lease_now() const { return MachineBootTime() + skipped_ns_; }
  // Lets leases pass, in so short steps that no lease is lost.
  void SkipLeaseTime(int64_t ns) {
    for (int64_t left = ns; left > 0; left -= kNsPerSecond) {
      skipped_ns_ += std::min<int64_t>(left, kNsPerSecond);
      for (int i = 0; i < 20; ++i) Step();
    }
  }
  // The same, while no worker polls.
  void SkipLeaseTimeOfTheMemberAlone(int64_t ns) {
    skipped_ns_ += ns;
    server().member()->Poll(lease_now());
  }
  SharedRegister& shared() { return shared_; }
  // From now on, the backups follow only when the test polls their members.
  void FollowApart() { follow_apart_ = true; }
  void FollowAgain() { follow_apart_ = false; }
  // Items expire by this clock at the primary.
  ServerClock& clock() { return clock_; }

  Primary::Seen primary() { return server().member()->Look().as_primary; }
  Server& backup(size_t i) { return *backups_[i].server; }
  // Returns by how much a backup's clock, by which items expire, is ahead of the machine's.
  int64_t BackupAheadMs(size_t i) const {
    const auto own = static_cast<int64_t>(backups_[i].clock.Time().ms());
    return own - static_cast<int64_t>(MachineWallTime().ms());
  }

  // The process ends, and with it its copy.
  void LoseBackup(size_t i) {
    Server& lost = *backups_[i].server;
    lost.BeginStop();
    ASSERT_TRUE(StepUntil([&] {
      return std::ranges::all_of(lost.workers(), [](const auto& it) { return it->closed(); });
    }));
    backups_[i].server.reset();
    backups_[i].store.reset();
  }

  void StartBackup(size_t i) {
    backups_[i].store = std::make_unique<SharedConfigStore>(&shared_);
    Server::Options options{.clocks = MachineClocks()};
    options.device = TestDevice();
    options.listen = OwnAddress(TestDevice()).value();
    options.memory_bytes = 64 << 20;
    options.lock_words = 256;
    options.connections_max = 64;
    options.more_rails = more_rails_;
    SetGroup(&options, backups_[i].store.get(), "n" + std::to_string(i + 2));
    auto server = Server::Create(options);
    ASSERT_TRUE(server.ok()) << server.status();
    backups_[i].server = *std::move(server);
    backups_[i].server->UseClock(&backups_[i].clock);
  }

 private:
  std::vector<SocketAddress> more_rails_;
  struct Backup {
    std::unique_ptr<SharedConfigStore> store;
    ServerClock clock = ServerClock::Start(MachineClocks());
    std::unique_ptr<Server> server;
  };

  void SetGroup(Server::Options* options, SharedConfigStore* store, std::string node) {
    options->group = GroupOptions{.config_store = store,
                                  .directory = store,
                                  .terms = shared_.terms(),
                                  .node = std::move(node),
                                  .auth_file = auth_file_};
    options->auth_file = auth_file_;
    options->clocks.boot = [this] { return lease_now(); };
    set_options_(options);
  }

  static GroupTerms WithMembers(GroupTerms terms) {
    terms.history = 77;
    terms.members = {"n1", "n2", "n3"};
    return terms;
  }

  SharedRegister shared_{WithMembers({.lease_ms = kLeaseMs})};
  std::unique_ptr<SharedConfigStore> own_;
  ServerClock clock_ = ServerClock::Start(MachineClocks());
  std::array<Backup, kBackupsMax> backups_;
  DiskOptions disk_;
  bool follow_apart_ = false;

 protected:
  int64_t skipped_ns_ = 0;
  std::string auth_file_;  // of all; empty: nobody is authenticated
  std::function<void(Server::Options*)> set_options_ = [](Server::Options*) {};  // of all
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_MEMBERS_GROUP_FIXTURE_H_
