#ifndef SOFTVERBS_QP_WORK_REQUEST_BUILDER_H_
#define SOFTVERBS_QP_WORK_REQUEST_BUILDER_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <vector>

#include "softverbs/base/spin_lock.h"

namespace softverbs {

// The ibv_wr_* calls of one queue pair. Collects requests between ibv_wr_start and ibv_wr_complete,
// which posts them all. Only one thread at a time has it, from start to complete or abort.
class WorkRequestBuilder {
 public:
  void Start() SV_ACQUIRE(owner_);
  int Complete(ibv_qp* qp) SV_RELEASE(owner_);
  void Abort() SV_RELEASE(owner_);

  // The others REQUIRE that the calling thread is between Start and Complete.
  // Begins a request with the queue pair's current wr_id and wr_flags.
  ibv_send_wr& Begin(const ibv_qp_ex& qp, ibv_wr_opcode opcode);
  // UD only: sets where the request goes.
  void SetDestination(ibv_ah* ah, uint32_t qpn, uint32_t qkey);
  void SetSges(const ibv_sge* sges, size_t count);
  // Copies the data, so that the application may reuse its buffers at once.
  void SetInline(size_t count, const ibv_data_buf* buffers);
  void Fail(int error) SV_REQUIRES(owner_) { error_ = error; }

 private:
  struct Part {
    ibv_send_wr wr;
    size_t first_sge;
    size_t inline_at;
    size_t inline_bytes;
  };

  SpinLock owner_;
  // Kept between chains to reuse their memory.
  std::vector<Part> parts_ SV_GUARDED_BY(owner_);
  std::vector<ibv_sge> sges_ SV_GUARDED_BY(owner_);
  std::vector<uint8_t> inline_data_ SV_GUARDED_BY(owner_);
  int error_ SV_GUARDED_BY(owner_) = 0;
};

// Fills the wr_* members.
void InstallWorkRequestCalls(ibv_qp_ex& qp);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_WORK_REQUEST_BUILDER_H_
