#include <gtest/gtest.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "softverbs/tests/nic/remote_fixture.h"
#include "softverbs/tests/support/sanitizer.h"

// What happens when the network between two hosts is cut, and heals. Needs two network namespaces:
// runs under two_hosts.py.

namespace softverbs {
namespace {

using test_support::Put;
using test_support::RegisterRole;
using test_support::RoleProcess;
using test_support::Take;

void Shell(const std::string& command) { EXPECT_EQ(std::system(command.c_str()), 0) << command; }

// Cuts the network while it lives.
class Cut {
 public:
  Cut() { Shell("ip link set veth down"); }
  ~Cut() { Heal(); }
  void Heal() {
    if (!healed_) Shell("ip link set veth up");
    healed_ = true;
  }

 private:
  bool healed_ = false;
};

// Lets nothing of the peer arrive while it lives. What goes to the peer still arrives.
class CutOfTheWayBack {
 public:
  CutOfTheWayBack() { Route("add"); }
  ~CutOfTheWayBack() { Heal(); }
  void Heal() {
    if (!healed_) Route("del");
    healed_ = true;
  }

 private:
  static void Route(const std::string& what) {
    Shell("nsenter --net=$TWO_HOSTS_B_NET ip route " + what + " blackhole $TWO_HOSTS_A");
  }
  bool healed_ = false;
};

class PartitionTest : public RemoteTest {
 protected:
  // Expects that the peer's word stays as it is for as long as TCP may wait before it repeats what
  // a cut of kPatientNs swallowed: its waits double.
  void ExpectWordStays(uint64_t word) {
    const int64_t end = NowNs() + 2 * kPatientNs + 1'000'000'000;
    while (NowNs() < end) ASSERT_EQ(Do(Order::kWord), word);
  }
};

// Returns how long it took.
int64_t ExpectSilence(Side& side) {
  const int64_t start = NowNs();
  EXPECT_EQ(side.Next().status, IBV_WC_RETRY_EXC_ERR);
  const int64_t took = NowNs() - start;
  std::printf("RETRY_EXC after %.0f ms; (retry_cnt + 1) x timeout is %.0f ms\n", double(took) / 1e6,
              double(kPatientNs) / 1e6);
  return took;
}

// IBTA C9-141: a timeout may take up to four times as long as the attribute says. A machine that
// stalls adds to that, but TCP alone would try for a quarter of an hour.
TEST_F(PartitionTest, ACutNetworkIsReportedInTime) {
  StartPatient();
  const Cut cut;
  ASSERT_EQ(side_->Read(1, 0, 64, peer_, 0), 0);
  EXPECT_LT(ExpectSilence(*side_), 60 * kPatientNs);
}

TEST_F(PartitionTest, NothingArrivesAfterTheErrorWhenTheNetworkHeals) {
  StartPatient();
  const uint64_t before = Do(Order::kWord);
  side_->Word(0) = ~before;
  Cut cut;
  ASSERT_EQ(side_->Write(2, 0, 8, peer_, 0), 0);
  ExpectSilence(*side_);
  cut.Heal();
  ExpectWordStays(before);
  // A new connection goes over the healed network. What the old one had left would be there, too.
  const std::unique_ptr<Side> old = std::move(side_);
  // The peer may hear of the old link's end after the first packets of the new connection, and end
  // that, too. So programs connect again, as this does.
  RenewUntilAnswered(kVeryPatient);
  EXPECT_EQ(Read(), IBV_WC_SUCCESS);
  EXPECT_EQ(old->State(), IBV_QPS_ERR);
}

// The peer executes WRITEs whose answers do not arrive. After the error it must execute none.
TEST_F(PartitionTest, NothingIsExecutedAfterTheErrorIfOnlyAnswersAreLost) {
  StartPatient();
  CutOfTheWayBack cut;
  uint64_t posted = 0;
  for (side_->Word(0) = 1; posted < 32; ++posted, ++side_->Word(0)) {
    ASSERT_EQ(side_->Write(posted, 0, 8, peer_, 0), 0);
  }
  EXPECT_EQ(side_->Next().status, IBV_WC_RETRY_EXC_ERR);
  const uint64_t at_the_error = Do(Order::kWord);
  cut.Heal();
  ExpectWordStays(at_the_error);
}

TEST_F(PartitionTest, AShortCutDelaysOnly) {
  Start();
  ASSERT_EQ(Read(0), IBV_WC_SUCCESS);
  {
    const Cut cut;
    ASSERT_EQ(side_->Read(1, 0, 64, peer_, 0), 0);
    EXPECT_TRUE(side_->Idle());
  }
  EXPECT_EQ(side_->Next().status, IBV_WC_SUCCESS);
}

TEST_F(PartitionTest, AProcessThatGetsTheSlotOfAKilledOneIsNoOldPeer) {
  StartPatient();
  const uint32_t slot = peer_.qp_num >> 13;
  const std::unique_ptr<Side> old = std::move(side_);
  const Address old_peer = peer_;
  child_->process().Kill();
  Start(kVeryPatient, Key::kSame, slot);
  ASSERT_EQ(peer_.qp_num >> 13, slot);
  // The old queue pair's number and key may be valid in the new process.
  const uint64_t before = Do(Order::kWord);
  old->Word(0) = ~before;
  ASSERT_EQ(old->Write(1, 0, 8, old_peer, 0), 0);
  EXPECT_EQ(old->Next().status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(Read(), IBV_WC_SUCCESS);
  EXPECT_EQ(Do(Order::kWord), before);
}

// Connections go to any process of the host that listens. A stopped one answers none of them.
TEST_F(PartitionTest, AStoppedAcceptorCostsARetry) {
  Start();
  const std::unique_ptr<RoleProcess> stopped = std::move(child_);
  stopped->process().Stop();
  Start();
  EXPECT_EQ(Read(), IBV_WC_SUCCESS);
  stopped->process().Signal(SIGCONT);
}

// One of a crowd. Waits until all are there, and READs the memory of its own peer.
int Member(int socket) {
  const auto port = Take<uint16_t>(socket);
  if (port != 0) EnterPeerHost(port);
  Owned<ibv_context> device = OpenDevice();
  Side side(device.get(), {});
  side.Fill(0, 4096, kPattern);
  Put(socket, side.address());
  const auto peer = Take<Address>(socket);
  side.Connect(peer, kVeryPatient);
  Put(socket, char{1});
  Take<char>(socket);
  for (int i = 0; i < 20; ++i) {
    side.Fill(0, 4096, 0);
    EXPECT_EQ(side.Read(1, 4096, 4096, peer, 8192), 0);
    EXPECT_EQ(side.Next().status, IBV_WC_SUCCESS);
  }
  Put(socket, char{1});
  Take<char>(socket);  // until all have done it
  return testing::Test::HasFailure() ? 1 : 0;
}
const RegisterRole member_role("member", Member);

TEST(CrowdTest, AHundredProcessesOnEachSideReachTheirPeers) {
  // A sanitizer makes each of them so slow that the machine is busy for minutes.
  constexpr bool kSanitized = test_support::kThreadSanitizer || test_support::kAddressSanitizer;
  constexpr size_t kMembers = kSanitized ? 25 : 100;
  std::vector<std::unique_ptr<RoleProcess>> members;
  std::vector<Address> addresses;
  for (size_t i = 0; i < 2 * kMembers; ++i) {
    members.push_back(std::make_unique<RoleProcess>("member"));
    Put(members.back()->socket(), i % 2 == 0 ? uint16_t{0} : TheEnvironment().port);
  }
  for (const auto& member : members) addresses.push_back(Take<Address>(member->socket()));
  for (size_t i = 0; i < members.size(); ++i) Put(members[i]->socket(), addresses[i ^ 1]);
  const auto all = [&] {
    for (const auto& member : members) ASSERT_EQ(Take<char>(member->socket()), 1);
    for (const auto& member : members) Put(member->socket(), char{1});
  };
  all();
  all();
  for (const auto& member : members) EXPECT_EQ(member->Finish(), 0);
}

}  // namespace
}  // namespace softverbs
