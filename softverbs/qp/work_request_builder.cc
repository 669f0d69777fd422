#include "softverbs/qp/work_request_builder.h"

#include <cerrno>

#include "softverbs/base/errno.h"
#include "softverbs/qp/post.h"
#include "softverbs/qp/qp.h"

namespace softverbs {

void WorkRequestBuilder::Start() {
  owner_.lock();
  parts_.clear();
  sges_.clear();
  inline_data_.clear();
  error_ = 0;
}

void WorkRequestBuilder::Abort() { owner_.unlock(); }

int WorkRequestBuilder::Complete(ibv_qp* qp) {
  int error = error_;
  // Pointers are set only now, when the vectors no longer grow.
  for (size_t i = 0; i < parts_.size(); ++i) {
    Part& part = parts_[i];
    part.wr.next = i + 1 < parts_.size() ? &parts_[i + 1].wr : nullptr;
    if ((part.wr.send_flags & IBV_SEND_INLINE) != 0) {
      sges_.push_back({reinterpret_cast<uint64_t>(inline_data_.data() + part.inline_at),
                       static_cast<uint32_t>(part.inline_bytes), 0});
      part.first_sge = sges_.size() - 1;
      part.wr.num_sge = 1;
    }
  }
  for (Part& part : parts_) part.wr.sg_list = sges_.data() + part.first_sge;
  if (error == 0 && !parts_.empty()) error = PostSendAllOrNone(qp, &parts_[0].wr);
  owner_.unlock();
  return WithErrno(error);
}

ibv_send_wr& WorkRequestBuilder::Begin(const ibv_qp_ex& qp, ibv_wr_opcode opcode) {
  owner_.AssertHeld();
  Part& part = parts_.emplace_back();
  part = Part{};
  part.wr.wr_id = qp.wr_id;
  part.wr.opcode = opcode;
  part.wr.send_flags = qp.wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
  return part.wr;
}

void WorkRequestBuilder::SetSges(const ibv_sge* sges, size_t count) {
  owner_.AssertHeld();
  if (parts_.empty()) return Fail(EINVAL);
  parts_.back().first_sge = sges_.size();
  parts_.back().wr.num_sge = static_cast<int>(count);
  sges_.insert(sges_.end(), sges, sges + count);
}

void WorkRequestBuilder::SetDestination(ibv_ah* ah, uint32_t qpn, uint32_t qkey) {
  owner_.AssertHeld();
  if (parts_.empty()) return Fail(EINVAL);
  ibv_send_wr& wr = parts_.back().wr;
  wr.wr.ud.ah = ah;
  wr.wr.ud.remote_qpn = qpn;
  wr.wr.ud.remote_qkey = qkey;
}

void WorkRequestBuilder::SetInline(size_t count, const ibv_data_buf* buffers) {
  owner_.AssertHeld();
  if (parts_.empty()) return Fail(EINVAL);
  Part& part = parts_.back();
  part.wr.send_flags |= IBV_SEND_INLINE;
  part.inline_at = inline_data_.size();
  for (size_t i = 0; i < count; ++i) {
    const auto* data = static_cast<const uint8_t*>(buffers[i].addr);
    inline_data_.insert(inline_data_.end(), data, data + buffers[i].length);
  }
  part.inline_bytes = inline_data_.size() - part.inline_at;
}

namespace {

WorkRequestBuilder& Builder(ibv_qp_ex* qp) { return Qp::From(qp)->builder; }

void Atomic(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t remote_addr,
            uint64_t compare_add, uint64_t swap) {
  ibv_send_wr& wr = Builder(qp).Begin(*qp, opcode);
  wr.wr.atomic.remote_addr = remote_addr;
  wr.wr.atomic.rkey = rkey;
  wr.wr.atomic.compare_add = compare_add;
  wr.wr.atomic.swap = swap;
}

void CompareSwap(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, uint64_t compare,
                 uint64_t swap) {
  Atomic(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

void FetchAdd(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, uint64_t add) {
  Atomic(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

ibv_send_wr& Rdma(ibv_qp_ex* qp, ibv_wr_opcode opcode, uint32_t rkey, uint64_t remote_addr) {
  ibv_send_wr& wr = Builder(qp).Begin(*qp, opcode);
  wr.wr.rdma.remote_addr = remote_addr;
  wr.wr.rdma.rkey = rkey;
  return wr;
}

void Read(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr) {
  Rdma(qp, IBV_WR_RDMA_READ, rkey, remote_addr);
}

void Write(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr) {
  Rdma(qp, IBV_WR_RDMA_WRITE, rkey, remote_addr);
}

void WriteImmediate(ibv_qp_ex* qp, uint32_t rkey, uint64_t remote_addr, __be32 imm) {
  Rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr).imm_data = imm;
}

void Send(ibv_qp_ex* qp) { Builder(qp).Begin(*qp, IBV_WR_SEND); }

void SendImmediate(ibv_qp_ex* qp, __be32 imm) {
  Builder(qp).Begin(*qp, IBV_WR_SEND_WITH_IMM).imm_data = imm;
}

void SendInvalidate(ibv_qp_ex* qp, uint32_t rkey) {
  Builder(qp).Begin(*qp, IBV_WR_SEND_WITH_INV).invalidate_rkey = rkey;
}

void LocalInvalidate(ibv_qp_ex* qp, uint32_t rkey) {
  Builder(qp).Begin(*qp, IBV_WR_LOCAL_INV).invalidate_rkey = rkey;
}

void BindWindow(ibv_qp_ex* qp, ibv_mw* mw, uint32_t rkey, const ibv_mw_bind_info* info) {
  ibv_send_wr& wr = Builder(qp).Begin(*qp, IBV_WR_BIND_MW);
  wr.bind_mw.mw = mw;
  wr.bind_mw.rkey = rkey;
  wr.bind_mw.bind_info = *info;
}

void SetUdAddress(ibv_qp_ex* qp, ibv_ah* ah, uint32_t remote_qpn, uint32_t remote_qkey) {
  Builder(qp).SetDestination(ah, remote_qpn, remote_qkey);
}

void SetSge(ibv_qp_ex* qp, uint32_t lkey, uint64_t addr, uint32_t length) {
  const ibv_sge sge{addr, length, lkey};
  Builder(qp).SetSges(&sge, 1);
}

void SetSgeList(ibv_qp_ex* qp, size_t count, const ibv_sge* sges) {
  Builder(qp).SetSges(sges, count);
}

void SetInlineData(ibv_qp_ex* qp, void* addr, size_t length) {
  const ibv_data_buf buffer{addr, length};
  Builder(qp).SetInline(1, &buffer);
}

void SetInlineDataList(ibv_qp_ex* qp, size_t count, const ibv_data_buf* buffers) {
  Builder(qp).SetInline(count, buffers);
}

// The application's thread owns the builder from the first of these calls to one of the others.
void Start(ibv_qp_ex* qp) SV_UNCHECKED { Builder(qp).Start(); }
int Complete(ibv_qp_ex* qp) SV_UNCHECKED { return Builder(qp).Complete(&qp->qp_base); }
void Abort(ibv_qp_ex* qp) SV_UNCHECKED { Builder(qp).Abort(); }

}  // namespace

void InstallWorkRequestCalls(ibv_qp_ex& qp) {
  qp.wr_atomic_cmp_swp = CompareSwap;
  qp.wr_atomic_fetch_add = FetchAdd;
  qp.wr_rdma_read = Read;
  qp.wr_rdma_write = Write;
  qp.wr_rdma_write_imm = WriteImmediate;
  qp.wr_send = Send;
  qp.wr_send_imm = SendImmediate;
  qp.wr_send_inv = SendInvalidate;
  qp.wr_local_inv = LocalInvalidate;
  qp.wr_bind_mw = BindWindow;
  qp.wr_set_ud_addr = SetUdAddress;
  qp.wr_set_sge = SetSge;
  qp.wr_set_sge_list = SetSgeList;
  qp.wr_set_inline_data = SetInlineData;
  qp.wr_set_inline_data_list = SetInlineDataList;
  qp.wr_start = Start;
  qp.wr_complete = Complete;
  qp.wr_abort = Abort;
}

}  // namespace softverbs
