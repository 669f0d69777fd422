#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <random>
#include <string>

#include "softverbs/nic/net_wire.h"
#include "softverbs/nic/packet.h"
#include "softverbs/tests/nic/hand_shake.h"
#include "softverbs/tests/nic/remote_fixture.h"
#include "softverbs/tests/support/test_seed.h"

// A host that has the key, and then sends packets that no adapter sends.

namespace softverbs {
namespace {

constexpr uint32_t kIndexBits = 13;  // of a queue pair's number, below the slot
constexpr int kHostiles = 60;

class HostileHostTest : public RemoteTest {
 protected:
  // Connects as the process of `slot`. Returns the socket of the link, or -1.
  int Connect(uint32_t slot) {
    const int fd = Stranger();
    NetOpening opening;
    opening.kind = NetKind::kLink;
    opening.target = peer_.qp_num >> kIndexBits;
    opening.slot = slot;
    opening.incarnation = random_();
    opening.dial = 1;
    if (ShakeHands(fd, opening)) return fd;
    close(fd);
    return -1;
  }

  // A packet with a right frame, for the peer's queue pair and memory. All else is random.
  std::string Packet() {
    PacketHeader header{};
    auto* bytes = reinterpret_cast<uint8_t*>(&header);
    std::generate(bytes, bytes + sizeof(header), [this] { return uint8_t(random_()); });
    header.payload_bytes = random_() % 4 == 0 ? uint32_t(random_() % (kMaxPayload + 1)) : 0;
    header.record_bytes = RecordBytes(header.payload_bytes);
    header.type = static_cast<PacketType>(1 + random_() % 12);
    header.to_qpn = peer_.qp_num;
    if (random_() % 2 == 0) header.from_qpn = side_->qp->qp_num;
    if (random_() % 2 == 0) header.rkey = peer_.rkey;
    if (random_() % 2 == 0) header.remote_addr = peer_.memory;
    if (random_() % 2 == 0) header.psn = peer_.psn;
    std::string packet(header.record_bytes, '\x5a');
    std::copy(bytes, bytes + sizeof(header), packet.begin());
    if (random_() % 16 == 0) packet[random_() % sizeof(header)] ^= 0x41;
    return packet;
  }

  std::mt19937_64 random_{test_support::TestSeed()};
};

TEST_F(HostileHostTest, IsDroppedAndDisturbsNobody) {
  Start();
  ASSERT_EQ(Read(), IBV_WC_SUCCESS);
  const uint64_t before = Do(Order::kWord);
  const uint32_t own_slot = side_->qp->qp_num >> kIndexBits;
  for (uint32_t slot = 1; slot <= kHostiles; ++slot) {
    if (slot == own_slot) continue;
    const int fd = Connect(slot);
    ASSERT_GE(fd, 0);
    for (int i = 0; i < 32; ++i) {
      const std::string packet = Packet();
      // The peer may have dropped the link already.
      (void)send(fd, packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    close(fd);
    ASSERT_EQ(Read(), IBV_WC_SUCCESS);
  }
  EXPECT_EQ(Do(Order::kWord), before);
  EXPECT_EQ(child_->Finish(), 0);
}

}  // namespace
}  // namespace softverbs
