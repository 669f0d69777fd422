// A message of 64 bytes to and fro between two processes that sleep: through softverbs, over TCP on
// loopback, and through a bare ring (a word in shared memory, and an eventfd for each process).
// Prints side by side how long a round trip takes, and how often threads slept. These are figures
// only, and wake_test.cc bounds how often the device's thread is woken. Here it is checked that all
// messages arrive.

#include <arpa/inet.h>
#include <dirent.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>

#include "softverbs/tests/support/role_process.h"
#include "softverbs/tests/support/task_status.h"
#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {
namespace {

using test_support::Put;
using test_support::RegisterRole;
using test_support::RoleProcess;
using test_support::Take;

constexpr size_t kBytes = 64;
constexpr uint32_t kRounds = 2000;
constexpr uint32_t kWarmUp = 100;

// How often all threads of a process gave up their core to wait.
int64_t SleepsOf(pid_t process) {
  int64_t sleeps = 0;
  const std::string folder = "/proc/" + std::to_string(process) + "/task";
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir(folder.c_str()), closedir);
  while (const dirent* task = readdir(tasks.get())) {
    sleeps += SleepsOfTask(folder + "/" + task->d_name);
  }
  return sleeps;
}

struct Figures {
  double round_trip_us;
  double sleeps;  // of both processes, in a round trip
};

// Calls `round_trip` many times. `peer` is the other process.
template <class RoundTrip>
Figures Measure(pid_t peer, RoundTrip&& round_trip) {
  for (uint32_t i = 0; i < kWarmUp; ++i) round_trip();
  const int64_t sleeps = SleepsOf(getpid()) + SleepsOf(peer);
  const int64_t began_ns = NowNs();
  for (uint32_t i = 0; i < kRounds; ++i) round_trip();
  const int64_t took_ns = NowNs() - began_ns;
  const int64_t slept = SleepsOf(getpid()) + SleepsOf(peer) - sleeps;
  return {static_cast<double>(took_ns) / 1e3 / kRounds, static_cast<double>(slept) / kRounds};
}

void Print(const char* what, const Figures& figures, const Figures& tcp) {
  printf("%-14s %7.1f us a round trip, %.2f of TCP's; %.2f sleeps\n", what, figures.round_trip_us,
         figures.round_trip_us / tcp.round_trip_us, figures.sleeps);
}

SideOptions WithChannel() {
  SideOptions options;
  options.with_channel = true;
  return options;
}

// Waits for the next receive in ibv_get_cq_event. Returns whether it succeeded.
bool AwaitMessage(Side& side) {
  for (;;) {
    ibv_wc wc;
    while (ibv_poll_cq(side.cq.get(), 1, &wc) == 1) {
      if (wc.status != IBV_WC_SUCCESS) return false;
      if (wc.opcode == IBV_WC_RECV) return true;
    }
    if (ibv_req_notify_cq(side.cq.get(), 0) != 0) return false;
    if (ibv_poll_cq(side.cq.get(), 1, &wc) == 1) {
      if (wc.status != IBV_WC_SUCCESS) return false;
      if (wc.opcode == IBV_WC_RECV) return true;
      continue;
    }
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    if (ibv_get_cq_event(side.channel.get(), &cq, &context) != 0) return false;
    ibv_ack_cq_events(cq, 1);
  }
}

int Answerer(int socket) {
  Owned<ibv_context> device = OpenDevice();
  Side side(device.get(), WithChannel());
  Put(socket, side.address());
  side.Connect(Take<Address>(socket));
  if (side.PostReceive(0, 0, kBytes) != 0) return 2;
  Put(socket, char{1});
  for (uint32_t i = 0; i < kWarmUp + kRounds; ++i) {
    if (!AwaitMessage(side)) return 3;
    if (side.PostReceive(0, 0, kBytes) != 0 || side.PostSend(1, 0, kBytes) != 0) return 4;
  }
  Take<char>(socket);  // until the test hangs up
  return 0;
}
const RegisterRole answerer_role("answerer", Answerer);

Figures ThroughSoftverbs() {
  RoleProcess child("answerer");
  const auto peer = Take<Address>(child.socket());
  const Owned<ibv_context> device = OpenDevice();
  Side side(device.get(), WithChannel());
  side.ToRtr(peer);
  Put(child.socket(), side.address());
  EXPECT_EQ(Take<char>(child.socket()), 1);
  side.ToRts();
  const Figures figures = Measure(child.process().pid(), [&side] {
    EXPECT_EQ(side.PostReceive(0, 0, kBytes), 0);
    EXPECT_EQ(side.PostSend(1, kBytes, kBytes), 0);
    EXPECT_TRUE(AwaitMessage(side));
  });
  EXPECT_EQ(child.Finish(), 0);
  return figures;
}

// Measures with a forked child that runs `answer` for each round trip. It makes system calls only,
// so it may be a fork of this process.
template <class Ask, class Answer>
Figures WithForkedPeer(Ask&& ask, Answer&& answer) {
  const pid_t child = fork();
  if (child == 0) {
    for (uint32_t i = 0; i < kWarmUp + kRounds; ++i) answer();
    _exit(0);
  }
  const Figures figures = Measure(child, ask);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  return figures;
}

bool SendAll(int socket) {
  char bytes[kBytes] = {};
  return send(socket, bytes, kBytes, 0) == kBytes;
}
bool ReceiveAll(int socket) {
  char bytes[kBytes];
  return recv(socket, bytes, kBytes, MSG_WAITALL) == kBytes;
}

// Makes two connected sockets on loopback.
void ConnectTcp(int (&ends)[2]) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(connect(ends[0], reinterpret_cast<sockaddr*>(&address), size), 0);
  ends[1] = accept(listener, nullptr, nullptr);
  close(listener);
  for (const int end : ends) {
    const int on = 1;
    ASSERT_EQ(setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
  }
}

Figures OverTcp() {
  int ends[2] = {-1, -1};
  ConnectTcp(ends);
  const Figures figures =
      WithForkedPeer([&ends] { EXPECT_TRUE(SendAll(ends[0]) && ReceiveAll(ends[0])); },
                     [&ends] {
                       if (!ReceiveAll(ends[1]) || !SendAll(ends[1])) _exit(1);
                     });
  for (const int end : ends) close(end);
  return figures;
}

// A word that counts messages one way, and the descriptor that wakes who waits for them.
struct BareRing {
  std::atomic<uint32_t>* sent;
  int bell = eventfd(0, 0);
  uint32_t seen = 0;

  // Release and acquire: whoever sees the count sees what was written before it.
  void Send() {
    sent->fetch_add(1, std::memory_order_release);
    eventfd_write(bell, 1);
  }
  void Await() {
    eventfd_t rung;
    while (sent->load(std::memory_order_acquire) == seen) eventfd_read(bell, &rung);
    ++seen;
  }
};

Figures ThroughABareRing() {
  constexpr size_t kMemory = 4096;
  void* memory = mmap(nullptr, kMemory, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(memory, MAP_FAILED);
  auto* words = new (memory) std::atomic<uint32_t>[2]();
  BareRing to{.sent = &words[0]}, back{.sent = &words[1]};
  const Figures figures = WithForkedPeer(
      [&] {
        to.Send();
        back.Await();
      },
      [&] {
        to.Await();
        back.Send();
      });
  close(to.bell);
  close(back.bell);
  munmap(memory, kMemory);
  return figures;
}

TEST(PingPongTest, BesideTcpAndABareRing) {
  const Figures tcp = OverTcp();
  const Figures ring = ThroughABareRing();
  const Figures softverbs = ThroughSoftverbs();
  Print("softverbs", softverbs, tcp);
  Print("TCP, loopback", tcp, tcp);
  Print("a bare ring", ring, tcp);
}

}  // namespace
}  // namespace softverbs
