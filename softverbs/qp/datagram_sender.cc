#include "softverbs/qp/datagram_sender.h"

#include <sched.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "softverbs/base/errno.h"
#include "softverbs/base/gid.h"
#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/mutex.h"
#include "softverbs/base/verbs_limits.h"
#include "softverbs/nic/address_handle.h"
#include "softverbs/nic/grh.h"
#include "softverbs/qp/post.h"
#include "softverbs/qp/qp_state.h"
#include "softverbs/qp/requester.h"
#include "softverbs/qp/scatter_gather.h"

namespace softverbs {
namespace {

// IBTA 10.2.5: with this bit set the Q_Key is that of the sending queue pair.
constexpr uint32_t kOwnQkey = 0x80000000;

// The call that posts the first datagram to a process waits for the link to come up, because some
// programs post and exit, and with an adapter that is enough. It looks all the time for a
// millisecond, and then once in each, for 100 ms. These looks are counted rather than time: on a
// busy machine this thread comes late, and so does the peer's.
constexpr int64_t kBetweenLooksNs = 1'000'000;
constexpr int kLooks = 100;

std::shared_ptr<Link> AwaitLink(std::shared_ptr<Link> link) {
  const int64_t first_end = MonotonicNs() + kBetweenLooksNs;
  while (link->state() == Link::State::kConnecting && MonotonicNs() < first_end) sched_yield();
  for (int look = 0; link->state() == Link::State::kConnecting && look < kLooks; ++look) {
    const timespec pause{0, kBetweenLooksNs};
    nanosleep(&pause, nullptr);
  }
  return link;
}

DatagramRoute RouteTo(const Qp& qp, const ibv_send_wr& wr) {
  DatagramRoute to;
  const Ah* ah = Ah::From(wr.wr.ud.ah);
  if (ah == nullptr || Pd::From(ah->ibv.pd)->id != qp.pd_id) {
    to.error = IBV_WC_LOC_QP_OP_ERR;
    return to;
  }
  to.qpn = wr.wr.ud.remote_qpn;
  to.qkey = wr.wr.ud.remote_qkey;
  to.source = ah->source;
  to.route = ah->route;
  if (!IsMulticastGid(ah->route.dgid)) {
    to.links.push_back(AwaitLink(LinkTo(*qp.nic, qp.context->device, ah->route.dgid, to.qpn)));
    return to;
  }
  to.qpn = kMulticastQpn;
  for (uint32_t slot : MulticastGroups::Slots(ah->route.dgid)) {
    to.links.push_back(AwaitLink(qp.nic->links().Get(slot)));
  }
  return to;
}

DatagramRoute& RouteAt(Qp& qp, uint32_t index) SV_REQUIRES(qp.lock) {
  return qp.routes[index & (qp.requester.queue.places() - 1)];
}

PacketHeader DatagramHeader(const Qp& qp, const SendWqe& wqe, const DatagramRoute& to) {
  PacketHeader header{};
  header.payload_bytes = kGrhBytes + wqe.length;
  header.record_bytes = RecordBytes(header.payload_bytes);
  header.to_qpn = to.qpn;
  header.from_qpn = qp.number;
  header.type = PacketType::kDatagram;
  header.flags = kPacketFirst | kPacketLast;
  header.rkey = (to.qkey & kOwnQkey) != 0 ? qp.attr.qkey : to.qkey;
  header.message_bytes = wqe.length;
  if ((wqe.send_flags & IBV_SEND_SOLICITED) != 0) header.flags |= kPacketSolicited;
  if (wqe.opcode == IBV_WR_SEND_WITH_IMM) {
    header.flags |= kPacketImmediate;
    header.imm = wqe.imm;
  }
  return header;
}

// Returns false if the memory was deregistered since the request was posted.
bool FillPayload(const Qp& qp, SendWqe& wqe, const DatagramRoute& to, uint8_t* payload) {
  WriteGrh(to.source, to.route, wqe.length, payload);
  uint8_t* data = payload + kGrhBytes;
  if (wqe.is_inline()) {
    memcpy(data, wqe.inline_data(), wqe.length);
    return true;
  }
  const SgeList list{wqe.sges(), wqe.sge_count};
  return wqe.length == 0 || Gather(qp.nic->memory(), qp.pd_id, list, 0, wqe.length, data);
}

// Sends the datagram to all its destinations. Returns false if it must wait for one of them.
bool SendDatagram(Qp& qp, SendWqe& wqe, DatagramRoute& to) {
  // IBTA C10-93.1.1: a datagram longer than the MTU is not sent, and that is no error.
  if (wqe.length > kMaxDatagram) return true;
  const PacketHeader header = DatagramHeader(qp, wqe, to);
  for (; to.reached < to.links.size(); ++to.reached) {
    const Link::SendResult result = to.links[to.reached]->Send(
        header, &qp.waits_for_link,
        [&](uint8_t* payload) { return FillPayload(qp, wqe, to, payload); });
    if (result == Link::SendResult::kFull) return false;
    if (result == Link::SendResult::kNotFilled) to.error = IBV_WC_LOC_PROT_ERR;
  }
  return true;
}

}  // namespace

int PostDatagrams(Qp& qp, ibv_send_wr* wr, ibv_send_wr** bad_wr) {
  std::vector<DatagramRoute> routes;
  for (const ibv_send_wr* each = wr; each != nullptr; each = each->next) {
    routes.push_back(RouteTo(qp, *each));
  }
  const LockGuard guard(qp.lock);
  SendQueue& queue = qp.requester.queue;
  const uint32_t before = queue.posted;
  int error = CanPost(qp) ? 0 : EINVAL;
  for (auto route = routes.begin(); wr != nullptr && error == 0; ++route) {
    const uint32_t place = queue.posted;
    error = Enqueue(qp, *wr);
    if (error != 0) break;
    RouteAt(qp, place) = std::move(*route);
    wr = wr->next;
  }
  if (error != 0) {
    if (bad_wr == nullptr) {
      queue.posted = before;
      return WithErrno(error);
    }
    *bad_wr = wr;
  }
  if (CanPost(qp)) StartPosted(qp);
  return WithErrno(error);
}

void TransmitDatagrams(Qp& qp) {
  SendQueue& queue = qp.requester.queue;
  while (qp.state == IBV_QPS_RTS && queue.next != queue.posted) {
    SendWqe& wqe = queue.At(queue.next);
    DatagramRoute& to = RouteAt(qp, queue.next);
    if (wqe.error == IBV_WC_SUCCESS) wqe.error = to.error;
    if (wqe.error == IBV_WC_SUCCESS && !SendDatagram(qp, wqe, to)) return;
    if (wqe.error == IBV_WC_SUCCESS) wqe.error = to.error;
    to.links.clear();
    if (wqe.error != IBV_WC_SUCCESS) return FailOldest(qp, wqe.error);
    ++queue.next;
    CompleteOldest(qp, IBV_WC_SUCCESS);
  }
}

}  // namespace softverbs
