#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "tests/softverbs/support/verbs_fixture.h"
#include "tests/support/free_port.h"
#include "tests/support/key_file.h"
#include "tests/support/role_process.h"

// Two processes that SOFTVERBS_NET joins: each believes that the other is on another host. With
// addresses of 127.0.0.0/8 this needs no right and no second network namespace.

namespace softverbs {
namespace {

using test_support::KeyFile;
using test_support::Put;
using test_support::ReceiveBytes;
using test_support::RegisterRole;
using test_support::RoleProcess;
using test_support::Take;

constexpr char kOwnHost[] = "127.0.0.2";
constexpr char kPeerHost[] = "127.0.0.3";
constexpr uint8_t kPattern = 99;

// (3 + 1) * 268 ms. The packets of such a link live for three quarters of that.
const ConnectOptions kPatient = {.retry_cnt = 3, .timeout = 16};

// The test has the first address, its children have the second one. All have a key.
struct Environment : testing::Environment {
  void SetUp() override {
    key = std::make_unique<KeyFile>("the key of all these hosts");
    port = test_support::FreePort();
    setenv("SOFTVERBS_NET", (std::string(kOwnHost) + ":" + std::to_string(port)).c_str(), 1);
    setenv("SOFTVERBS_NET_KEY", key->path().c_str(), 1);
  }
  void TearDown() override { key.reset(); }

  std::unique_ptr<KeyFile> key;
  uint16_t port = 0;
};
Environment* const environment = new Environment;
[[maybe_unused]] testing::Environment* const added = testing::AddGlobalTestEnvironment(environment);

enum class Order : int { kWord, kPostReceive };

struct ChildOptions {
  uint16_t port = 0;
  bool has_key = true;
  ConnectOptions connect;
};

// Gives access to its memory, and obeys orders until the test hangs up.
int Target(int socket) {
  const auto options = Take<ChildOptions>(socket);
  setenv("SOFTVERBS_NET", (std::string(kPeerHost) + ":" + std::to_string(options.port)).c_str(), 1);
  if (!options.has_key) unsetenv("SOFTVERBS_NET_KEY");
  Owned<ibv_context> device = OpenDevice();
  Side side(device.get(), {.kind = MemoryKind::kMapped});
  side.Fill(0, side.memory.size(), kPattern);
  Put(socket, side.address());
  side.Connect(Take<Address>(socket), options.connect);
  Put(socket, char{1});
  Order order;
  while (ReceiveBytes(socket, &order, sizeof(order))) {
    uint64_t answer = 0;
    // What lies in the process's sockets is executed, or refused, before the word is read.
    for (int i = 0; i < 1000; ++i) side.Idle();
    if (order == Order::kWord) answer = __atomic_load_n(&side.Word(0), __ATOMIC_ACQUIRE);
    if (order == Order::kPostReceive) answer = static_cast<uint64_t>(side.PostReceive(1, 0, 4096));
    Put(socket, answer);
  }
  return testing::Test::HasFailure() ? 1 : 0;
}
const RegisterRole target_role("target", Target);

class RemoteTest : public ::testing::Test {
 protected:
  void Start(const ConnectOptions& connect = kPatient, bool has_key = true) {
    child_ = std::make_unique<RoleProcess>("target");
    Put(child_->socket(), ChildOptions{environment->port, has_key, connect});
    peer_ = Take<Address>(child_->socket());
    side_ = std::make_unique<Side>(device_.get(), SideOptions{});
    side_->ToRtr(peer_, connect);
    Put(child_->socket(), side_->address());
    ASSERT_EQ(Take<char>(child_->socket()), 1);
    side_->ToRts(connect);
  }
  uint64_t Do(Order order) {
    Put(child_->socket(), order);
    return Take<uint64_t>(child_->socket());
  }
  ibv_wc_status Read(size_t length = 64) {
    EXPECT_EQ(side_->Read(1, 0, length, peer_, 0), 0);
    return side_->Next().status;
  }
  // Connects a socket to the peer's port.
  int Stranger() {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(environment->port);
    inet_pton(AF_INET, kPeerHost, &to.sin_addr);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    return fd;
  }

  Owned<ibv_context> device_ = OpenDevice();
  std::unique_ptr<RoleProcess> child_;
  Address peer_;
  std::unique_ptr<Side> side_;
};

TEST_F(RemoteTest, TheFirstGidIsTheAddressThatOthersReach) {
  ibv_gid gid;
  ASSERT_EQ(ibv_query_gid(device_.get(), 1, 0, &gid), 0);
  const uint8_t expected[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 2};
  EXPECT_EQ(memcmp(gid.raw, expected, sizeof(expected)), 0);
}

TEST_F(RemoteTest, EveryOperationReachesTheOtherHost) {
  Start();
  ASSERT_EQ(Read(300'000), IBV_WC_SUCCESS);
  EXPECT_TRUE(side_->Matches(0, 300'000, kPattern));
  side_->Word(0) = 41;
  ASSERT_EQ(side_->Write(2, 0, 8, peer_, 0), 0);
  EXPECT_EQ(side_->Next().status, IBV_WC_SUCCESS);
  ASSERT_EQ(side_->FetchAdd(3, 8, peer_, 0, 1), 0);
  EXPECT_EQ(side_->Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(side_->Word(8), 41u);
  EXPECT_EQ(Do(Order::kWord), 42u);
  ASSERT_EQ(Do(Order::kPostReceive), 0u);
  side_->Word(0) = 43;
  ASSERT_EQ(side_->PostSend(4, 0, 4096), 0);
  EXPECT_EQ(side_->Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(Do(Order::kWord), 43u);
  EXPECT_EQ(child_->Finish(), 0);
}

TEST_F(RemoteTest, AWriteThatFillsEveryBufferArrives) {
  Start();
  const size_t all = side_->memory.size();
  side_->Fill(0, all, kPattern + 1);
  for (int i = 0; i < 32; ++i) ASSERT_EQ(side_->Write(i, 0, all, peer_, 0), 0);
  for (int i = 0; i < 32; ++i) ASSERT_EQ(side_->Next().status, IBV_WC_SUCCESS);
  side_->Fill(0, all, 0);
  ASSERT_EQ(Read(all), IBV_WC_SUCCESS);
  EXPECT_TRUE(side_->Matches(0, all, kPattern + 1));
}

TEST_F(RemoteTest, AWrongKeyOfMemoryIsRefusedThere) {
  Start();
  peer_.rkey ^= 0x100;
  EXPECT_EQ(Read(), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(RemoteTest, AKilledPeerFailsRequests) {
  Start();
  ASSERT_EQ(Read(), IBV_WC_SUCCESS);
  child_->process().Kill();
  EXPECT_EQ(Read(), IBV_WC_RETRY_EXC_ERR);
}

// TCP keeps the WRITE in the stopped peer's socket. Once its requester has heard that it failed, it
// must never be executed (tests/model/late_write_model.h).
TEST_F(RemoteTest, AStoppedPeerExecutesNothingAfterTheError) {
  Start();
  const uint64_t before = Do(Order::kWord);
  side_->Word(0) = ~before;
  ASSERT_EQ(Read(0), IBV_WC_SUCCESS);  // so that the link has a young tick, and sends at once
  child_->process().Stop();
  ASSERT_EQ(side_->Write(2, 0, 8, peer_, 0), 0);
  EXPECT_EQ(side_->Next().status, IBV_WC_RETRY_EXC_ERR);
  child_->process().Signal(SIGCONT);
  EXPECT_EQ(Do(Order::kWord), before);
}

TEST_F(RemoteTest, APeerThatIsStoppedForAShortTimeAnswersLater) {
  Start({.retry_cnt = 7, .timeout = 19});  // 17 s
  ASSERT_EQ(Read(0), IBV_WC_SUCCESS);
  child_->process().Stop();
  ASSERT_EQ(side_->Read(1, 0, 64, peer_, 0), 0);
  EXPECT_TRUE(side_->Idle());
  child_->process().Signal(SIGCONT);
  EXPECT_EQ(side_->Next().status, IBV_WC_SUCCESS);
}

TEST_F(RemoteTest, AHostWithoutTheKeyIsRefused) {
  Start(kPatient, /*has_key=*/false);
  EXPECT_EQ(Read(), IBV_WC_RETRY_EXC_ERR);
}

TEST(RemoteKeyTest, AKeyThatOthersMayReadEndsTheProgram) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const KeyFile loose("a key that everybody knows");
  chmod(loose.path().c_str(), 0644);
  EXPECT_EXIT(
      {
        setenv("SOFTVERBS_NET_KEY", loose.path().c_str(), 1);
        OpenDevice();
      },
      testing::ExitedWithCode(2), "chmod 600");
}

TEST_F(RemoteTest, StrangersAtThePortDoNoHarm) {
  Start();
  ASSERT_EQ(Read(), IBV_WC_SUCCESS);
  for (const size_t size : {size_t{1}, size_t{71}, size_t{72}, size_t{100'000}}) {
    const int fd = Stranger();
    const std::string garbage(size, '\x5a');
    // The peer may have closed before it read all.
    (void)send(fd, garbage.data(), garbage.size(), MSG_NOSIGNAL);
    char byte;
    shutdown(fd, SHUT_WR);
    EXPECT_LE(recv(fd, &byte, 1, 0), 0) << "an answer to garbage";
    close(fd);
  }
  EXPECT_EQ(Read(), IBV_WC_SUCCESS);
  EXPECT_EQ(child_->Finish(), 0);
}

TEST_F(RemoteTest, AHostThatIsNotThereFailsRequests) {
  Start();
  peer_.gid.raw[15] = 77;  // 127.0.0.77, where nobody listens
  Side other(device_.get(), {});
  other.Connect(peer_, kPatient);
  ASSERT_EQ(other.Read(1, 0, 8, peer_, 0), 0);
  EXPECT_EQ(other.Next().status, IBV_WC_RETRY_EXC_ERR);
}

}  // namespace
}  // namespace softverbs
