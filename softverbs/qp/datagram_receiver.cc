#include "softverbs/qp/datagram_receiver.h"

#include "softverbs/abi/limits.h"
#include "softverbs/nic/grh.h"
#include "softverbs/qp/scatter_gather.h"

namespace softverbs {
namespace {

// What a well-behaved sender sends; the record's size was checked before.
bool IsWellFormed(const PacketHeader& header) {
  return header.message_bytes <= kMaxDatagram &&
         header.payload_bytes == kGrhBytes + header.message_bytes;
}

void Complete(Qp& qp, const PacketHeader& header) {
  PushCompletion(*qp.recv_cq, [&](Cqe& cqe) {
    cqe.wr_id = qp.responder.receive.wr_id;
    cqe.qp_num = qp.number;
    cqe.src_qp = header.from_qpn;
    cqe.opcode = IBV_WC_RECV;
    cqe.byte_len = header.payload_bytes;
    cqe.wc_flags = IBV_WC_GRH;
    cqe.solicited = (header.flags & kPacketSolicited) != 0;
    if ((header.flags & kPacketImmediate) == 0) return;
    cqe.wc_flags |= IBV_WC_WITH_IMM;
    cqe.imm_data = header.imm;
  });
}

}  // namespace

void HandleDatagram(Qp& qp, const PacketHeader& header, const uint8_t* payload) {
  if (!qp.CanReceive() || !IsWellFormed(header) || header.rkey != qp.attr.qkey) return;
  if (!TakeReceive(qp)) return;
  const ReceiveWqe& receive = qp.responder.receive;
  const SgeList list{receive.sges, receive.sge_count};
  if (TotalLength(list) < header.payload_bytes) return;
  qp.responder.has_receive = false;
  if (Scatter(qp.nic->memory(), qp.pd_id, list, 0, header.payload_bytes, payload)) {
    return Complete(qp, header);
  }
  CompleteReceive(qp, receive, IBV_WC_LOC_PROT_ERR);
  EnterError(qp);
}

}  // namespace softverbs
