#include <gannet/async_client.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tests/common/rdma/test_device.h"
#include "tests/integration/wire_tap.h"
#include "tests/support/server_process.h"

namespace gannet {

void PrintTo(const VerbCounts& counts, std::ostream* out) {
  *out << counts.reads << " READs, " << counts.sends << " SENDs, " << counts.cas << " CAS";
}

namespace {

// Tests the table in docs/testing-devices.md: the counts are the same on every device. The
// client counts everywhere. With GANNET_TEST_WIRE=INTERFACE, which must lead to a server on another
// host, the test also counts the packets on it, and the SENDs that Soft-RoCE's own counters report.

constexpr int kKeys = 50;  // operations of each kind
constexpr std::chrono::seconds kPatient{30};

std::string Key(int i) { return "counted " + std::to_string(i); }
std::string Absent(int i) { return "absent " + std::to_string(i); }

class VerbCountsTest : public ::testing::Test {
 protected:
  using Start = std::function<absl::Status()>;

  void SetUp() override {
    if (const char* interface = std::getenv("GANNET_TEST_WIRE"); interface != nullptr) {
      tap_.emplace(interface);
    }
    Connect();
  }

  // Connects a new client, which knows no locations.
  void Connect() {
    client_.reset();
    // So few are in flight that one queue pair is enough, and no other joins while packets are
    // counted.
    Options options{.connect_timeout = kPatient, .deadline = kPatient, .depth = 1};
    options.log = [this](LogLevel, std::string_view) { ++breaks_; };
    auto client = AsyncClient::Connect({server_.endpoint()}, options);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  // Runs one operation to its end, and adds its cost to `cost_`.
  Completion Run(const Start& start) {
    EXPECT_TRUE(start().ok());
    const auto give_up = std::chrono::steady_clock::now() + kPatient;
    Completion done;
    while (client_->Poll({&done, 1}) == 0) {
      if (std::chrono::steady_clock::now() > give_up) {
        ADD_FAILURE() << "an operation hangs";
        return {};
      }
    }
    EXPECT_EQ(done.code, absl::StatusCode::kOk) << static_cast<int>(done.code);
    cost_.reads += done.cost.reads;
    cost_.sends += done.cost.sends;
    cost_.cas += done.cost.cas;
    return done;
  }
  void Get(const std::string& key, bool found) {
    const auto out = std::as_writable_bytes(std::span(buffer_));
    EXPECT_EQ(Run([&] { return client_->Get(key, out, 0); }).found, found) << key;
  }
  void Put(const std::string& key, const std::string& value) {
    Run([&] { return client_->Put(key, value, {}, 0); });
  }
  // Locks and unlocks at once, because two keys may share a lock word.
  void LockAndUnlock(const std::string& key, const Start& lock) {
    const Completion done = Run(lock);
    EXPECT_TRUE(done.found) << key << " is locked by somebody";
    const Lock held{key, done.lock_word, 0};
    Run([&] { return client_->Unlock(held, 0); });
  }

  // Runs `operation` for each key, and expects the cost `each` by all counts.
  void Expect(const char* what, VerbCounts each, const std::function<void(int)>& operation) {
    Count(what, operation, [&] {
      const VerbCounts all{each.reads * kKeys, each.sends * kKeys, each.cas * kKeys};
      EXPECT_EQ(cost_, all) << what << ", counted by the client";
    });
  }

  // Counts it, checks the client's count, and expects the same on the wire.
  void Count(const char* what, const std::function<void(int)>& operation,
             const std::function<void()>& check) {
    const uint64_t device_before = SettledDeviceSends();
    if (tap_.has_value()) tap_->Take();
    cost_ = {};
    for (int i = 0; i < kKeys && !HasFailure(); ++i) operation(i);
    if (breaks_ > 0) return;
    check();
    std::printf("| %s | %.3f | %.3f | %.3f |", what, PerKey(cost_.reads), PerKey(cost_.sends),
                PerKey(cost_.cas));
    if (tap_.has_value()) ExpectOnWire(what, device_before);
    std::printf("\n");
  }

 private:
  static double PerKey(uint64_t n) { return static_cast<double>(n) / kKeys; }

  void ExpectOnWire(const char* what, uint64_t device_before) {
    WireTap::Counts wire = tap_->Take();
    EXPECT_EQ(wire.verbs, cost_) << what << ", counted on the wire";
    // The device counts a SEND when it was acknowledged, updates its counters only now and then,
    // and does not tell heartbeats apart.
    const auto give_up = std::chrono::steady_clock::now() + kPatient;
    uint64_t device = 0;
    do {
      client_->Poll({});
      const WireTap::Counts more = tap_->Take();
      EXPECT_EQ(more.verbs, VerbCounts{}) << what;
      wire.heartbeats += more.heartbeats;
      device = DeviceSends() - device_before;
    } while (device < cost_.sends + wire.heartbeats && std::chrono::steady_clock::now() < give_up);
    EXPECT_EQ(device, cost_.sends + wire.heartbeats) << what << ", SENDs counted by the device";
    std::printf(" %.3f | %.3f | %.3f | %.3f |", PerKey(wire.verbs.reads), PerKey(wire.verbs.sends),
                PerKey(wire.verbs.cas), PerKey(device - wire.heartbeats));
  }

  // Waits until the messages of the connection manager, which the device counts too, have been
  // counted. Nothing is sent meanwhile.
  uint64_t SettledDeviceSends() const {
    if (!tap_.has_value()) return 0;
    constexpr std::chrono::milliseconds kStill{100};
    uint64_t sends = DeviceSends();
    auto since = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - since < kStill) {
      if (const uint64_t now = DeviceSends(); now != sends) {
        sends = now;
        since = std::chrono::steady_clock::now();
      }
    }
    return sends;
  }

  uint64_t DeviceSends() const {
    uint64_t sends = 0;
    const std::string path =
        "/sys/class/infiniband/" + TestDevice().name + "/ports/1/hw_counters/rdma_sends";
    EXPECT_TRUE(std::ifstream(path) >> sends) << path;
    return sends;
  }

 protected:
  ServerProcess server_;
  std::optional<WireTap> tap_;
  std::string buffer_ = std::string(1 << 17, '\0');
  std::unique_ptr<AsyncClient> client_;
  VerbCounts cost_;  // of the operations being counted
  // How often the client's connection broke. On a machine that stood still it breaks, and what was
  // in flight is done again. Then the counts mean nothing.
  int breaks_ = 0;

  void CountAll();
};

void VerbCountsTest::CountAll() {
  const std::string small(100, 'v'), large(20'000, 'v');
  Expect("PUT of 100 B, new key", {0, 1, 0}, [&](int i) { Put(Key(i), small); });
  Expect("PUT of 100 B, known key", {0, 1, 0}, [&](int i) { Put(Key(i), small); });
  // The server READs the value, and its READs do not count as the client's.
  Expect("PUT of 20,000 B", {0, 1, 0}, [&](int) { Put("large", large); });
  ASSERT_NO_FATAL_FAILURE(Connect());
  Expect("GET, location not known", {2, 0, 0}, [&](int i) { Get(Key(i), true); });
  Expect("GET, location known", {1, 0, 0}, [&](int i) { Get(Key(i), true); });
  // A miss needs a READ that took less than 1 ms. Slower ones are repeated, and in the end the
  // server is asked. So it is one READ if nothing is slow, and here at least one.
  Count(
      "GET, no such key", [&](int i) { Get(Absent(i), false); },
      [&] {
        EXPECT_GE(cost_.reads, uint64_t{kKeys});
        EXPECT_LE(cost_.sends, uint64_t{kKeys});
        EXPECT_EQ(cost_.cas, 0u);
      });
  Expect("lock, unlock", {0, 0, 2},
         [&](int i) { LockAndUnlock(Key(i), [&] { return client_->TryLock(Key(i), 0); }); });
  Expect("lock and get, location known, unlock", {1, 0, 2}, [&](int i) {
    const auto out = std::as_writable_bytes(std::span(buffer_));
    LockAndUnlock(Key(i), [&] { return client_->LockAndGet(Key(i), out, 0); });
  });
  Expect("DELETE", {0, 1, 0}, [&](int i) { Run([&] { return client_->Delete(Key(i), {}, 0); }); });
}

TEST_F(VerbCountsTest, EachOperationCostsTheSameVerbsWhoeverCounts) {
  if (client_->Info().at(0).lock_mode != "nic") GTEST_SKIP() << "no atomics: locks are SENDs here";
  constexpr int kTries = 5;
  int tries = 0;
  do {
    breaks_ = 0;
    ASSERT_NO_FATAL_FAILURE(CountAll());
  } while (breaks_ > 0 && ++tries < kTries);
  EXPECT_EQ(breaks_, 0) << "the connection broke each time";
}

}  // namespace
}  // namespace gannet
