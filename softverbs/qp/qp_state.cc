#include "softverbs/qp/qp_state.h"

#include <cerrno>
#include <utility>

#include "softverbs/base/gid_table.h"
#include "softverbs/base/link_layer.h"
#include "softverbs/base/log.h"
#include "softverbs/base/mutex.h"
#include "softverbs/base/net_config.h"
#include "softverbs/base/verbs_limits.h"
#include "softverbs/cq/held_completions.h"
#include "softverbs/qp/path.h"
#include "softverbs/qp/requester.h"
#include "softverbs/qp/responder.h"
#include "softverbs/qp/split_atomic.h"
#include "softverbs/qp/transitions.h"

namespace softverbs {
namespace {

// Checks that a path leads to a destination. Returns 0 or an errno value.
int CheckPath(int device, const ibv_ah_attr& path) {
  const auto found = RouteOf(device, path);
  if (!found) {
    Report(
        IsInfiniBand()
            ? "neither a GRH nor the LID of a host: see ah_attr.dlid"
            : "no GRH: on RoCE, ah_attr.is_global must be 1 and ah_attr.grh must name the peer's "
              "GID (SOFTVERBS_LINK_LAYER=infiniband is for programs that need LIDs)");
    return EINVAL;
  }
  const ibv_global_route& route = *found;
  if (!GidAt(PortOf(device, path.port_num), route.sgid_index)) {
    Report("there is no GID %u of port %u of softverbs%d", route.sgid_index, path.port_num, device);
    return EINVAL;
  }
  if (IsGidOfThisHost(route.dgid)) return 0;
  return IsReachable(PortOf(device, path.port_num), route.dgid, route.sgid_index) ? 0
                                                                                  : EHOSTUNREACH;
}

int CheckValues(int device, const ibv_qp_attr& attr, int mask) {
  const bool valid =
      (!(mask & IBV_QP_PORT) || HasPort(attr.port_num)) &&
      (!(mask & IBV_QP_PKEY_INDEX) || attr.pkey_index == 0) &&
      (!(mask & IBV_QP_PATH_MTU) ||
       (attr.path_mtu >= IBV_MTU_256 && attr.path_mtu <= IBV_MTU_4096)) &&
      (!(mask & IBV_QP_MAX_QP_RD_ATOMIC) || attr.max_rd_atomic <= MaxReadAtomic()) &&
      (!(mask & IBV_QP_MAX_DEST_RD_ATOMIC) || attr.max_dest_rd_atomic <= MaxReadAtomic()) &&
      (!(mask & IBV_QP_MIN_RNR_TIMER) || attr.min_rnr_timer < 32) &&
      (!(mask & IBV_QP_TIMEOUT) || attr.timeout < 32) &&
      (!(mask & IBV_QP_RETRY_CNT) || attr.retry_cnt < 8) &&
      (!(mask & IBV_QP_RNR_RETRY) || attr.rnr_retry < 8) &&
      (!(mask & IBV_QP_AV) || HasPort(attr.ah_attr.port_num));
  if (!valid) return EINVAL;
  if ((mask & IBV_QP_ALT_PATH) && HasPathMigration()) {
    if (!HasPort(attr.alt_ah_attr.port_num)) return EINVAL;
    if (const int error = CheckPath(device, attr.alt_ah_attr)) return error;
  }
  return (mask & IBV_QP_AV) ? CheckPath(device, attr.ah_attr) : 0;
}

void CopyAttributes(const ibv_qp_attr& from, int mask, ibv_qp_attr* to) {
  const auto copy = [&](int bit, auto member) {
    if ((mask & bit) != 0) to->*member = from.*member;
  };
  constexpr uint32_t kPsnMask = 0xffffff;
  copy(IBV_QP_ACCESS_FLAGS, &ibv_qp_attr::qp_access_flags);
  copy(IBV_QP_PKEY_INDEX, &ibv_qp_attr::pkey_index);
  copy(IBV_QP_PORT, &ibv_qp_attr::port_num);
  copy(IBV_QP_AV, &ibv_qp_attr::ah_attr);
  copy(IBV_QP_PATH_MTU, &ibv_qp_attr::path_mtu);
  copy(IBV_QP_TIMEOUT, &ibv_qp_attr::timeout);
  copy(IBV_QP_RETRY_CNT, &ibv_qp_attr::retry_cnt);
  copy(IBV_QP_RNR_RETRY, &ibv_qp_attr::rnr_retry);
  copy(IBV_QP_RQ_PSN, &ibv_qp_attr::rq_psn);
  copy(IBV_QP_MAX_QP_RD_ATOMIC, &ibv_qp_attr::max_rd_atomic);
  copy(IBV_QP_ALT_PATH, &ibv_qp_attr::alt_ah_attr);
  copy(IBV_QP_ALT_PATH, &ibv_qp_attr::alt_pkey_index);
  copy(IBV_QP_ALT_PATH, &ibv_qp_attr::alt_port_num);
  copy(IBV_QP_ALT_PATH, &ibv_qp_attr::alt_timeout);
  copy(IBV_QP_MIN_RNR_TIMER, &ibv_qp_attr::min_rnr_timer);
  copy(IBV_QP_SQ_PSN, &ibv_qp_attr::sq_psn);
  copy(IBV_QP_MAX_DEST_RD_ATOMIC, &ibv_qp_attr::max_dest_rd_atomic);
  copy(IBV_QP_PATH_MIG_STATE, &ibv_qp_attr::path_mig_state);
  copy(IBV_QP_DEST_QPN, &ibv_qp_attr::dest_qp_num);
  copy(IBV_QP_QKEY, &ibv_qp_attr::qkey);
  to->rq_psn &= kPsnMask;
  to->sq_psn &= kPsnMask;
}

void Reset(Qp& qp) SV_REQUIRES(qp.lock) {
  RevokeTarget(qp);
  EndSplitAtomics(qp);
  HandRefusalToLink(qp);
  Purge(*qp.send_cq, qp.number);
  Purge(*qp.recv_cq, qp.number);
  Requester& requester = qp.requester;
  requester.queue.Reset();
  requester.began = requester.backing_off = requester.peer_awaited = false;
  requester.held_back = false;
  requester.awaits_answers = false;
  requester.fetches = 0;
  // Does not start from zero: a late answer to the old connection must not look like one of the
  // new.
  ++requester.epoch;
  qp.responder = Responder{};
  qp.receives.Clear();
  qp.faults.of_connection = 0;
  qp.link.reset();
  qp.attr = ibv_qp_attr{};
  qp.established = qp.notify_drained = false;
  qp.waits_for_link = false;
  qp.path_flags = 0;
}

// Does what has to be done on arrival in a state.
void Enter(Qp& qp, ibv_qp_state state) SV_REQUIRES(qp.lock) {
  if (state == IBV_QPS_RTR) qp.responder.expected_psn = qp.attr.rq_psn;
  if (state == IBV_QPS_RTS && qp.state == IBV_QPS_RTR) {
    qp.requester.next_psn = qp.attr.sq_psn;
    qp.requester.retries_left = qp.attr.retry_cnt;
    qp.requester.rnr_retries_left = qp.attr.rnr_retry;
  }
  qp.state = state;
  PublishTarget(qp);
  NoteDrained(qp);
  Transmit(qp);  // what was posted while the queue was drained
}

int ModifyLocked(Qp& qp, const ibv_qp_attr& attr, int mask, std::shared_ptr<Link> link)
    SV_REQUIRES(qp.lock) {
  const ibv_qp_state from = qp.state;
  const ibv_qp_state to = (mask & IBV_QP_STATE) ? attr.qp_state : from;
  if ((mask & IBV_QP_CUR_STATE) && attr.cur_qp_state != from) return EINVAL;
  if (!IsLegalTransition(qp.type(), from, to, mask)) return EINVAL;
  if (const int error = CheckValues(qp.context->device, attr, mask)) return error;
  if (const int error = CheckMigration(qp, attr, mask)) return error;
  if (to == IBV_QPS_RESET) {
    Reset(qp);
    qp.state = IBV_QPS_RESET;
    return 0;
  }
  if (to == IBV_QPS_ERR) {
    EnterError(qp);
    return 0;
  }
  const SendQueue& queue = qp.requester.queue;
  if (from == IBV_QPS_SQD && queue.done != queue.next)
    return EINVAL;  // IBTA: not before it is drained
  const ibv_mig_state migration = qp.attr.path_mig_state;
  CopyAttributes(attr, mask, &qp.attr);
  ChangePath(qp, migration, mask);
  if (link) qp.link = std::move(link);
  if (to == IBV_QPS_SQD && from == IBV_QPS_RTS) {
    qp.notify_drained = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && attr.en_sqd_async_notify;
  }
  Enter(qp, to);
  return 0;
}

}  // namespace

std::shared_ptr<Link> LinkTo(Nic& nic, int device, const ibv_gid& host, uint32_t qpn) {
  if (StaysOnThisHost(host)) return nic.links().Get(QpSlot(qpn));
  return nic.remote_links().Get(Net()->gids[static_cast<size_t>(device)], host, QpSlot(qpn));
}

int ModifyQp(Qp& qp, const ibv_qp_attr& attr, int mask) {
  std::shared_ptr<Link> link;
  const bool connects = (mask & IBV_QP_STATE) && attr.qp_state == IBV_QPS_RTR;
  if (connects && (mask & IBV_QP_DEST_QPN)) {
    if (attr.dest_qp_num >= 1u << 24) return EINVAL;
    // Looks the link up before taking any lock, because it may have to be made. An unknown number
    // gives a link that is down, and sends on it fail as to a host that does not answer.
    const auto route = RouteOf(qp.context->device, attr.ah_attr);
    if (route && CheckValues(qp.context->device, attr, mask) == 0) {
      link = LinkTo(*qp.nic, qp.context->device, route->dgid, attr.dest_qp_num);
    }
  }
  // Pauses the engine, so that after a move to ERR or RESET nobody touches the queue pair's memory.
  const PacketEngine::Pause pause(qp.nic->engine());
  const LockGuard guard(qp.lock);
  const int error = ModifyLocked(qp, attr, mask, std::move(link));
  if (error == 0) qp.ex.qp_base.state = qp.state;
  return error;
}

void QueryQp(Qp& qp, ibv_qp_attr* attr, ibv_qp_init_attr* init_attr) {
  const LockGuard guard(qp.lock);
  *attr = qp.attr;
  attr->qp_state = attr->cur_qp_state = qp.state;
  attr->cap = qp.cap;
  const SendQueue& queue = qp.requester.queue;
  attr->sq_draining = qp.state == IBV_QPS_SQD && queue.done != queue.next;
  *init_attr = ibv_qp_init_attr{};
  init_attr->qp_context = qp.ex.qp_base.qp_context;
  init_attr->send_cq = qp.ex.qp_base.send_cq;
  init_attr->recv_cq = qp.ex.qp_base.recv_cq;
  init_attr->srq = qp.ex.qp_base.srq;
  init_attr->cap = qp.cap;
  init_attr->qp_type = qp.type();
  init_attr->sq_sig_all = qp.signal_all;
}

}  // namespace softverbs
