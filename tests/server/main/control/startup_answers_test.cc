// What a server answers to clients that connect while it prepares its memory.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "common/base/clocks.h"
#include "common/rdma/loopback.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/main/control/server.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/rpc/raw_peer.h"

namespace gannet {
namespace {

using testing::HasSubstr;

constexpr uint64_t kPieces = 4;

// Lets `free` pieces of the memory be touched. The others wait.
class SlowTouch {
 public:
  explicit SlowTouch(uint64_t free) : free_(free) {}
  int operator()() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return free_ > 0; });
    --free_;
    return 0;
  }
  void Release() {
    const std::lock_guard lock(mutex_);
    free_ = kPieces;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t free_;
};

class StartupAnswersTest : public testing::Test, public SteppedServer {
 protected:
  StartupAnswersTest() : address_(FreeAddress()) {
    creating_ = std::thread([this] {
      Server::Options options{.clocks = MachineClocks()};
      options.device = TestDevice();
      options.listen = address_;
      options.memory_bytes = kPieces * kPrefaultPieceBytes;
      options.lock_words = 256;
      options.answer_while_starting = true;
      options.touch = [this](std::span<std::byte>) { return touch_(); };
      auto server = Server::Create(options);
      EXPECT_TRUE(server.ok()) << server.status();
      if (server.ok()) server_ = *std::move(server);
    });
  }
  void FinishStart() {
    touch_.Release();
    creating_.join();
    ASSERT_NE(server_, nullptr);
  }
  void TearDown() override {
    if (creating_.joinable()) FinishStart();
    server_->BeginStop();
    EXPECT_TRUE(StepUntil([this] { return server_->workers()[0]->closed(); }));
  }
  // Returns an address with a port that is free at the moment. The listener of Create cannot be
  // asked for its port while Create works.
  static SocketAddress FreeAddress() {
    return Listener::Create(OwnAddress(TestDevice()).value()).value()->address();
  }

 public:
  SocketAddress address() const override { return address_; }
  bool StepUntil(const std::function<bool()>& done) override {
    const int64_t deadline_ns = MonotonicNs() + kStepNsMax;
    while (!done()) {
      if (MonotonicNs() > deadline_ns) return false;
      if (creating_.joinable()) {
        std::this_thread::yield();
        continue;
      }
      const Now now = clock_.Read();
      server_->Poll(now);
      server_->workers()[0]->Poll(now);
    }
    return true;
  }

 protected:
  // Connects until the server listens and refuses. Returns its reject.
  std::optional<Reject> RefusalOf(const ConnectRequest& request) {
    std::optional<Reject> reject;
    const int64_t deadline_ns = MonotonicNs() + kStepNsMax;
    while (!reject && MonotonicNs() < deadline_ns) {
      RawPeer peer(this);
      EXPECT_FALSE(peer.Connect(request));
      reject = peer.reject();
    }
    return reject;
  }

  const ServerClock clock_ = ServerClock::Start(MachineClocks());
  SlowTouch touch_{1};
  const SocketAddress address_;
  std::unique_ptr<Server> server_;
  std::thread creating_;
};

TEST_F(StartupAnswersTest, RefusesAsStartingAndSaysHowFarItIs) {
  std::string reason;
  // The first piece may still be on its way.
  for (int tries = 0; tries < 1000 && reason.find("25 %") == std::string::npos; ++tries) {
    const auto reject = RefusalOf(NewConnectRequest());
    ASSERT_TRUE(reject.has_value());
    EXPECT_EQ(reject->code, static_cast<uint32_t>(RejectCode::kStarting));
    reason = RejectReason(*reject);
  }
  EXPECT_EQ(reason, "the server is starting: 25 % of its memory is ready");
}

TEST_F(StartupAnswersTest, ServesOnceItIsReady) {
  ASSERT_TRUE(RefusalOf(NewConnectRequest()).has_value());
  FinishStart();
  RawPeer peer(this);
  EXPECT_TRUE(peer.Connect());
  EXPECT_EQ(peer.Put("key", "value"), ReplyStatus::kOk);
}

TEST_F(StartupAnswersTest, AnotherVersionIsToldAtOnce) {
  ConnectRequest request = NewConnectRequest();
  request.version_min = request.version_max = kProtocolVersionMax + 1;
  const auto reject = RefusalOf(request);
  ASSERT_TRUE(reject.has_value());
  EXPECT_EQ(reject->code, static_cast<uint32_t>(RejectCode::kVersion));
}

TEST(ServerNameTest, OddCharactersAreAnError) {
  Server::Options options{.clocks = MachineClocks()};
  options.device = TestDevice();
  options.listen = OwnAddress(TestDevice()).value();
  for (const char* name : {"two words", "a@b", "a,b", "123456789012345678901234567890123"}) {
    options.name = name;
    const auto server = Server::Create(options);
    EXPECT_TRUE(absl::IsInvalidArgument(server.status())) << name;
    EXPECT_THAT(std::string(server.status().message()), HasSubstr("letters, digits")) << name;
  }
}

}  // namespace
}  // namespace gannet
