// A server and a client on a device with two ports of InfiniBand: connections take their alternate
// paths when a port goes down, and nothing breaks. ctest sets SOFTVERBS_DEVICE_PORTS=2 and
// SOFTVERBS_LINK_LAYER=infiniband. The server's ports go down by files (softverbs/NETWORK.md), the
// client's by a call.

#include <gannet/client.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "softverbs/control.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/support/environment_variable.h"
#include "tests/support/rest.h"
#include "tests/support/run_program.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr seconds kPatient{30};
constexpr int kKeys = 50;
// How long a port is down: for more than queue pairs try again (0.54 s).
constexpr milliseconds kDown{1500};

// One end of the links: of this process, where the client is, or of the server.
enum class At : uint8_t { kServer, kClient };

// Lines of a client's log.
class Lines {
 public:
  void Add(std::string_view line) {
    const std::lock_guard lock(mutex_);
    lines_ += line;
    lines_ += '\n';
  }
  std::string all() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::string lines_;
};

class PathsTest : public ::testing::Test {
 protected:
  ~PathsTest() override {
    for (int port = 0; port < 2; ++port) EXPECT_EQ(softverbs_set_port(port, 1), 0);
  }

  static std::unique_ptr<ServerProcess> Start(const std::string& ports) {
    const test_support::EnvironmentVariable folder("SOFTVERBS_PORTS", ports);
    return std::make_unique<ServerProcess>(
        std::vector<std::string>{"--listen=127.0.0.1:0,127.0.1.1:0", "--http=127.0.0.1:0"});
  }
  void Set(At at, int port, bool up) {
    const std::string file = absl::StrCat(ports_.path(), "/", port, ".down");
    if (at == At::kClient) {
      ASSERT_EQ(softverbs_set_port(port, up ? 1 : 0), 0);
    } else if (up) {
      ASSERT_TRUE(std::filesystem::remove(file));
    } else {
      ASSERT_TRUE(std::ofstream(file).is_open());
    }
  }
  uint64_t Moves() const {
    uint64_t moves = 0;
    const auto info = client_->Info();
    for (const RailInfo& rail : info[0].rails) moves += rail.moves;
    return moves;
  }
  // Waits until each rail's connections are at home, and may take their alternate path.
  void AwaitArmed(uint64_t moves_even = 0) {
    const auto armed = [&] {
      const auto rails = client_->Info()[0].rails;
      return rails.size() == 2 && std::ranges::all_of(rails, &RailInfo::alternate_path) &&
             (Moves() - moves_even) % 2 == 0;
    };
    const auto until = Clock::now() + kPatient;
    while (!armed() && Clock::now() < until) test_support::Rest();
    ASSERT_TRUE(armed());
  }
  // What the server counted, over both rails.
  uint64_t Counted(const std::string& metric) {
    EXPECT_TRUE(server_->process().AwaitStderr("shows itself at "));
    const std::string url = ShownAt(server_->process().Stderr());
    const std::string text = test_support::RunProgram({"curl", "--silent", url + "/metrics"}).out;
    uint64_t sum = 0;
    for (const auto line : absl::StrSplit(text, '\n')) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      uint64_t value = 0;
      if (words.front().starts_with(metric + "{") && absl::SimpleAtoi(words.back(), &value))
        sum += value;
    }
    return sum;
  }
  // The server takes its devices' events once a second.
  void AwaitCounted(uint64_t least) {
    const auto until = Clock::now() + kPatient;
    while (Counted("gannet_rail_path_migrations_total") < least && Clock::now() < until)
      test_support::Rest();
    EXPECT_GE(Counted("gannet_rail_path_migrations_total"), least);
  }
  void Connect() {
    Options options;
    options.deadline = kPatient;
    options.log = [this](LogLevel, std::string_view line) { lines_.Add(line); };
    auto client = Client::Connect({server_->endpoint()}, options);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }

  const test_support::TemporaryDirectory ports_;
  Lines lines_;
  const std::unique_ptr<ServerProcess> server_ = Start(ports_.path());
  std::unique_ptr<Client> client_;
};

// GETs, PUTs and increments, until it is told to stop.
class Load {
 public:
  explicit Load(Client& client) : client_(client), thread_([this] { Run(); }) {}
  // Returns how long the longest operation took.
  milliseconds Stop() {
    stop_ = true;
    thread_.join();
    return longest_;
  }
  int64_t increments() const { return increments_; }

 private:
  void Run() {
    for (int i = 0; !stop_; ++i) {
      const auto began = Clock::now();
      const std::string key = absl::StrCat("key", i % kKeys);
      if (i % 20 == 0) {
        EXPECT_TRUE(client_.Put(key, key).ok());
      } else if (i % 20 == 1) {
        const auto now = client_.Incr("counter", 1);
        EXPECT_TRUE(now.ok()) << now.status();
        EXPECT_EQ(now.value_or(0), ++increments_);
      } else {
        const auto value = client_.Get(key);
        EXPECT_TRUE(value.ok()) << value.status();
        if (value.ok() && value->has_value()) {
          EXPECT_EQ((*value)->data, key);
        }
      }
      longest_ = std::max(longest_, std::chrono::duration_cast<milliseconds>(Clock::now() - began));
    }
  }

  Client& client_;
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> increments_{0};
  milliseconds longest_{};
  std::thread thread_;
};

TEST_F(PathsTest, PortsGoDownInTurnAndNothingBreaks) {
  Connect();
  AwaitArmed();
  const auto lock = client_->AcquireLock("locked");
  ASSERT_TRUE(lock.ok()) << lock.status();
  Load load(*client_);
  milliseconds longest{};
  for (const At at : {At::kServer, At::kClient}) {
    for (const int port : {0, 1}) {
      const uint64_t moves = Moves();
      const uint64_t counted = Counted("gannet_rail_path_migrations_total");
      Set(at, port, false);
      std::this_thread::sleep_for(kDown);
      EXPECT_GT(Moves(), moves) << "port " << port;
      Set(at, port, true);
      AwaitArmed(moves);
      AwaitCounted(counted + 2);  // there and back
    }
  }
  longest = load.Stop();
  EXPECT_GT(load.increments(), 0);
  EXPECT_TRUE(client_->Unlock(*lock).ok()) << "the first connection lived";
  EXPECT_EQ(lines_.all().find("tried again"), std::string::npos) << lines_.all();
  EXPECT_EQ(Counted("gannet_rail_path_migration_errors_total"), 0u);
  RecordProperty("longest_ms", static_cast<int>(longest.count()));
  std::cout << "the longest operation took " << longest.count() << " ms; " << Moves()
            << " moves of the client's connections, "
            << Counted("gannet_rail_path_migrations_total") << " counted by the server\n";
}

}  // namespace
}  // namespace gannet
