#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

#include "softverbs/tests/support/datagram_side.h"
#include "softverbs/tests/support/role_process.h"

// Multicast groups: every attached queue pair of this host gets a copy.

namespace softverbs {
namespace {

using test_support::KilledBy;
using test_support::Put;
using test_support::RegisterRole;
using test_support::RoleProcess;
using test_support::Take;

constexpr uint32_t kAnyQpn = 0xffffff;

ibv_gid Group(const char* address) {
  ibv_gid gid;
  EXPECT_EQ(inet_pton(AF_INET6, address, &gid), 1);
  return gid;
}

// A group of this test only, because others may run on this host at the same time.
ibv_gid OwnGroup() { return Group(("ff15::5056:" + std::to_string(getpid() % 10000)).c_str()); }

// Returns the process's slot, which is in the number of a queue pair.
uint32_t SlotOf(const DatagramSide& side) { return side.qp->qp_num >> 13; }

// A role that attaches to the given group, waits for one datagram, and sends its text back.
int Member(int socket) {
  Owned<ibv_context> device = OpenDevice();
  DatagramSide side(device.get());
  const auto group = Take<ibv_gid>(socket);
  if (side.PostReceive(1, 0, 1024) != 0) return 2;
  if (ibv_attach_mcast(side.qp.get(), &group, 0) != 0) return 3;
  Put(socket, char{1});
  Put(socket, SlotOf(side));
  const std::string text = side.Text(0, side.NextReceived());
  const bool detached = ibv_detach_mcast(side.qp.get(), &group, 0) == 0;
  return text == "to all" && detached ? 0 : 4;
}
const RegisterRole kMember("member", Member);

// A role that tells its slot, waits, sends one datagram to the given group, and is gone at once.
int BriefSender(int socket) {
  Owned<ibv_context> device = OpenDevice();
  DatagramSide side(device.get());
  const auto group = Take<ibv_gid>(socket);
  const Owned<ibv_ah> handle = side.GroupHandle(group);
  Put(socket, SlotOf(side));
  Take<char>(socket);
  const bool sent = side.Send(handle.get(), kAnyQpn, "to all").status == IBV_WC_SUCCESS;
  _exit(sent ? 0 : 2);
}
const RegisterRole kBriefSender("brief_sender", BriefSender);

class MulticastTest : public ::testing::Test {
 protected:
  void Attach(DatagramSide& side) {
    ASSERT_EQ(side.PostReceive(1, 0, 1024), 0);
    ASSERT_EQ(ibv_attach_mcast(side.qp.get(), &group_, 0), 0);
  }
  void Detach(DatagramSide& side) { ASSERT_EQ(ibv_detach_mcast(side.qp.get(), &group_, 0), 0); }
  void StartMember(RoleProcess& child) {
    Put(child.socket(), group_);
    ASSERT_EQ(Take<char>(child.socket()), 1);
  }

  const ibv_gid group_ = OwnGroup();
  Owned<ibv_context> device_ = OpenDevice();
  DatagramSide sender_{device_.get()};
  Owned<ibv_ah> handle_ = sender_.GroupHandle(group_);
};

TEST_F(MulticastTest, ReachesEveryMemberAndTheSenderIfItIsOne) {
  DatagramSide one(device_.get()), two(device_.get()), outsider(device_.get());
  Attach(one);
  Attach(two);
  Attach(sender_);
  ASSERT_EQ(outsider.PostReceive(1, 0, 1024), 0);
  EXPECT_EQ(sender_.Send(handle_.get(), kAnyQpn, "to all").status, IBV_WC_SUCCESS);
  for (DatagramSide* member : {&one, &two, &sender_}) {
    const ibv_wc wc = member->NextReceived();
    EXPECT_EQ(member->Text(0, wc), "to all");
    EXPECT_EQ(wc.src_qp, sender_.qp->qp_num);
    EXPECT_EQ(wc.qp_num, member->qp->qp_num);
    Detach(*member);
  }
  EXPECT_TRUE(outsider.NothingReceived());
}

TEST_F(MulticastTest, MembersWithAnotherQkeyOrWithoutReceiveAreLeftOut) {
  DatagramSide other_key(device_.get(), kQkey + 1), empty(device_.get()), member(device_.get());
  Attach(other_key);
  Attach(member);
  ASSERT_EQ(ibv_attach_mcast(empty.qp.get(), &group_, 0), 0);
  sender_.Send(handle_.get(), kAnyQpn, "to all");
  EXPECT_EQ(member.Text(0, member.NextReceived()), "to all");
  EXPECT_TRUE(other_key.NothingReceived());
  EXPECT_TRUE(empty.NothingReceived());
  for (DatagramSide* each : {&other_key, &empty, &member}) Detach(*each);
}

TEST_F(MulticastTest, IsNotHeardAfterDetaching) {
  DatagramSide gone(device_.get()), member(device_.get());
  Attach(gone);
  Attach(member);
  Detach(gone);
  EXPECT_EQ(ibv_detach_mcast(gone.qp.get(), &group_, 0), EINVAL);
  sender_.Send(handle_.get(), kAnyQpn, "to all");
  EXPECT_EQ(member.Text(0, member.NextReceived()), "to all");
  EXPECT_TRUE(gone.NothingReceived());
  Detach(member);
}

TEST_F(MulticastTest, AttachedTwiceIsAttachedOnceAndCannotBeDestroyed) {
  DatagramSide member(device_.get());
  Attach(member);
  EXPECT_EQ(ibv_attach_mcast(member.qp.get(), &group_, 0), 0);
  EXPECT_EQ(ibv_destroy_qp(member.qp.get()), EBUSY);
  sender_.Send(handle_.get(), kAnyQpn, "to all");
  EXPECT_EQ(member.Text(0, member.NextReceived()), "to all");
  EXPECT_TRUE(member.NothingReceived());
  Detach(member);
}

TEST_F(MulticastTest, IsForDatagramsAndGroupsOnly) {
  Side connected(device_.get(), {});
  EXPECT_EQ(ibv_attach_mcast(connected.qp.get(), &group_, 0), EINVAL);
  const ibv_gid unicast = Group("::ffff:127.0.0.1");
  EXPECT_EQ(ibv_attach_mcast(sender_.qp.get(), &unicast, 0), EINVAL);
  const ibv_gid ipv4 = Group("::ffff:239.1.2.3");
  EXPECT_EQ(ibv_attach_mcast(sender_.qp.get(), &ipv4, 0), 0);
  EXPECT_EQ(ibv_detach_mcast(sender_.qp.get(), &ipv4, 0), 0);
}

TEST_F(MulticastTest, ReachesOtherProcessesAndADeadMemberDoesNotMatter) {
  DatagramSide member(device_.get());
  Attach(member);
  RoleProcess alive("member"), dead("member"), also_alive("member");
  StartMember(alive);
  StartMember(dead);
  StartMember(also_alive);
  dead.process().Signal(SIGKILL);
  EXPECT_EQ(dead.Finish(), KilledBy(SIGKILL));
  EXPECT_EQ(sender_.Send(handle_.get(), kAnyQpn, "to all").status, IBV_WC_SUCCESS);
  EXPECT_EQ(member.Text(0, member.NextReceived()), "to all");
  EXPECT_EQ(alive.Finish(), 0);
  EXPECT_EQ(also_alive.Finish(), 0);
  // No process has a member in the group any more.
  Detach(member);
  EXPECT_EQ(sender_.Send(handle_.get(), kAnyQpn, "to nobody").status, IBV_WC_SUCCESS);
}

// The process with the lower slot opens the link, and the other one takes it up. Here that one is
// held up until the sender is gone.
TEST_F(MulticastTest, WhatASenderSentThatIsGoneArrives) {
  constexpr int kTries = 16;  // slots begin anew at some process
  for (int attempt = 0; attempt < kTries; ++attempt) {
    RoleProcess brief("brief_sender");
    Put(brief.socket(), group_);
    const auto slot = Take<uint32_t>(brief.socket());
    RoleProcess member("member");
    StartMember(member);
    if (Take<uint32_t>(member.socket()) < slot) continue;
    member.process().Stop();
    Put(brief.socket(), char{1});
    EXPECT_EQ(brief.process().Wait(), 0);
    member.process().Signal(SIGCONT);
    EXPECT_EQ(member.process().Wait(), 0);
    return;
  }
  FAIL() << "no sender had the lower slot";
}

// Members that die while the sender waits for space in their rings.
TEST_F(MulticastTest, DyingMembersDoNotHoldTheSenderUp) {
  RoleProcess stopped("member");
  StartMember(stopped);
  stopped.process().Stop();
  const std::string text(kMtu, 'x');
  memcpy(sender_.memory.data(), text.data(), text.size());
  constexpr int kMoreThanARing = 100;  // of 256 KiB
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  int posted = 0, completed = 0;
  bool killed = false;
  const int64_t give_up = NowNs() + kTimeoutNs;
  while (completed < kMoreThanARing && NowNs() < give_up) {
    if (posted < kMoreThanARing &&
        sender_.Post(wr, handle_.get(), kAnyQpn, sender_.Sge(0, kMtu)) == 0) {
      ++posted;
      continue;
    }
    ibv_wc wc;
    if (ibv_poll_cq(sender_.send_cq.get(), 1, &wc) == 1) {
      EXPECT_EQ(wc.status, IBV_WC_SUCCESS);
      ++completed;
    } else if (!killed) {
      stopped.process().Signal(SIGKILL);
      killed = true;
    }
  }
  EXPECT_EQ(completed, kMoreThanARing);
  EXPECT_TRUE(killed) << "the ring was never full";
}

}  // namespace
}  // namespace softverbs
