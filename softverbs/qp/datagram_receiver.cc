#include "softverbs/qp/datagram_receiver.h"

#include "softverbs/base/link_layer.h"
#include "softverbs/base/verbs_limits.h"
#include "softverbs/nic/grh.h"
#include "softverbs/qp/deliver_receive.h"
#include "softverbs/qp/scatter_gather.h"

namespace softverbs {
namespace {

// Checks what a well-behaved sender sends. The record's size was checked before.
bool IsWellFormed(const PacketHeader& header) {
  return header.message_bytes <= kMaxDatagram &&
         header.payload_bytes == kGrhBytes + header.message_bytes;
}

}  // namespace

void HandleDatagram(Qp& qp, const PacketHeader& header, const uint8_t* payload) {
  if (!qp.CanReceive() || !IsWellFormed(header) || header.rkey != qp.attr.qkey) return;
  if (!TakeReceive(qp)) return;
  const ReceiveWqe& receive = qp.responder.receive;
  const SgeList list{receive.sges, receive.sge_count};
  if (TotalLength(list) < header.payload_bytes) return;
  // UCX frees memory of receives before it destroys their queue pair, and its cache of
  // registrations deregisters it later still. An adapter writes into the pages that it keeps.
  if (ScatterIfMapped(qp.nic->memory(), qp.ReceivePd(), list, header.payload_bytes, payload)) {
    const GrhFields grh = ParseGrh(payload);
    return DeliverReceive(qp, header, IBV_WC_RECV, header.payload_bytes, IBV_WC_GRH, grh.kind,
                          LidOf(grh.source));
  }
  qp.responder.has_receive = false;
  CompleteReceive(qp, receive, IBV_WC_LOC_PROT_ERR);
  EnterError(qp);
}

}  // namespace softverbs
