#include <infiniband/verbs.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

#include "softverbs/base/errno.h"
#include "softverbs/base/export.h"

// Functions that came to libibverbs after version 44 of rdma-core, whose headers are enough to
// build softverbs. The structs of newer headers are named here, and read by layouts of our own.

struct ibv_comp_cntr;
struct ibv_comp_cntr_caps;
struct ibv_comp_cntr_init_attr;
struct ibv_dmah;
struct ibv_dmah_init_attr;
struct ibv_mr_init_attr;
struct ibv_qp_attach_comp_cntr_attr;

// What ibv_alloc_buf returns besides the memory. Applications do not look into it.
struct ibv_buf {
  ibv_pd* pd;
  uint8_t* addr;
  size_t size;
};

namespace softverbs {
namespace {

// ibv_mr_init_attr, and the bits of its comp_mask: which fields are set.
struct RegistrationAttributes {
  size_t length;
  int access;
  uint64_t comp_mask;
  uint64_t iova;
  void* addr;
  int fd;
  uint64_t fd_offset;
  ibv_dmah* dmah;
  ibv_buf* buf;  // since version 65
};
enum : uint64_t {
  kHasIova = 1 << 0,
  kHasAddr = 1 << 1,
  kHasFd = 1 << 2,
  kHasFdOffset = 1 << 3,
  kHasDmah = 1 << 4,
  kHasBuf = 1 << 5,
};

bool IsWithin(const ibv_buf& buf, const void* addr, size_t length) {
  const uint64_t offset = reinterpret_cast<uint64_t>(addr) - reinterpret_cast<uint64_t>(buf.addr);
  return offset <= buf.size && length <= buf.size - offset;
}

// Returns 0 or an errno value.
int CheckRegistration(const ibv_pd* pd, const RegistrationAttributes& attr) {
  const bool has_buf = (attr.comp_mask & kHasBuf) != 0;
  if (has_buf && (attr.comp_mask & (kHasFd | kHasFdOffset)) != 0) return EINVAL;
  // No memory of other devices, and no hints for them.
  if ((attr.comp_mask & ~uint64_t{kHasIova | kHasAddr | kHasBuf}) != 0) return EOPNOTSUPP;
  if ((attr.comp_mask & kHasAddr) == 0) return EINVAL;
  if (!has_buf) return 0;
  return attr.buf != nullptr && attr.buf->pd == pd && IsWithin(*attr.buf, attr.addr, attr.length)
             ? 0
             : EINVAL;
}

int Unsupported() { return WithErrno(EOPNOTSUPP); }

}  // namespace
}  // namespace softverbs

using softverbs::NullWithErrno;
using softverbs::Unsupported;

// --- Memory

SOFTVERBS_EXPORT ibv_mr* ibv_reg_mr_ex(ibv_pd* pd, ibv_mr_init_attr* init) {
  const auto& attr = *reinterpret_cast<const softverbs::RegistrationAttributes*>(init);
  if (const int error = softverbs::CheckRegistration(pd, attr)) return NullWithErrno<ibv_mr>(error);
  const uint64_t iova = (attr.comp_mask & softverbs::kHasIova) != 0
                            ? attr.iova
                            : reinterpret_cast<uint64_t>(attr.addr);
  return ibv_reg_mr_iova2(pd, attr.addr, attr.length, iova, static_cast<unsigned>(attr.access));
}

SOFTVERBS_EXPORT void* ibv_alloc_buf(ibv_pd* pd, size_t size, ibv_buf** buf) {
  void* addr = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (addr == MAP_FAILED) return nullptr;
  *buf = new ibv_buf{pd, static_cast<uint8_t*>(addr), size};
  return addr;
}

SOFTVERBS_EXPORT void ibv_free_buf(ibv_buf* buf) {
  if (buf == nullptr) return;
  munmap(buf->addr, buf->size);
  delete buf;
}

SOFTVERBS_EXPORT ibv_mr* ibv_reg_buf_mr(ibv_pd* pd, ibv_buf* buf, void* addr, size_t length,
                                        int access) {
  softverbs::RegistrationAttributes attr{};
  attr.length = length;
  attr.access = access;
  attr.comp_mask = softverbs::kHasAddr | softverbs::kHasBuf;
  attr.addr = addr;
  attr.buf = buf;
  return ibv_reg_mr_ex(pd, reinterpret_cast<ibv_mr_init_attr*>(&attr));
}

SOFTVERBS_EXPORT int ibv_export_buf_dmabuf_fd(ibv_buf*) {
  errno = ENODATA;  // no buffer is one of another device
  return -1;
}

SOFTVERBS_EXPORT int ibv_dm_export_dmabuf_fd(ibv_dm*) {
  Unsupported();
  return -1;
}

SOFTVERBS_EXPORT ibv_dmah* ibv_alloc_dmah(ibv_context*, ibv_dmah_init_attr*) {
  return NullWithErrno<ibv_dmah>(EOPNOTSUPP);
}
SOFTVERBS_EXPORT int ibv_dealloc_dmah(ibv_dmah*) { return Unsupported(); }

// --- The port

SOFTVERBS_EXPORT int ibv_query_port_speed(ibv_context*, uint32_t port, uint64_t* speed) {
  constexpr uint64_t kSpeed = 1000;  // of 100 Mbit/s: four lanes of EDR (query_verbs.cc)
  if (port != 1) return softverbs::WithErrno(EINVAL);
  *speed = kSpeed;
  return 0;
}

// --- Completion counters

SOFTVERBS_EXPORT int _ibv_query_comp_cntr_caps(ibv_context*, ibv_comp_cntr_caps*, size_t) {
  return Unsupported();
}
SOFTVERBS_EXPORT ibv_comp_cntr* ibv_create_comp_cntr(ibv_context*, ibv_comp_cntr_init_attr*) {
  return NullWithErrno<ibv_comp_cntr>(EOPNOTSUPP);
}
SOFTVERBS_EXPORT int ibv_destroy_comp_cntr(ibv_comp_cntr*) { return Unsupported(); }
SOFTVERBS_EXPORT int ibv_set_comp_cntr(ibv_comp_cntr*, uint64_t) { return Unsupported(); }
SOFTVERBS_EXPORT int ibv_set_err_comp_cntr(ibv_comp_cntr*, uint64_t) { return Unsupported(); }
SOFTVERBS_EXPORT int ibv_inc_comp_cntr(ibv_comp_cntr*, uint64_t) { return Unsupported(); }
SOFTVERBS_EXPORT int ibv_inc_err_comp_cntr(ibv_comp_cntr*, uint64_t) { return Unsupported(); }
SOFTVERBS_EXPORT int ibv_read_comp_cntr(ibv_comp_cntr*, uint64_t*) { return Unsupported(); }
SOFTVERBS_EXPORT int ibv_read_err_comp_cntr(ibv_comp_cntr*, uint64_t*) { return Unsupported(); }
SOFTVERBS_EXPORT int ibv_qp_attach_comp_cntr(ibv_qp*, ibv_comp_cntr*,
                                             ibv_qp_attach_comp_cntr_attr*) {
  return Unsupported();
}
