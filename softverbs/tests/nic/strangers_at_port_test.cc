#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "softverbs/base/unique_fd.h"
#include "softverbs/nic/net_wire.h"
#include "softverbs/nic/strangers.h"
#include "softverbs/tests/nic/hand_shake.h"
#include "softverbs/tests/nic/remote_fixture.h"

// A crowd of strangers at a host's port, and one that has the key. Nothing here waits for a time to
// be over: the test counts who was dropped.

namespace softverbs {
namespace {

constexpr size_t kCrowd = 1100;
constexpr rlim_t kDescriptorsOfOthers = 100;
constexpr uint32_t kIndexBits = 13;  // of a queue pair's number, below the slot
constexpr uint32_t kOwnSlot = 2000;
constexpr uint32_t kCrowdsAddress = 0x7f010001;  // 127.1.0.1, and those behind it
constexpr uint32_t kOtherAddress = 0x7f020001;

enum class Sends : int { kNothing, kHalfAnOpening, kAnOpening, kHalfAProof };
enum class From : int { kOneAddress, kManyAddresses };

class StrangersAtPortTest : public RemoteTest,
                            public ::testing::WithParamInterface<std::tuple<Sends, From>> {
 protected:
  // As many as the limit lets this test have.
  static void SetUpTestSuite() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 2 * kCrowd);
    setrlimit(RLIMIT_NOFILE, &limit);
    descriptors_ = limit.rlim_cur;
    crowd_size_ = std::min<size_t>(kCrowd, descriptors_ - kDescriptorsOfOthers);
  }

  void TearDown() override { crowd_.clear(); }

  void BeforeConnecting() override {
    const std::string bytes = Bytes();
    const bool one_address = std::get<From>(GetParam()) == From::kOneAddress;
    for (uint32_t i = 0; i < crowd_size_; ++i) {
      crowd_.push_back(Connect(kCrowdsAddress + (one_address ? 0 : i)));
      // It may have been dropped already.
      (void)send(crowd_.back().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
  }

  NetOpening Opening(uint32_t slot) const {
    NetOpening opening;
    opening.kind = NetKind::kLink;
    opening.target = peer_.qp_num >> kIndexBits;
    opening.slot = slot;
    opening.incarnation = 1;
    opening.dial = 1;
    return opening;
  }

  // Connects from this address, in host byte order.
  static UniqueFd Connect(uint32_t from) {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in own{}, to{};
    own.sin_family = to.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(from);
    to.sin_port = htons(TheEnvironment().port);
    inet_pton(AF_INET, Hosts::FromEnvironment().peer.c_str(), &to.sin_addr);
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    return fd;
  }

  std::string Bytes() const {
    const NetOpening opening = Opening(1);
    std::string bytes(reinterpret_cast<const char*>(&opening), sizeof(opening));
    switch (std::get<Sends>(GetParam())) {
      case Sends::kNothing:
        return {};
      case Sends::kHalfAnOpening:
        return bytes.substr(0, sizeof(opening) / 2);
      case Sends::kAnOpening:
        return bytes;
      case Sends::kHalfAProof:
        return bytes + std::string(sizeof(Proof) / 2, '\0');
    }
    return {};
  }

  // How many of the crowd still have their place.
  size_t Waiting() const {
    return static_cast<size_t>(std::count_if(crowd_.begin(), crowd_.end(), [](const UniqueFd& fd) {
      pollfd about{fd.get(), POLLRDHUP, 0};
      return poll(&about, 1, 0) == 0;
    }));
  }

  // Of so many places, if the target reckons as this test does.
  static size_t Places() {
    const Strangers target(descriptors_);
    return std::get<From>(GetParam()) == From::kOneAddress ? target.of_one_address() : target.max();
  }

  static size_t descriptors_;
  static size_t crowd_size_;
  std::vector<UniqueFd> crowd_;
};
size_t StrangersAtPortTest::descriptors_ = 0;
size_t StrangersAtPortTest::crowd_size_ = 0;

// The crowd is there before the two hosts know each other.
TEST_P(StrangersAtPortTest, AHostWithTheKeyGetsIn) {
  Start();
  ASSERT_EQ(crowd_.size(), crowd_size_);
  EXPECT_EQ(Read(), IBV_WC_SUCCESS);
  EXPECT_EQ(child_->Finish(), 0);
}

// The connection that comes last is answered first: when it is welcomed, the crowd still has all
// the places that one address may have, or all but the one that it made room with.
TEST_P(StrangersAtPortTest, NoOneWaitsForTheCrowdToLeave) {
  Start();
  ASSERT_EQ(Read(), IBV_WC_SUCCESS);
  const UniqueFd last = Connect(kOtherAddress);
  ASSERT_TRUE(ShakeHands(last.get(), Opening(kOwnSlot)));
  const bool one_address = std::get<From>(GetParam()) == From::kOneAddress;
  EXPECT_EQ(Waiting(), one_address ? Places() : Places() - 1);
  EXPECT_EQ(Read(), IBV_WC_SUCCESS);
  EXPECT_EQ(child_->Finish(), 0);
}

INSTANTIATE_TEST_SUITE_P(
    All, StrangersAtPortTest,
    ::testing::Combine(::testing::Values(Sends::kNothing, Sends::kHalfAnOpening, Sends::kAnOpening,
                                         Sends::kHalfAProof),
                       ::testing::Values(From::kOneAddress, From::kManyAddresses)));

// The crowd comes from the address of the host that has the key. It is told to come later, until
// the crowd has had its grace, long before the crowd's time is over.
using CrowdOfOwnHostTest = StrangersAtPortTest;
TEST_P(CrowdOfOwnHostTest, MakesRoomAfterItsGrace) {
  Start();
  ASSERT_EQ(Read(), IBV_WC_SUCCESS);
  bool welcomed = false;
  while (!welcomed) {
    const UniqueFd again = Connect(kCrowdsAddress);
    welcomed = ShakeHands(again.get(), Opening(kOwnSlot));
  }
  EXPECT_EQ(Waiting(), Places() - 1);
  EXPECT_EQ(child_->Finish(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, CrowdOfOwnHostTest,
                         ::testing::Combine(::testing::Values(Sends::kNothing, Sends::kHalfAProof),
                                            ::testing::Values(From::kOneAddress)));

}  // namespace
}  // namespace softverbs
