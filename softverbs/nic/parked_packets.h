#ifndef SOFTVERBS_NIC_PARKED_PACKETS_H_
#define SOFTVERBS_NIC_PARKED_PACKETS_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "softverbs/base/devices.h"
#include "softverbs/base/port_state.h"
#include "softverbs/fault/faults.h"
#include "softverbs/nic/link.h"
#include "softverbs/nic/packet.h"
#include "softverbs/nic/qp_table.h"

namespace softverbs {

// Packets that arrived and are not executed yet. It is used with a fault plan, with several
// devices, and in a simulation. Packets for one queue pair stay in order, and those for others may
// overtake them. A queue pair's packets wait while its adapter is stalled (stall_peer), answers
// while its port is down, while a torn READ or a split atomic of it is in progress, and in a
// simulation while the way from the sender's node is cut, and until the scheduler picks them.
//
// REQUIRES for all methods: the engine's progress lock.
class ParkedPackets {
 public:
  ParkedPackets(QpTable* qps, bool simulated)
      : qps_(qps), simulated_(simulated), disturbed_(simulated || DeviceCount() > 1) {}

  struct Packet {
    Link* link;
    PacketHeader header;
    std::vector<uint8_t> payload;
    uint32_t from_node = 0;  // in a simulation
  };

  // Returns true if Park must be called. Cheap, because it is called for every packet.
  bool Wants(const PacketHeader& header) const {
    return disturbed_ || AnyPortDown() || fault::Active() != nullptr ||
           (header.flags & kPacketTear) != 0;
  }
  // Takes the packet if it has to wait. Returns false if it must be executed now.
  bool Park(Link& link, const PacketHeader& header, const uint8_t* payload);
  // Returns true if so many packets wait that the rest must stay in the links' rings.
  bool Full() const { return bytes_ > kMaxBytes; }

  // Returns how many queue pairs have a packet that need not wait.
  size_t Choices() const;
  // Removes and returns the oldest packet of the `choice`-th of them, in the order of their
  // ordinals.
  std::optional<Packet> Take(size_t choice);
  // Ends all stalls, for a new run of the simulation.
  void EndStalls();
  // Removes and returns the oldest packet of this link, whether it has to wait or not.
  std::optional<Packet> TakeOf(const Link& link);

 private:
  static constexpr size_t kMaxBytes = 16 << 20;

  struct Mailbox {
    std::deque<Packet> packets;
    int64_t stalled_until = 0;
  };
  using Mailboxes = std::map<uint32_t, Mailbox>;  // by KeyOf

  static size_t Bytes(const Packet& packet) { return sizeof(packet) + packet.payload.size(); }
  uint32_t KeyOf(const Qp& qp, const PacketHeader& header, bool port_down) const;
  bool MayGo(const Mailbox& mailbox) const;
  void Stall(Mailbox& mailbox, Qp& qp);
  Packet Pop(Mailbox& mailbox, size_t at);
  // The mailbox, if nothing is or happens in it.
  void Forget(Mailboxes::iterator mailbox);

  QpTable* const qps_;
  const bool simulated_;
  bool disturbed_;  // packets may wait here; once true, stays true
  size_t bytes_ = 0;
  Mailboxes mailboxes_;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_PARKED_PACKETS_H_
