#ifndef SOFTVERBS_QP_DELIVER_RECEIVE_H_
#define SOFTVERBS_QP_DELIVER_RECEIVE_H_

#include <cstdint>

#include "softverbs/cq/held_completions.h"
#include "softverbs/nic/packet.h"
#include "softverbs/qp/qp.h"

namespace softverbs {

// Completes the receive that the current message took: `bytes` arrived in it. REQUIRES: lock held,
// responder.has_receive.
inline void DeliverReceive(Qp& qp, const PacketHeader& header, ibv_wc_opcode opcode, uint32_t bytes,
                           unsigned wc_flags = 0, uint8_t service_level = 0, uint16_t slid = 0)
    SV_REQUIRES(qp.lock) {
  qp.responder.has_receive = false;
  Deliver(*qp.recv_cq, qp.faults, [&](Cqe& cqe) {
    qp.lock.AssertHeld();
    cqe.wr_id = qp.responder.receive.wr_id;
    cqe.qp_num = qp.number;
    cqe.src_qp = header.from_qpn;
    cqe.opcode = opcode;
    cqe.byte_len = bytes;
    cqe.wc_flags = wc_flags;
    cqe.sl = service_level;
    cqe.slid = slid;
    cqe.solicited = (header.flags & kPacketSolicited) != 0;
    if (qp.IsReliable() && (header.flags & kPacketInvalidate) != 0) {
      cqe.wc_flags |= IBV_WC_WITH_INV;
      cqe.invalidated_rkey = header.imm;
    } else if ((header.flags & kPacketImmediate) != 0) {
      cqe.wc_flags |= IBV_WC_WITH_IMM;
      cqe.imm_data = header.imm;
    }
  });
}

}  // namespace softverbs

#endif  // SOFTVERBS_QP_DELIVER_RECEIVE_H_
