#ifndef SOFTVERBS_NIC_PACKET_EXECUTOR_H_
#define SOFTVERBS_NIC_PACKET_EXECUTOR_H_

#include <cstdint>

#include "softverbs/nic/link.h"
#include "softverbs/nic/packet.h"
#include "softverbs/nic/parked_packets.h"
#include "softverbs/nic/qp_table.h"

namespace softverbs {

// What PacketEngine does with a link: takes its packets out of the ring, into which the peer or the
// socket of another host has put them, and hands each to its queue pair, or parks it.
//
// REQUIRES for all methods: the engine's progress lock.
class PacketExecutor {
 public:
  PacketExecutor(QpTable* qps, bool simulated) : qps_(qps), parked_(qps, simulated) {}

  // Executes some of what arrived on the link, and serves the queue pairs that wait for room in its
  // ring. With `ask`, peers ring for more room. Returns whether there was anything to do.
  bool Drive(Link& link, bool ask);
  // Executes all packets that the peer sent.
  void Finish(Link& link, bool ask);
  void ExecuteParked(const ParkedPackets::Packet& packet);

  ParkedPackets& parked() { return parked_; }

 private:
  bool DriveRemote(Link& link, bool ask);
  bool ExecutePackets(Link& link, bool ask);
  // Executes the packet, or parks it.
  void Dispatch(Link& link, const PacketHeader& header, const uint8_t* payload);
  // Delivers the packet to every queue pair of this process that is attached to the group.
  void DispatchMulticast(Link& link, const PacketHeader& header, const uint8_t* payload);
  void Execute(Link& link, const PacketHeader& header, const uint8_t* payload);
  void Refuse(Link& link, const PacketHeader& request);
  bool SendRefusals(Link& link);
  bool ResumeWaiting(Link& link, bool ask);
  void DropCorrupt(Link& link);
  bool ReceiveRemote(Link& link);
  bool AdmitRemote(Link& link, const PacketHeader& header);

  QpTable* const qps_;
  ParkedPackets parked_;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_PACKET_EXECUTOR_H_
