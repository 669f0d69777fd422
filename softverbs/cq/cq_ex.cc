#include <cerrno>

#include "softverbs/base/errno.h"
#include "softverbs/base/monotonic_clock.h"
#include "softverbs/cq/cq.h"

namespace softverbs {
namespace {

void Show(Cq& cq) SV_REQUIRES(cq.poll_owner) {
  cq.ex.status = cq.current.status;
  cq.ex.wr_id = cq.current.wr_id;
}

// The application's thread owns the polling from this call to end_poll.
int StartPoll(ibv_cq_ex* ex, ibv_poll_cq_attr* attr) SV_UNCHECKED {
  Cq& cq = *Cq::From(ex);
  if (attr != nullptr && attr->comp_mask != 0) return WithErrno(EINVAL);
  cq.poll_owner.lock();
  if (!PopCompletion(cq, &cq.current)) {
    cq.poll_owner.unlock();
    return ENOENT;
  }
  Show(cq);
  return 0;
}

int NextPoll(ibv_cq_ex* ex) {
  Cq& cq = *Cq::From(ex);
  cq.poll_owner.AssertHeld();
  if (!PopCompletion(cq, &cq.current)) return ENOENT;
  Show(cq);
  return 0;
}

void EndPoll(ibv_cq_ex* ex) SV_UNCHECKED { Cq::From(ex)->poll_owner.unlock(); }

const Cqe& Current(ibv_cq_ex* ex) {
  Cq& cq = *Cq::From(ex);
  cq.poll_owner.AssertHeld();
  return cq.current;
}

ibv_wc_opcode ReadOpcode(ibv_cq_ex* ex) { return Current(ex).opcode; }
uint32_t ReadVendorError(ibv_cq_ex*) { return 0; }
uint32_t ReadByteLength(ibv_cq_ex* ex) { return Current(ex).byte_len; }
__be32 ReadImmediate(ibv_cq_ex* ex) { return Current(ex).imm_data; }
uint32_t ReadQpNumber(ibv_cq_ex* ex) { return Current(ex).qp_num; }
uint32_t ReadSourceQp(ibv_cq_ex* ex) { return Current(ex).src_qp; }
unsigned int ReadFlags(ibv_cq_ex* ex) { return Current(ex).wc_flags; }
uint32_t ReadSlid(ibv_cq_ex* ex) { return Current(ex).slid; }
uint8_t ReadServiceLevel(ibv_cq_ex* ex) { return Current(ex).sl; }
uint8_t ReadZero(ibv_cq_ex*) { return 0; }
// The device's clock is CLOCK_MONOTONIC in nanoseconds, read at the time of the call.
uint64_t ReadTimestamp(ibv_cq_ex*) { return static_cast<uint64_t>(MonotonicNs()); }

}  // namespace

void InstallExtendedPolling(Cq& cq) {
  cq.ex.start_poll = StartPoll;
  cq.ex.next_poll = NextPoll;
  cq.ex.end_poll = EndPoll;
  cq.ex.read_opcode = ReadOpcode;
  cq.ex.read_vendor_err = ReadVendorError;
  cq.ex.read_byte_len = ReadByteLength;
  cq.ex.read_imm_data = ReadImmediate;
  cq.ex.read_qp_num = ReadQpNumber;
  cq.ex.read_src_qp = ReadSourceQp;
  cq.ex.read_wc_flags = ReadFlags;
  cq.ex.read_slid = ReadSlid;
  cq.ex.read_sl = ReadServiceLevel;
  cq.ex.read_dlid_path_bits = ReadZero;
  cq.ex.read_completion_ts = ReadTimestamp;
}

}  // namespace softverbs
