#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "softverbs/tests/support/role_process.h"
#include "softverbs/tests/support/sanitizer.h"
#include "softverbs/tests/support/verbs_fixture.h"

// Two processes: what the wire between them promises, and what one process can do to the other.

namespace softverbs {
namespace {

using test_support::ChildProcess;
using test_support::KilledBy;
using test_support::OwnPath;
using test_support::Put;
using test_support::ReceiveBytes;
using test_support::RegisterRole;
using test_support::RoleArgument;
using test_support::RoleProcess;
using test_support::Take;

constexpr uint8_t kPattern = 99;

// What the test asks of the child.
enum class Order : int { kDeregister, kError, kWord, kPostReceive };

struct ChildOptions {
  MemoryKind kind = MemoryKind::kMapped;
  size_t memory = 1 << 16;
  unsigned access = kAllAccess;
  bool register_half = false;
  uid_t uid = 0;
};

// Gives access to its memory, filled with a pattern, and obeys orders until the test hangs up.
int Target(int socket) {
  const auto options = Take<ChildOptions>(socket);
  if (options.uid != 0 && setresuid(options.uid, options.uid, options.uid) != 0) return 2;
  Owned<ibv_context> device = OpenDevice();
  SideOptions side_options;
  side_options.kind = options.kind;
  side_options.memory = options.memory;
  side_options.access = options.access;
  Side side(device.get(), side_options);
  if (options.register_half) {
    side.mr.reset(ibv_reg_mr(side.pd, side.memory.data(), side.memory.size() / 2,
                             static_cast<int>(options.access)));
  }
  side.Fill(0, side.memory.size(), kPattern);
  Put(socket, side.address());
  side.Connect(Take<Address>(socket));
  Put(socket, char{1});
  Order order;
  while (ReceiveBytes(socket, &order, sizeof(order))) {
    uint64_t answer = 0;
    if (order == Order::kDeregister) {
      side.mr.reset();
      // Nobody may read it any more, so it can be unmapped.
      munmap(side.memory.data(), side.memory.size());
    }
    if (order == Order::kError) side.ToError();
    if (order == Order::kWord) answer = __atomic_load_n(&side.Word(0), __ATOMIC_ACQUIRE);
    if (order == Order::kPostReceive) answer = side.PostReceive(1, 0, 64);
    Put(socket, answer);
  }
  return testing::Test::HasFailure() ? 1 : 0;
}
const RegisterRole target_role("target", Target);

// Sends back what it receives until the test hangs up.
int Echo(int socket) {
  Owned<ibv_context> device = OpenDevice();
  Side side(device.get(), {});
  Put(socket, side.address());
  side.Connect(Take<Address>(socket));
  for (int i = 0; i < 32; ++i) {
    if (side.PostReceive(i, 1024 * i, 1024) != 0) return 2;
  }
  Put(socket, char{1});
  for (;;) {
    ibv_wc wc;
    if (ibv_poll_cq(side.cq.get(), 1, &wc) == 0) {
      char end;
      if (recv(socket, &end, 1, MSG_DONTWAIT) == 0) return 0;
      continue;
    }
    if (wc.status != IBV_WC_SUCCESS) return 3;
    if (wc.opcode == IBV_WC_SEND) {
      if (side.PostReceive(wc.wr_id, 1024 * wc.wr_id, 1024) != 0) return 4;
    } else if (side.PostSend(wc.wr_id, 1024 * wc.wr_id, wc.byte_len) != 0) {
      return 5;
    }
  }
}
const RegisterRole echo_role("echo", Echo);

// Ten READs and a SEND within one process.
int Count(int) {
  Owned<ibv_context> device = OpenDevice();
  SideOptions target;
  target.kind = MemoryKind::kMapped;
  Pair pair(device.get(), {}, target);
  if (pair.b.PostReceive(1, 0, 64) != 0 || pair.a.PostSend(1, 0, 8) != 0) return 2;
  if (pair.a.Next().status != IBV_WC_SUCCESS) return 3;
  if (pair.b.Next().status != IBV_WC_SUCCESS) return 3;
  for (int i = 0; i < 10; ++i) {
    if (pair.a.Read(1, 0, 64, pair.b.address(), 0) != 0) return 4;
    if (pair.a.Next().status != IBV_WC_SUCCESS) return 5;
  }
  return 0;
}
const RegisterRole count_role("count", Count);

std::vector<std::string> MappingsOf(const std::string& name) {
  std::vector<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(name) != std::string::npos) found.push_back(line);
  }
  return found;
}

class ProcessTest : public ::testing::Test {
 protected:
  void Start(const std::string& role, const ChildOptions& options = {},
             const ConnectOptions& connect = {}) {
    child_ = std::make_unique<RoleProcess>(role);
    if (role == "target") Put(child_->socket(), options);
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

  // READs until this process has mapped the target's memory. Returns the mapping's line in maps.
  std::string AwaitMapping() {
    const int64_t give_up = NowNs() + kTimeoutNs;
    while (NowNs() < give_up) {
      EXPECT_EQ(Read(), IBV_WC_SUCCESS);
      const auto mappings = MappingsOf("softverbs-test");
      if (!mappings.empty()) return mappings[0];
    }
    ADD_FAILURE() << "the target's memory was never mapped";
    return "";
  }

  Owned<ibv_context> device_ = OpenDevice();
  std::unique_ptr<RoleProcess> child_;
  Address peer_;
  std::unique_ptr<Side> side_;
};

TEST_F(ProcessTest, MessagesGoBothWays) {
  Start("echo");
  for (uint64_t i = 0; i < 2000; ++i) {
    side_->Word(0) = i;
    ASSERT_EQ(side_->PostReceive(1, 512, 512), 0);
    ASSERT_EQ(side_->PostSend(2, 0, 8 + i % 500, 0), 0);
    // A signaled request frees the places of the SENDs before it.
    if (i % 16 == 15) {
      ASSERT_EQ(side_->Write(3, 0, 0, peer_, 0), 0);
    }
    for (bool received = false; !received;) {
      const ibv_wc wc = side_->Next();
      ASSERT_EQ(wc.status, IBV_WC_SUCCESS);
      received = wc.opcode == IBV_WC_RECV;
      if (received) {
        ASSERT_EQ(wc.byte_len, 8 + i % 500);
      }
    }
    ASSERT_EQ(side_->Word(512), i);
  }
  EXPECT_EQ(child_->Finish(), 0);
}

TEST_F(ProcessTest, PrivateMemoryIsReadAndWrittenByPackets) {
  ChildOptions options;
  options.kind = MemoryKind::kPrivate;
  Start("target", options);
  EXPECT_EQ(Read(1 << 16), IBV_WC_SUCCESS);
  EXPECT_TRUE(side_->Matches(0, 1 << 16, kPattern));
  side_->Word(0) = 4711;
  ASSERT_EQ(side_->Write(2, 0, 8, peer_, 0), 0);
  EXPECT_EQ(side_->Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(Do(Order::kWord), 4711u);
  ASSERT_EQ(side_->FetchAdd(3, 8, peer_, 0, 9), 0);
  EXPECT_EQ(side_->Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(Do(Order::kWord), 4720u);
  EXPECT_EQ(child_->Finish(), 0);
}

TEST_F(ProcessTest, MappedMemoryIsReachedWhileTheTargetIsStopped) {
  Start("target");
  AwaitMapping();
  child_->process().Stop();
  EXPECT_EQ(Read(1 << 16), IBV_WC_SUCCESS);
  EXPECT_TRUE(side_->Matches(0, 1 << 16, kPattern));
  side_->Word(0) = 1000;
  ASSERT_EQ(side_->Write(2, 0, 8, peer_, 0), 0);
  EXPECT_EQ(side_->Next().status, IBV_WC_SUCCESS);
  ASSERT_EQ(side_->CompareSwap(3, 8, peer_, 0, 1000, 2000), 0);
  EXPECT_EQ(side_->Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(side_->Word(8), 1000u);
  child_->process().Signal(SIGCONT);
  EXPECT_EQ(Do(Order::kWord), 2000u);
  EXPECT_EQ(child_->Finish(), 0);
}

TEST_F(ProcessTest, ADrainingQueuePairIsNotReadyBeforeItIsDrained) {
  ChildOptions options;
  options.kind = MemoryKind::kPrivate;
  Start("target", options);
  // Before there is a link no request goes out, and then there is nothing to drain.
  ASSERT_EQ(Read(64), IBV_WC_SUCCESS);
  child_->process().Stop();
  ASSERT_EQ(side_->Read(1, 0, 64, peer_, 0), 0);
  EXPECT_TRUE(side_->Idle());
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_SQD;
  ASSERT_EQ(ibv_modify_qp(side_->qp.get(), &attr, IBV_QP_STATE), 0);
  attr.qp_state = IBV_QPS_RTS;
  EXPECT_EQ(ibv_modify_qp(side_->qp.get(), &attr, IBV_QP_STATE), EINVAL);
  EXPECT_EQ(side_->State(), IBV_QPS_SQD);
  child_->process().Signal(SIGCONT);
  EXPECT_EQ(side_->Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(ibv_modify_qp(side_->qp.get(), &attr, IBV_QP_STATE), 0);
}

TEST_F(ProcessTest, MemoryWithoutRemoteWriteCannotBeMappedWritable) {
  ChildOptions options;
  options.access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ;
  Start("target", options);
  const std::string mapping = AwaitMapping();
  EXPECT_NE(mapping.find(" r--s "), std::string::npos) << mapping;
  void* begin = reinterpret_cast<void*>(std::stoull(mapping, nullptr, 16));
  errno = 0;
  EXPECT_EQ(mprotect(begin, 1 << 16, PROT_READ | PROT_WRITE), -1);
  EXPECT_EQ(errno, EACCES);
  ASSERT_EQ(side_->Write(1, 0, 8, peer_, 0), 0);
  EXPECT_EQ(side_->Next().status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(ProcessTest, APartOfAFileIsNotHandedOverWritable) {
  ChildOptions options;
  options.register_half = true;
  Start("target", options);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(Read(), IBV_WC_SUCCESS);
  side_->Word(0) = 5;
  ASSERT_EQ(side_->Write(1, 0, 8, peer_, 0), 0);
  EXPECT_EQ(side_->Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(Do(Order::kWord), 5u);
  EXPECT_TRUE(MappingsOf("softverbs-test").empty());
}

TEST_F(ProcessTest, ADeregisteredRegionIsUnmappedAndItsKeyRefused) {
  Start("target");
  AwaitMapping();
  Do(Order::kDeregister);
  EXPECT_EQ(Read(), IBV_WC_REM_ACCESS_ERR);
  const int64_t give_up = NowNs() + kTimeoutNs;
  while (!MappingsOf("softverbs-test").empty() && NowNs() < give_up) sched_yield();
  EXPECT_TRUE(MappingsOf("softverbs-test").empty());
}

TEST_F(ProcessTest, ReadsRunUntilTheRegionIsDeregistered) {
  Start("target");
  AwaitMapping();
  Put(child_->socket(), Order::kDeregister);
  ibv_wc_status status = IBV_WC_SUCCESS;
  for (int i = 0; status == IBV_WC_SUCCESS; ++i) {
    status = Read(4096);
    if (status == IBV_WC_SUCCESS) {
      ASSERT_TRUE(side_->Matches(0, 4096, kPattern));
    }
  }
  EXPECT_EQ(status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(Take<uint64_t>(child_->socket()), 0u);
  EXPECT_EQ(child_->Finish(), 0);
}

TEST_F(ProcessTest, ATargetInErrorIsNoticed) {
  Start("target");
  AwaitMapping();
  Do(Order::kError);
  EXPECT_EQ(Read(), IBV_WC_RETRY_EXC_ERR);
}

TEST_F(ProcessTest, AKilledPeerFailsOutstandingWork) {
  Start("target");
  ASSERT_EQ(side_->PostSend(1, 0, 8), 0);  // no receive is posted: retried for ever
  ASSERT_EQ(side_->PostSend(2, 0, 8), 0);
  ASSERT_EQ(side_->PostReceive(3, 0, 8), 0);
  EXPECT_TRUE(side_->Idle());
  child_->process().Signal(SIGKILL);
  EXPECT_EQ(side_->Next().status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(side_->Next().status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(side_->Next().wr_id, 3u);
  EXPECT_EQ(side_->State(), IBV_QPS_ERR);
}

TEST_F(ProcessTest, AnIdleConnectionDoesNotNoticeADeadPeerUntilItSends) {
  Start("target");
  AwaitMapping();
  child_->process().Signal(SIGKILL);
  EXPECT_EQ(child_->Finish(), KilledBy(SIGKILL));
  EXPECT_TRUE(side_->Idle());
  EXPECT_EQ(side_->State(), IBV_QPS_RTS);
  ASSERT_EQ(side_->PostSend(1, 0, 8), 0);
  EXPECT_EQ(side_->Next().status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(ProcessTest, MappedMemoryOfADeadPeerIsNotReadAnyMore) {
  Start("target");
  AwaitMapping();
  child_->process().Signal(SIGKILL);
  EXPECT_EQ(child_->Finish(), KilledBy(SIGKILL));
  ibv_wc_status status = IBV_WC_SUCCESS;
  const int64_t give_up = NowNs() + kTimeoutNs;
  while (status == IBV_WC_SUCCESS && NowNs() < give_up) status = Read();
  EXPECT_EQ(status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(ProcessTest, AMessageSentBeforeDeathIsReceived) {
  Start("echo");
  ASSERT_EQ(side_->PostReceive(1, 512, 512), 0);
  side_->Word(0) = 12345;
  ASSERT_EQ(side_->PostSend(2, 0, 8), 0);
  EXPECT_EQ(side_->Next().status, IBV_WC_SUCCESS);
  EXPECT_EQ(side_->Next().status, IBV_WC_SUCCESS);
  child_->process().Signal(SIGKILL);
  EXPECT_EQ(side_->Word(512), 12345u);
}

TEST_F(ProcessTest, ConnectionsAfterADeathWork) {
  for (int i = 0; i < 5; ++i) {
    Start("target");
    EXPECT_EQ(Read(), IBV_WC_SUCCESS);
    child_->process().Signal(SIGKILL);
  }
}

TEST_F(ProcessTest, ManyProcessesConnectToOne) {
  constexpr int kProcesses = 24;
  std::vector<std::unique_ptr<RoleProcess>> children;
  std::vector<std::unique_ptr<Side>> sides;
  std::vector<Address> peers;
  for (int i = 0; i < kProcesses; ++i) {
    Start("target");
    children.push_back(std::move(child_));
    sides.push_back(std::move(side_));
    peers.push_back(peer_);
  }
  for (int i = 0; i < kProcesses; ++i) {
    ASSERT_EQ(sides[i]->Read(1, 0, 1000, peers[i], 0), 0);
    ASSERT_EQ(sides[i]->FetchAdd(2, 1008, peers[i], 0, 1), 0);
  }
  for (int i = 0; i < kProcesses; ++i) {
    EXPECT_EQ(sides[i]->Next().status, IBV_WC_SUCCESS);
    EXPECT_EQ(sides[i]->Next().status, IBV_WC_SUCCESS);
    EXPECT_TRUE(sides[i]->Matches(0, 1000, kPattern));
  }
}

TEST_F(ProcessTest, AThousandConnections) {
  constexpr int kConnections = 1000;
  SideOptions small;
  small.memory = 4096;
  small.max_send_wr = small.max_recv_wr = 4;
  small.cqe = 8;
  std::vector<std::unique_ptr<Pair>> pairs;
  for (int i = 0; i < kConnections; ++i) {
    pairs.push_back(std::make_unique<Pair>(device_.get(), small, small));
  }
  for (int round = 0; round < 3; ++round) {
    for (auto& pair : pairs) {
      ASSERT_EQ(pair->b.PostReceive(1, 0, 64), 0);
      ASSERT_EQ(pair->a.PostSend(2, 0, 64), 0);
    }
    for (auto& pair : pairs) {
      ASSERT_EQ(pair->a.Next().status, IBV_WC_SUCCESS);
      ASSERT_EQ(pair->b.Next().qp_num, pair->b.qp->qp_num);
    }
  }
}

TEST_F(ProcessTest, AnotherUsersProcessIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  ChildOptions options;
  options.uid = 65534;
  Start("target", options);
  EXPECT_EQ(Read(), IBV_WC_RETRY_EXC_ERR);
}

TEST_F(ProcessTest, StatisticsArePrintedAtExit) {
  ChildProcess count({.argv = {OwnPath(), RoleArgument("count")},
                      .streams = ChildProcess::Streams::kCaptured,
                      .environment = {"SOFTVERBS_STATS=1"}});
  EXPECT_EQ(count.Wait(), 0);
  const std::string text = count.Stderr();
  EXPECT_EQ(text.find("softverbs stats: {\"receives\":1,\"completions\":12,"), 0u) << text;
  EXPECT_NE(text.find("\"read\":{\"posts\":10,\"bytes\":640,\"accelerated\":10}"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\"send\":{\"posts\":1,\"bytes\":8,\"accelerated\":0}"), std::string::npos)
      << text;
}

TEST_F(ProcessTest, AnotherHostsGidIsRefused) {
  Side side(device_.get(), {});
  Address peer = side.address();
  peer.gid.raw[15] ^= 1;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  ASSERT_EQ(ibv_modify_qp(side.qp.get(), &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = peer.qp_num;
  attr.ah_attr.is_global = attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = peer.gid;
  EXPECT_EQ(ibv_modify_qp(side.qp.get(), &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
            EHOSTUNREACH);
  EXPECT_EQ(side.State(), IBV_QPS_INIT);
}

TEST_F(ProcessTest, AForkedChildMayLeaveInheritedObjectsAloneOrDestroyThem) {
  if (test_support::kThreadSanitizer) GTEST_SKIP() << "TSan does not support threads after fork";
  Start("target");
  AwaitMapping();
  const pid_t forked = fork();
  if (forked == 0) {
    side_.reset();  // succeeds without touching the parent's connection
    device_.reset();
    Owned<ibv_context> own = OpenDevice();
    Pair pair(own.get());
    const bool works = pair.b.PostReceive(1, 0, 64) == 0 && pair.a.PostSend(2, 0, 8) == 0 &&
                       pair.b.Next().status == IBV_WC_SUCCESS;
    _exit(works && !testing::Test::HasFailure() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(forked, &status, 0), forked);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Read(), IBV_WC_SUCCESS);
  EXPECT_EQ(child_->Finish(), 0);
}

}  // namespace
}  // namespace softverbs
