#include "softverbs/tests/nic/remote_fixture.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "softverbs/tests/support/free_port.h"

namespace softverbs {

using test_support::KeyFile;
using test_support::Put;
using test_support::ReceiveBytes;
using test_support::RegisterRole;
using test_support::RoleProcess;
using test_support::Take;

Hosts Hosts::FromEnvironment() {
  Hosts hosts;
  const char* const peer_namespace = getenv("TWO_HOSTS_B_NET");
  if (peer_namespace == nullptr) return hosts;
  hosts.own = getenv("TWO_HOSTS_A");
  hosts.peer = getenv("TWO_HOSTS_B");
  hosts.peer_namespace = peer_namespace;
  return hosts;
}

void EnterPeerHost(uint16_t port) {
  const Hosts hosts = Hosts::FromEnvironment();
  if (!hosts.peer_namespace.empty()) {
    const int fd = open(hosts.peer_namespace.c_str(), O_RDONLY | O_CLOEXEC);
    EXPECT_EQ(setns(fd, CLONE_NEWNET), 0) << hosts.peer_namespace;
    close(fd);
  }
  setenv("SOFTVERBS_NET", (hosts.peer + ":" + std::to_string(port)).c_str(), 1);
}

void RemoteEnvironment::SetUp() {
  key = std::make_unique<KeyFile>("the key of all these hosts");
  port = test_support::FreePort();
  const std::string net = Hosts::FromEnvironment().own + ":" + std::to_string(port);
  setenv("SOFTVERBS_NET", net.c_str(), 1);
  setenv("SOFTVERBS_NET_KEY", key->path().c_str(), 1);
}

RemoteEnvironment& TheEnvironment() {
  static auto* const environment = new RemoteEnvironment;  // GoogleTest deletes it
  return *environment;
}

namespace {

[[maybe_unused]] testing::Environment* const added =
    testing::AddGlobalTestEnvironment(&TheEnvironment());

// Takes the names of all slots but this one, so that this process gets it.
void ClaimSlotsBut(uint32_t slot) {
  constexpr uint32_t kSlots = 2048;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 4 * kSlots);
  setrlimit(RLIMIT_NOFILE, &limit);
  for (uint32_t other = 1; other < kSlots; ++other) {
    if (other == slot) continue;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const int length =
        snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "softverbs/nic/%u", other);
    // The descriptor is kept until the process ends.
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    (void)bind(
        fd, reinterpret_cast<sockaddr*>(&address),
        static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length)));
  }
}

// Gives access to its memory, and obeys orders until the test hangs up.
int Target(int socket) {
  const auto options = Take<TargetOptions>(socket);
  const KeyFile other("a key that no other host has");
  EnterPeerHost(options.port);
  if (options.key == Key::kNone) unsetenv("SOFTVERBS_NET_KEY");
  if (options.key == Key::kOther) setenv("SOFTVERBS_NET_KEY", other.path().c_str(), 1);
  if (options.slot != 0) ClaimSlotsBut(options.slot);
  Owned<ibv_context> device = OpenDevice();
  std::unique_ptr<Side> side;
  const auto connect = [&] {
    side = std::make_unique<Side>(device.get(), SideOptions{.kind = MemoryKind::kMapped});
    side->Fill(0, side->memory.size(), kPattern);
    Put(socket, side->address());
    side->Connect(Take<Address>(socket), options.connect);
    Put(socket, char{1});
  };
  connect();
  Order order;
  while (ReceiveBytes(socket, &order, sizeof(order))) {
    uint64_t answer = 0;
    // What lies in the process's sockets is executed, or refused, before the word is read.
    for (int i = 0; i < 1000; ++i) side->Idle();
    if (order == Order::kWord) answer = __atomic_load_n(&side->Word(0), __ATOMIC_ACQUIRE);
    if (order == Order::kSecondWord) answer = __atomic_load_n(&side->Word(8), __ATOMIC_ACQUIRE);
    if (order == Order::kPostReceive) answer = static_cast<uint64_t>(side->PostReceive(1, 0, 4096));
    if (order == Order::kRenew) {
      connect();
    } else {
      Put(socket, answer);
    }
  }
  return testing::Test::HasFailure() ? 1 : 0;
}
const RegisterRole target_role("target", Target);

}  // namespace

void RemoteTest::Exchange(const ConnectOptions& connect) {
  peer_ = Take<Address>(child_->socket());
  BeforeConnecting();
  side_ = std::make_unique<Side>(device_.get(), SideOptions{});
  side_->ToRtr(peer_, connect);
  Put(child_->socket(), side_->address());
  ASSERT_EQ(Take<char>(child_->socket()), 1);
  side_->ToRts(connect);
}

void RemoteTest::Start(const ConnectOptions& connect, Key key, uint32_t slot) {
  child_ = std::make_unique<RoleProcess>("target");
  Put(child_->socket(), TargetOptions{TheEnvironment().port, key, slot, connect});
  Exchange(connect);
}

void RemoteTest::Renew(const ConnectOptions& connect) {
  Put(child_->socket(), Order::kRenew);
  Exchange(connect);
}

void RemoteTest::RenewUntilAnswered(const ConnectOptions& connect) {
  const int64_t give_up = NowNs() + 30'000'000'000;
  do Renew(connect);
  while (Read(0) != IBV_WC_SUCCESS && NowNs() < give_up);
}

void RemoteTest::StartPatient() {
  Start(kPatient);
  if (Read(0) != IBV_WC_SUCCESS) RenewUntilAnswered(kPatient);
}

uint64_t RemoteTest::Do(Order order) {
  Put(child_->socket(), order);
  return Take<uint64_t>(child_->socket());
}

ibv_wc_status RemoteTest::Read(size_t length) {
  EXPECT_EQ(side_->Read(1, 0, length, peer_, 0), 0);
  return side_->Next().status;
}

int RemoteTest::Stranger() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(TheEnvironment().port);
  inet_pton(AF_INET, Hosts::FromEnvironment().peer.c_str(), &to.sin_addr);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
  return fd;
}

}  // namespace softverbs
