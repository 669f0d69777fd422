#include <infiniband/sa.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

#include <cerrno>
#include <cstring>

#include "softverbs/base/errno.h"
#include "softverbs/base/export.h"

// What the library must export besides the verbs proper: fork support, and functions for features
// that this device does not have.

// Nothing to do: registered memory is not pinned, and forked children leave everything alone.
SOFTVERBS_EXPORT int ibv_fork_init() { return 0; }
SOFTVERBS_EXPORT ibv_fork_status ibv_is_fork_initialized() { return IBV_FORK_UNNEEDED; }
SOFTVERBS_EXPORT int ibv_dontfork_range(void*, size_t) { return 0; }
SOFTVERBS_EXPORT int ibv_dofork_range(void*, size_t) { return 0; }

SOFTVERBS_EXPORT int ibv_resolve_eth_l2_from_gid(ibv_context*, ibv_ah_attr*, uint8_t mac[6],
                                                 uint16_t* vlan) {
  memset(mac, 0, 6);
  if (vlan != nullptr) *vlan = 0xffff;  // none
  return 0;
}

SOFTVERBS_EXPORT int ibv_set_ece(ibv_qp*, ibv_ece*) { return softverbs::WithErrno(EOPNOTSUPP); }
SOFTVERBS_EXPORT int ibv_query_ece(ibv_qp*, ibv_ece*) { return softverbs::WithErrno(EOPNOTSUPP); }

SOFTVERBS_EXPORT ibv_context* ibv_import_device(int) {
  errno = EOPNOTSUPP;
  return nullptr;
}
SOFTVERBS_EXPORT ibv_pd* ibv_import_pd(ibv_context*, uint32_t) {
  errno = EOPNOTSUPP;
  return nullptr;
}
SOFTVERBS_EXPORT void ibv_unimport_pd(ibv_pd*) {}
SOFTVERBS_EXPORT ibv_mr* ibv_import_mr(ibv_pd*, uint32_t) {
  errno = EOPNOTSUPP;
  return nullptr;
}
SOFTVERBS_EXPORT void ibv_unimport_mr(ibv_mr*) {}
SOFTVERBS_EXPORT ibv_dm* ibv_import_dm(ibv_context*, uint32_t) {
  errno = EOPNOTSUPP;
  return nullptr;
}
SOFTVERBS_EXPORT void ibv_unimport_dm(ibv_dm*) {}

// This device has no kernel device behind it.
SOFTVERBS_EXPORT const char* ibv_get_sysfs_path() { return "/sys"; }
SOFTVERBS_EXPORT int ibv_read_sysfs_file(const char*, const char*, char*, size_t) { return -1; }
SOFTVERBS_EXPORT int ibv_read_ibdev_sysfs_file(char*, size_t, ibv_device*, const char*, ...) {
  return -1;
}

namespace {

// Between a path of the kernel's interface and one of the library's: the same fields.
template <class From, class To>
void CopyPath(const From& from, To* to) {
  memset(to, 0, sizeof(*to));
  static_assert(sizeof(to->dgid) == sizeof(from.dgid) && sizeof(to->sgid) == sizeof(from.sgid));
  memcpy(&to->dgid, &from.dgid, sizeof(to->dgid));
  memcpy(&to->sgid, &from.sgid, sizeof(to->sgid));
  to->dlid = from.dlid;
  to->slid = from.slid;
  to->raw_traffic = static_cast<decltype(to->raw_traffic)>(from.raw_traffic);
  to->flow_label = from.flow_label;
  to->hop_limit = from.hop_limit;
  to->traffic_class = from.traffic_class;
  to->reversible = static_cast<decltype(to->reversible)>(from.reversible);
  to->numb_path = from.numb_path;
  to->pkey = from.pkey;
  to->sl = from.sl;
  to->mtu_selector = from.mtu_selector;
  to->mtu = static_cast<uint8_t>(from.mtu);
  to->rate_selector = from.rate_selector;
  to->rate = from.rate;
  to->packet_life_time_selector = from.packet_life_time_selector;
  to->packet_life_time = from.packet_life_time;
  to->preference = from.preference;
}

}  // namespace

SOFTVERBS_EXPORT void ibv_copy_path_rec_from_kern(ibv_sa_path_rec* to, ib_user_path_rec* from) {
  CopyPath(*from, to);
}
SOFTVERBS_EXPORT void ibv_copy_path_rec_to_kern(ib_user_path_rec* to, ibv_sa_path_rec* from) {
  CopyPath(*from, to);
}

SOFTVERBS_EXPORT void ibv_copy_ah_attr_from_kern(ibv_ah_attr* to, ib_uverbs_ah_attr* from) {
  memset(to, 0, sizeof(*to));
  memcpy(to->grh.dgid.raw, from->grh.dgid, sizeof(to->grh.dgid));
  to->grh.flow_label = from->grh.flow_label;
  to->grh.sgid_index = from->grh.sgid_index;
  to->grh.hop_limit = from->grh.hop_limit;
  to->grh.traffic_class = from->grh.traffic_class;
  to->dlid = from->dlid;
  to->sl = from->sl;
  to->src_path_bits = from->src_path_bits;
  to->static_rate = from->static_rate;
  to->is_global = from->is_global;
  to->port_num = from->port_num;
}

SOFTVERBS_EXPORT void ibv_copy_qp_attr_from_kern(ibv_qp_attr* to, ib_uverbs_qp_attr* from) {
  memset(to, 0, sizeof(*to));
  to->cur_qp_state = static_cast<ibv_qp_state>(from->cur_qp_state);
  to->path_mtu = static_cast<ibv_mtu>(from->path_mtu);
  to->path_mig_state = static_cast<ibv_mig_state>(from->path_mig_state);
  to->qkey = from->qkey;
  to->rq_psn = from->rq_psn;
  to->sq_psn = from->sq_psn;
  to->dest_qp_num = from->dest_qp_num;
  to->qp_access_flags = from->qp_access_flags;
  to->cap.max_send_wr = from->max_send_wr;
  to->cap.max_recv_wr = from->max_recv_wr;
  to->cap.max_send_sge = from->max_send_sge;
  to->cap.max_recv_sge = from->max_recv_sge;
  to->cap.max_inline_data = from->max_inline_data;
  ibv_copy_ah_attr_from_kern(&to->ah_attr, &from->ah_attr);
  ibv_copy_ah_attr_from_kern(&to->alt_ah_attr, &from->alt_ah_attr);
  to->pkey_index = from->pkey_index;
  to->alt_pkey_index = from->alt_pkey_index;
  to->en_sqd_async_notify = from->en_sqd_async_notify;
  to->sq_draining = from->sq_draining;
  to->max_rd_atomic = from->max_rd_atomic;
  to->max_dest_rd_atomic = from->max_dest_rd_atomic;
  to->min_rnr_timer = from->min_rnr_timer;
  to->port_num = from->port_num;
  to->timeout = from->timeout;
  to->retry_cnt = from->retry_cnt;
  to->rnr_retry = from->rnr_retry;
  to->alt_port_num = from->alt_port_num;
  to->alt_timeout = from->alt_timeout;
}
