// Two connections between the ports of a device: each may go the other's way. ctest sets
// SOFTVERBS_DEVICE_PORTS=2 and SOFTVERBS_LINK_LAYER=infiniband.

#include "common/rdma/alternate_paths.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/rdma/loopback.h"
#include "softverbs/control.h"
#include "tests/common/rdma/connected_pair.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {
namespace {

constexpr uint32_t kFirst = 1, kSecond = 2;

class AlternatePathsTest : public ConnectedPairTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(HasAlternatePaths(TestDevice().verbs));
    listener_ = ListenAt("127.0.0.1:0");
    Connect();
    active_->connection()->Open();
    first_listener_ = std::exchange(listener_, ListenAt("127.0.1.1:0"));
    first_active_ = std::move(active_);
    first_passive_ = std::move(passive_);
    Connect();
    active_->connection()->Open();
  }
  void TearDown() override {
    for (const int port : {0, 1}) EXPECT_EQ(softverbs_set_port(port, 1), 0);
    Close();
    std::swap(first_active_, active_);
    std::swap(first_passive_, passive_);
    Close();
  }

  static std::unique_ptr<Listener> ListenAt(const char* address) {
    return *Listener::Create(*Resolve(address, 0));
  }
  std::vector<AlternatePaths::Moved> LookHere(uint64_t session = 0) {
    return here_.Look({{.id = kFirst, .session = session, .qp = first_active_->connection()->qp()},
                       {.id = kSecond, .session = 0, .qp = active_->connection()->qp()}},
                      true);
  }
  std::vector<AlternatePaths::Moved> LookThere() {
    return there_.Look({{.id = kFirst, .session = 0, .qp = first_passive_->qp()},
                        {.id = kSecond, .session = 0, .qp = passive_->qp()}},
                       true);
  }
  // A message by the first connection, each way.
  void Talk() {
    Send(&client_, first_active_->connection()->qp(), &server_, first_passive_->qp());
    Send(&server_, first_passive_->qp(), &client_, first_active_->connection()->qp());
  }
  static void Send(TestSide* from, ibv_qp* by, TestSide* to, ibv_qp* at) {
    to->PostReceive(at, 1, 0, 8);
    ibv_sge sge = from->buffer.Sge(64, 8);
    ibv_send_wr send = SendRequest(2, &sge, IBV_SEND_SIGNALED);
    ASSERT_EQ(PostSend(by, &send), PostResult::kPosted);
    ASSERT_EQ(from->Next().status, IBV_WC_SUCCESS);
    ASSERT_EQ(to->Next().status, IBV_WC_SUCCESS);
  }
  void Arm() {
    LookHere();
    LookThere();
    Talk();
    LookHere();
    LookThere();
    ASSERT_TRUE(here_.armed(kFirst));
    ASSERT_TRUE(there_.armed(kFirst));
  }
  uint8_t PortHere() const { return PathOf(first_active_->connection()->qp())->to.port_num; }
  uint8_t PortThere() const { return PathOf(first_passive_->qp())->to.port_num; }

  std::unique_ptr<Listener> first_listener_;
  std::unique_ptr<Connection> first_passive_;
  std::unique_ptr<Connector> first_active_;
  AlternatePaths here_, there_;
};

TEST_F(AlternatePathsTest, ItIsArmedOnceBothEndsHaveHeardOfIt) {
  EXPECT_TRUE(LookHere().empty());
  Talk();
  LookHere();
  EXPECT_FALSE(here_.armed(kFirst)) << "the other end has not loaded it";
  Arm();
  EXPECT_EQ(PortHere(), 1);
}

TEST(OtherOfTwoTest, ThereIsNoneOfThreeWaysNorByOnePortNorForLongerPackets) {
  const auto way = [](uint8_t port, uint16_t lid, ibv_mtu mtu = IBV_MTU_4096) {
    return NetworkPath{.to = {.dlid = lid, .port_num = port}, .mtu = mtu};
  };
  const std::vector<NetworkPath> two = {way(1, 10), way(2, 20), way(1, 10)};
  const auto other = OtherOfTwo(two, two[0]);
  ASSERT_TRUE(other.has_value());
  EXPECT_EQ(other->to.dlid, 20);
  EXPECT_EQ(OtherOfTwo(two, two[1])->to.dlid, 10);
  EXPECT_FALSE(OtherOfTwo({{two[0]}}, two[0]));
  const std::vector<NetworkPath> two_cards = {way(1, 10), way(2, 20), way(1, 30), way(2, 40)};
  for (const NetworkPath& it : two_cards) EXPECT_FALSE(OtherOfTwo(two_cards, it));
  const std::vector<NetworkPath> one_port = {way(1, 10), way(1, 20)};
  EXPECT_FALSE(OtherOfTwo(one_port, one_port[0]));
  const std::vector<NetworkPath> shorter = {way(1, 10), way(2, 20, IBV_MTU_2048)};
  EXPECT_FALSE(OtherOfTwo(shorter, shorter[0]));
}

TEST_F(AlternatePathsTest, AnotherSessionsWayIsNotTaken) {
  LookHere(/*session=*/7);
  LookThere();
  Talk();
  LookHere(7);
  EXPECT_FALSE(here_.armed(kFirst));
}

TEST_F(AlternatePathsTest, OneThatMovedGoesHomeWhenThePortIsBack) {
  Arm();
  for (int times = 0; times < 3; ++times) {
    ASSERT_EQ(softverbs_set_port(0, 0), 0);
    Talk();
    const auto moved = LookHere();
    ASSERT_EQ(moved.size(), 1u);
    EXPECT_EQ(moved[0].id, kFirst);
    EXPECT_EQ(moved[0].port, 2);
    EXPECT_EQ(LookThere().size(), 1u);
    EXPECT_FALSE(here_.armed(kFirst)) << "the port is down";
    EXPECT_EQ(PortHere(), 2);
    ASSERT_EQ(softverbs_set_port(0, 1), 0);
    Arm();
    Talk();
    const auto back = LookHere();
    EXPECT_EQ(PortHere(), 1);
    EXPECT_EQ(PortThere(), 1);
    EXPECT_EQ(back.size() + LookThere().size(), 2u);
    Arm();
  }
}

// Something behind the port is broken, perhaps, and nobody can see when that is whole again.
TEST_F(AlternatePathsTest, OneWhosePortWasNotDownStaysWhereItMovedTo) {
  Arm();
  ibv_qp_attr attributes{};
  attributes.path_mig_state = IBV_MIG_MIGRATED;
  ASSERT_EQ(ibv_modify_qp(first_active_->connection()->qp(), &attributes, IBV_QP_PATH_MIG_STATE),
            0);
  Talk();
  EXPECT_EQ(LookHere().size(), 1u);
  EXPECT_EQ(LookThere().size(), 1u);
  for (int times = 0; times < 3; ++times) {
    Arm();
    EXPECT_EQ(PortHere(), 2);
    EXPECT_EQ(PortThere(), 2);
  }
}

TEST_F(AlternatePathsTest, OneThatIsGoneIsNotAsked) {
  Arm();
  EXPECT_TRUE(
      here_.Look({{.id = kSecond, .session = 0, .qp = active_->connection()->qp()}}, true).empty());
  EXPECT_FALSE(here_.armed(kFirst));
}

TEST_F(AlternatePathsTest, ALoopbackGoesOnByTheOtherPort) {
  auto words = SharedMemory::Create({.name = "words", .bytes = 4096, .remote_write = true});
  ASSERT_TRUE(words.ok()) << words.status();
  auto mr = RegisterMemory(client_.pd.get(), words->bytes(), RemoteAccess::kReadAtomic);
  ASSERT_TRUE(mr.ok()) << mr.status();
  auto loopback = Loopback::Create(TestDevice(), {.pd = client_.pd.get(), .depth = 1});
  ASSERT_TRUE(loopback.ok()) << loopback.status();
  const auto address = reinterpret_cast<uint64_t>(words->bytes().data());
  uint64_t word = 0;
  const auto swap = [&] {
    ASSERT_TRUE((*loopback)->CompareAndSwap(address, (*mr)->rkey, word, word + 1, 0));
    Loopback::Outcome outcome;
    const int64_t until = MonotonicNs() + kTestTimeoutNs;
    while ((*loopback)->Poll({&outcome, 1}) == 0) {
      ASSERT_FALSE((*loopback)->broken());
      ASSERT_LT(MonotonicNs(), until);
    }
    EXPECT_EQ(outcome.previous, word++);
  };
  for (int looks = 0; looks < 3; ++looks) (*loopback)->LookAtPaths();
  for (const int port : {0, 1, 0}) {
    ASSERT_EQ(softverbs_set_port(port, 0), 0);
    swap();
    (*loopback)->LookAtPaths();
    ASSERT_EQ(softverbs_set_port(port, 1), 0);
    for (int looks = 0; looks < 6; ++looks) (*loopback)->LookAtPaths();
  }
}

}  // namespace
}  // namespace gannet
