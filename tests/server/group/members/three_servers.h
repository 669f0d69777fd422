#ifndef GANNET_TESTS_SERVER_GROUP_MEMBERS_THREE_SERVERS_H_
#define GANNET_TESTS_SERVER_GROUP_MEMBERS_THREE_SERVERS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/clocks.h"
#include "common/protocol/replica.h"
#include "common/rdma/loopback.h"
#include "server/main/control/server_threads.h"
#include "softverbs/tests/support/sanitizer.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/group/members/shared_register.h"
#include "tests/support/rest.h"

namespace gannet {

// A group of up to three whole servers in one process, with threads of their own.
class ThreeServers {
 public:
  static constexpr size_t kServers = 3;

  // Under a sanitizer, which makes all of this slow, the group's lease is longer: who is only busy
  // is not to count as silent.
  explicit ThreeServers(GroupTerms terms) : shared(Patient(std::move(terms))) {}

  static std::string NameOf(size_t i) { return "n" + std::to_string(i + 1); }

  void Start(size_t i) {
    const absl::Status status = TryStart(i);
    ASSERT_TRUE(status.ok()) << status;
  }
  absl::Status TryStart(size_t i) {
    Node& node = nodes[i];
    node.store = std::make_unique<SharedConfigStore>(&shared);
    Server::Options options{.clocks = MachineClocks()};
    options.device = TestDevice();
    options.listen = OwnAddress(TestDevice()).value();
    options.memory_bytes = 64 << 20;
    options.lock_words = 256;
    options.huge_pages = HugePages::kOff;
    options.disk.data = data[i];
    options.disk.sync = sync;
    options.disk.may_fail = lost_its_place;
    options.group = GroupOptions{.config_store = node.store.get(),
                                 .directory = node.store.get(),
                                 .terms = shared.terms(),
                                 .node = names[i],
                                 .auth_file = auth_files[i]};
    options.auth_file = auth_files[i];
    auto server = Server::Create(options);
    if (!server.ok()) return server.status();
    node.address = (*server)->address().ToString();
    auto threads = ServerThreads::Start(*std::move(server), {.stop_wait_ns = stop_wait_ns});
    if (!threads.ok()) return threads.status();
    node.threads = *std::move(threads);
    return absl::OkStatus();
  }
  void Stop(size_t i) {
    nodes[i].threads.reset();
    nodes[i].store.reset();
  }

  // Waits until something is so, for a long time. Returns whether it is.
  static bool Await(const std::function<bool()>& so) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!so()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      test_support::Rest();
    }
    return true;
  }
  // Waits until so many are in sync, with a primary that serves.
  bool AwaitInSync(size_t n) {
    return Await(
        [&] { return shared.now().configuration.in_sync.size() == n && Primary().has_value(); });
  }
  // Has the primary hand over to this one. A primary drops the wish if the successor is silent for
  // a moment, so an operator asks again.
  bool HandOverTo(size_t i) {
    return Await([&] {
      if (Primary() == i) return true;
      if (Primary().has_value() && !shared.successor()) shared.WantSuccessor(NameOf(i));
      return false;
    });
  }
  // Returns who is primary by the register, if it serves.
  std::optional<size_t> Primary() const {
    const GroupConfiguration now = shared.now().configuration;
    for (size_t i = 0; i < kServers; ++i) {
      if (nodes[i].threads == nullptr || now.primary.node != NameOf(i)) continue;
      const Node& node = nodes[i];
      const Member::Seen seen = node.threads->server().member()->Look();
      if (seen.role == Member::Role::kPrimary && node.threads->server().serves()) return i;
    }
    return std::nullopt;
  }
  bool Has(size_t i, std::string_view key, std::string_view value) {
    std::string copy(value.size(), '\0');
    Server& server = const_cast<Server&>(nodes[i].threads->server());
    const ReadOutcome read = server.store().Get(key, std::as_writable_bytes(std::span(copy)),
                                                nodes[i].threads->now().server_time);
    return read.status == ReplyStatus::kOk && read.value_bytes == value.size() && copy == value;
  }

  // Returns whether the disk has all that was recorded.
  bool Synced(size_t i) {
    const DiskLog* const disk = const_cast<Server&>(nodes[i].threads->server()).disk();
    return disk->safe() == disk->appended();
  }

  bool HasKey(size_t i, std::string_view key) {
    Server& server = const_cast<Server&>(nodes[i].threads->server());
    return server.store().Get(key, {}, nodes[i].threads->now().server_time).status !=
           ReplyStatus::kNotFound;
  }

  static GroupTerms Patient(GroupTerms terms) {
    if (test_support::kSanitizer) {
      terms.lease_ms = std::min(2 * terms.lease_ms, kPrimaryLeaseMsMax);
    }
    return terms;
  }

  struct Node {
    std::unique_ptr<SharedConfigStore> store;
    std::string address;
    std::unique_ptr<ServerThreads> threads;
  };
  // Returns what the process that runs said that it had applied, or its former run had kept.
  uint64_t Applied(size_t i) const {
    const uint64_t incarnation = nodes[i].threads->server().context().grant.incarnation;
    return shared.AppliedOf(NameOf(i), incarnation).value_or(0);
  }

  std::array<std::string, kServers> names = {NameOf(0), NameOf(1), NameOf(2)};
  std::array<std::string, kServers> auth_files;  // empty: nobody is authenticated
  std::array<std::string, kServers> data;        // directories; empty: nothing is kept
  Journal::Sync sync = Journal::Sync::kInterval;
  bool lost_its_place = false;  // who starts was a member before: its disk may fail
  int64_t stop_wait_ns = 0;     // as ServerThreads::Options
  SharedRegister shared;
  std::array<Node, kServers> nodes;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_MEMBERS_THREE_SERVERS_H_
