#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>

#include "softverbs/tests/nic/remote_fixture.h"
#include "softverbs/tests/support/datagram_side.h"

// Two processes on two hosts. Runs on one host, and under two_hosts.py.

namespace softverbs {
namespace {

using test_support::KeyFile;

TEST_F(RemoteTest, TheFirstGidIsTheAddressThatOthersReach) {
  ibv_gid gid;
  ASSERT_EQ(ibv_query_gid(device_.get(), 1, 0, &gid), 0);
  uint8_t expected[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  ASSERT_EQ(inet_pton(AF_INET, Hosts::FromEnvironment().own.c_str(), expected + 12), 1);
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
  StartPatient();
  child_->process().Kill();
  EXPECT_EQ(Read(), IBV_WC_RETRY_EXC_ERR);
}

// TCP keeps the WRITE in the stopped peer's socket. Once its requester has heard that it failed, it
// must never be executed (tests/model/late_write_model.h).
TEST_F(RemoteTest, AStoppedPeerExecutesNothingAfterTheError) {
  StartPatient();
  const uint64_t before = Do(Order::kWord);
  side_->Word(0) = ~before;
  child_->process().Stop();
  ASSERT_EQ(side_->Write(2, 0, 8, peer_, 0), 0);
  EXPECT_EQ(side_->Next().status, IBV_WC_RETRY_EXC_ERR);
  child_->process().Signal(SIGCONT);
  EXPECT_EQ(Do(Order::kWord), before);
}

TEST_F(RemoteTest, APeerThatIsStoppedForAShortTimeAnswersLater) {
  Start();
  ASSERT_EQ(Read(0), IBV_WC_SUCCESS);
  child_->process().Stop();
  ASSERT_EQ(side_->Read(1, 0, 64, peer_, 0), 0);
  EXPECT_TRUE(side_->Idle());
  child_->process().Signal(SIGCONT);
  EXPECT_EQ(side_->Next().status, IBV_WC_SUCCESS);
}

TEST_F(RemoteTest, AHostWithoutTheKeyIsRefused) {
  Start(kPatient, Key::kNone);
  EXPECT_EQ(Read(), IBV_WC_RETRY_EXC_ERR);
}

TEST_F(RemoteTest, AHostWithAnotherKeyIsRefused) {
  Start(kPatient, Key::kOther);
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

// It would reach the members on this host only. namespaces_test.py sees the reason.
TEST_F(RemoteTest, MulticastIsRefused) {
  const Owned<ibv_pd> pd(ibv_alloc_pd(device_.get()));
  ibv_ah_attr attr{};
  attr.port_num = 1;
  attr.is_global = 1;
  ASSERT_EQ(inet_pton(AF_INET6, "ff15::5056", &attr.grh.dgid), 1);
  errno = 0;
  EXPECT_EQ(ibv_create_ah(pd.get(), &attr), nullptr);
  EXPECT_EQ(errno, EOPNOTSUPP);
  DatagramSide member(device_.get());
  EXPECT_EQ(ibv_attach_mcast(member.qp.get(), &attr.grh.dgid, 0), EOPNOTSUPP);
}

TEST_F(RemoteTest, JoiningAGroupIsRefused) {
  sockaddr_in own{}, group{};
  own.sin_family = group.sin_family = AF_INET;
  ASSERT_EQ(inet_pton(AF_INET, Hosts::FromEnvironment().own.c_str(), &own.sin_addr), 1);
  ASSERT_EQ(inet_pton(AF_INET, "239.80.86.1", &group.sin_addr), 1);
  rdma_event_channel* const events = rdma_create_event_channel();
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(rdma_create_id(events, &id, nullptr, RDMA_PS_UDP), 0);
  ASSERT_EQ(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&own)), 0);
  errno = 0;
  EXPECT_EQ(rdma_join_multicast(id, reinterpret_cast<sockaddr*>(&group), nullptr), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_EQ(rdma_destroy_id(id), 0);
  rdma_destroy_event_channel(events);
}

TEST_F(RemoteTest, AHostThatIsNotThereFailsRequests) {
  Start();
  peer_.gid.raw[15] = 77;  // an address of nobody
  Side other(device_.get(), {});
  other.Connect(peer_, kPatient);
  ASSERT_EQ(other.Read(1, 0, 8, peer_, 0), 0);
  EXPECT_EQ(other.Next().status, IBV_WC_RETRY_EXC_ERR);
}

}  // namespace
}  // namespace softverbs
