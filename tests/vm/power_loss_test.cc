#include <gannet/client.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/common/rdma/test_device.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

// Run by tests/vm/two-guests, which switches the server's machine off and on as it is told by files
// in the directory GANNET_TEST_POWER: `off` and `on` are orders, `is-off` an answer.
std::string PowerFile(const char* name) {
  const char* directory = std::getenv("GANNET_TEST_POWER");
  return std::string(directory == nullptr ? "." : directory) + "/" + name;
}
void Order(const char* name) { std::ofstream(PowerFile(name)) << "now\n"; }

constexpr milliseconds kDeadline{1000};
// A call may be late by what an emulated machine costs, not by a hang.
constexpr seconds kLateMax{8};
constexpr seconds kGiveUp{150};

struct Call {
  const char* name;
  bool writes;  // may end as Unknown
  std::function<absl::Status(Client&)> run;
};

const std::vector<Call>& Calls() {
  static const std::vector<Call> calls = {
      {"Get", false, [](Client& c) { return c.Get("power", kDeadline).status(); }},
      {"Put", true, [](Client& c) { return c.Put("power", "x", {}, kDeadline).status(); }},
      {"TryLock", false, [](Client& c) { return c.TryLock("lock", kDeadline).status(); }},
      {"Ping", false, [](Client& c) { return c.Ping(kDeadline); }},
  };
  return calls;
}

absl::Status RunInTime(const Call& call, Client& client) {
  const Clock::time_point start = Clock::now();
  absl::Status status = call.run(client);
  EXPECT_LE(Clock::now() - start, kDeadline + kLateMax) << call.name;
  return status;
}

bool IsClear(const Call& call, const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         (call.writes && absl::IsUnknown(status));
}

TEST(PowerLossTest, ClientsSeeUnavailableInTimeAndComeBackToTheNextRun) {
  ASSERT_FALSE(TestServer().empty()) << "needs --server=HOST:PORT";
  auto connected = Client::Connect({TestServer()}, {.connect_timeout = seconds(20)});
  ASSERT_TRUE(connected.ok()) << connected.status();
  Client& client = **connected;
  ASSERT_TRUE(client.Put("power", "before", {}, seconds(20)).ok());
  const uint64_t incarnation = client.Info().at(0).incarnation;

  // Calls go on while the power goes: none hangs, none fails in another way.
  Order("off");
  const Clock::time_point give_up = Clock::now() + kGiveUp;
  size_t calls = 0, unavailable = 0;
  while (unavailable < Calls().size() && Clock::now() < give_up) {
    const Call& call = Calls()[calls++ % Calls().size()];
    const absl::Status status = RunInTime(call, client);
    if (status.ok() || absl::IsFailedPrecondition(status)) continue;  // the lock is its own already
    EXPECT_TRUE(IsClear(call, status)) << call.name << ": " << status;
    unavailable += absl::IsUnavailable(status) ? 1 : 0;
  }
  std::printf("%zu calls, then Unavailable\n", calls);
  EXPECT_GE(unavailable, Calls().size()) << "never Unavailable";
  EXPECT_TRUE(std::filesystem::exists(PowerFile("is-off"))) << "Unavailable with the power on";

  Order("on");
  absl::Status status;
  do {
    status = client.Put("power", "after", {}, kDeadline).status();
  } while (!status.ok() && Clock::now() < give_up);
  ASSERT_TRUE(status.ok()) << status;
  const auto value = client.Get("power", seconds(20));
  ASSERT_TRUE(value.ok() && value->has_value()) << value.status();
  EXPECT_EQ((*value)->data, "after");
  EXPECT_NE(client.Info().at(0).incarnation, incarnation);
}

}  // namespace
}  // namespace gannet
