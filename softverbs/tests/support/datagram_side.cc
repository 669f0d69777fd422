#include "softverbs/tests/support/datagram_side.h"

#include <gtest/gtest.h>

#include <cstring>

namespace softverbs {
namespace {

constexpr size_t kMemory = 1 << 16;
constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE;  // an int: ibv_reg_mr is a macro that looks at it
constexpr size_t kOutgoing = kMemory / 2;        // where texts to be sent are put

void ToReadyToSend(ibv_qp* qp, uint32_t qkey) {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qkey = qkey;
  ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY),
            0);
  attr.qp_state = IBV_QPS_RTR;
  ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
  attr.qp_state = IBV_QPS_RTS;
  ASSERT_EQ(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

}  // namespace

DatagramSide::DatagramSide(ibv_context* context, uint32_t qkey, ibv_srq* srq)
    : pd(ibv_alloc_pd(context)),
      send_cq(ibv_create_cq(context, 64, nullptr, nullptr, 0)),
      recv_cq(ibv_create_cq(context, 64, nullptr, nullptr, 0)),
      memory(MemoryKind::kPrivate, kMemory),
      mr(ibv_reg_mr(pd.get(), memory.data(), memory.size(), kAccess)) {
  ibv_qp_init_attr attr{};
  attr.send_cq = send_cq.get();
  attr.recv_cq = recv_cq.get();
  attr.srq = srq;
  attr.qp_type = IBV_QPT_UD;
  attr.cap.max_send_wr = attr.cap.max_recv_wr = 16;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 2;
  qp.reset(ibv_create_qp(pd.get(), &attr));
  EXPECT_NE(qp, nullptr);
  ToReadyToSend(qp.get(), qkey);
}

Owned<ibv_ah> DatagramSide::Handle(uint8_t gid_index) const {
  ibv_gid gid;
  EXPECT_EQ(ibv_query_gid(qp->context, 1, gid_index, &gid), 0);
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.dgid = gid;
  attr.grh.sgid_index = gid_index;
  attr.grh.hop_limit = 64;
  return Owned<ibv_ah>(ibv_create_ah(pd.get(), &attr));
}

Owned<ibv_ah> DatagramSide::GroupHandle(const ibv_gid& group) const {
  ibv_ah_attr attr{};
  attr.is_global = 1;
  attr.port_num = 1;
  attr.grh.dgid = group;
  return Owned<ibv_ah>(ibv_create_ah(pd.get(), &attr));
}

int DatagramSide::PostReceive(uint64_t wr_id, size_t offset, size_t length) {
  ibv_sge sge = Sge(offset, length);
  ibv_recv_wr wr{wr_id, nullptr, &sge, 1};
  ibv_recv_wr* bad;
  return ibv_post_recv(qp.get(), &wr, &bad);
}

int DatagramSide::Post(ibv_send_wr wr, ibv_ah* to, uint32_t qpn, ibv_sge sge) {
  wr.send_flags |= IBV_SEND_SIGNALED;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.wr.ud.ah = to;
  wr.wr.ud.remote_qpn = qpn;
  if (wr.wr.ud.remote_qkey == 0) wr.wr.ud.remote_qkey = kQkey;
  ibv_send_wr* bad;
  return ibv_post_send(qp.get(), &wr, &bad);
}

ibv_wc DatagramSide::Send(ibv_ah* to, uint32_t qpn, const std::string& text, uint32_t qkey) {
  memcpy(memory.data() + kOutgoing, text.data(), text.size());
  ibv_send_wr wr{};
  wr.opcode = IBV_WR_SEND;
  wr.wr.ud.remote_qkey = qkey;
  EXPECT_EQ(Post(wr, to, qpn, Sge(kOutgoing, text.size())), 0);
  return NextSent();
}

std::string DatagramSide::Text(size_t offset, const ibv_wc& wc) const {
  if (wc.status != IBV_WC_SUCCESS || wc.byte_len < kHeader) return "(no datagram)";
  return {reinterpret_cast<const char*>(memory.data()) + offset + kHeader, wc.byte_len - kHeader};
}

ibv_qp_state DatagramSide::State() const {
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  EXPECT_EQ(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init), 0);
  return attr.qp_state;
}

bool DatagramSide::NothingReceived() {
  ibv_wc wc;
  return ibv_poll_cq(recv_cq.get(), 1, &wc) == 0;
}

}  // namespace softverbs
