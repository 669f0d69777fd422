#include "common/rdma/multicast.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

constexpr int64_t kSendNsMax = kNsPerSecond;  // a device that takes longer is gone

// Waits until the descriptor is readable. Returns false when the time is over.
bool AwaitReadable(int fd, int64_t deadline_ns) {
  while (true) {
    const int64_t left_ns = deadline_ns - MonotonicNs();
    if (left_ns <= 0) return false;
    pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&entry, 1, static_cast<int>(left_ns / kNsPerMs) + 1) > 0) return true;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<MulticastMember>> MulticastMember::Join(
    const SocketAddress& group, const std::optional<SocketAddress>& local, int64_t timeout_ns) {
  const int64_t deadline_ns = MonotonicNs() + timeout_ns;
  GANNET_ASSIGN_OR_RETURN(CmChannel channel, CmChannel::Create());
  std::unique_ptr<MulticastMember> member(new MulticastMember(std::move(channel), group));
  GANNET_RETURN_IF_ERROR(member->Resolve(local, deadline_ns));
  GANNET_RETURN_IF_ERROR(member->MakeQueuePair());
  GANNET_RETURN_IF_ERROR(member->Enter(deadline_ns));
  return member;
}

MulticastMember::~MulticastMember() {
  if (joined_) rdma_leave_multicast(id_.get(), group_.get());
}

absl::StatusOr<rdma_ud_param> MulticastMember::Await(rdma_cm_event_type type, int64_t deadline_ns) {
  const std::string group = absl::StrCat("multicast group ", group_.HostString());
  rdma_cm_event* event = nullptr;
  while (rdma_get_cm_event(channel_.get(), &event) != 0) {
    if (errno != EAGAIN && errno != EINTR) return LastErrnoStatus(group);
    if (!AwaitReadable(channel_.fd(), deadline_ns)) {
      return absl::DeadlineExceededError(group + ": the network does not answer");
    }
  }
  const rdma_cm_event_type came = event->event;
  const int status = event->status;
  rdma_ud_param datagram{};
  if (came == RDMA_CM_EVENT_MULTICAST_JOIN) datagram = event->param.ud;
  rdma_ack_cm_event(event);
  if (came == type) return datagram;
  return absl::UnavailableError(
      absl::StrCat(group, ": ", rdma_event_str(came), ", status ", status));
}

absl::Status MulticastMember::Resolve(const std::optional<SocketAddress>& local,
                                      int64_t deadline_ns) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_UDP) != 0) {
    return LastErrnoStatus("cannot make a datagram id");
  }
  id_.reset(id);
  SocketAddress from = local.value_or(group_);
  from.set_port(0);
  const int timeout_ms =
      static_cast<int>(std::clamp<int64_t>((deadline_ns - MonotonicNs()) / kNsPerMs, 1, 60'000));
  if (rdma_resolve_addr(id, local ? from.get() : nullptr, group_.get(), timeout_ms) != 0) {
    return LastErrnoStatus(absl::StrCat("no RDMA device leads to ", group_.HostString()));
  }
  GANNET_RETURN_IF_ERROR(Await(RDMA_CM_EVENT_ADDR_RESOLVED, deadline_ns).status());
  if (id->verbs == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("no RDMA device leads to ", group_.HostString()));
  }
  return absl::OkStatus();
}

absl::Status MulticastMember::MakeQueuePair() {
  ibv_context* const verbs = id_->verbs;
  pd_.reset(ibv_alloc_pd(verbs));
  arrivals_.reset(ibv_create_comp_channel(verbs));
  if (pd_ == nullptr || arrivals_ == nullptr) return LastErrnoStatus("cannot use the device");
  send_cq_.reset(ibv_create_cq(verbs, 4, nullptr, nullptr, 0));
  receive_cq_.reset(ibv_create_cq(verbs, kReceives, nullptr, arrivals_.get(), 0));
  if (send_cq_ == nullptr || receive_cq_ == nullptr) {
    return LastErrnoStatus("cannot make a completion queue");
  }
  GANNET_ASSIGN_OR_RETURN(buffer_,
                          RegisteredBuffer::Create(pd_.get(), (kReceives + 1) * kSlotBytes));
  ibv_qp_init_attr attr{};
  attr.send_cq = send_cq_.get();
  attr.recv_cq = receive_cq_.get();
  attr.qp_type = IBV_QPT_UD;
  attr.cap.max_send_wr = 2;
  attr.cap.max_recv_wr = kReceives;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
  if (rdma_create_qp(id_.get(), pd_.get(), &attr) != 0) {
    return LastErrnoStatus("cannot make a queue pair for datagrams");
  }
  for (uint32_t slot = 0; slot < kReceives; ++slot) GANNET_RETURN_IF_ERROR(PostReceive(slot));
  return absl::OkStatus();
}

absl::Status MulticastMember::Enter(int64_t deadline_ns) {
  if (rdma_join_multicast(id_.get(), group_.get(), nullptr) != 0) {
    return LastErrnoStatus(absl::StrCat("cannot join multicast group ", group_.HostString()));
  }
  joined_ = true;
  GANNET_ASSIGN_OR_RETURN(rdma_ud_param group, Await(RDMA_CM_EVENT_MULTICAST_JOIN, deadline_ns));
  to_all_.reset(ibv_create_ah(pd_.get(), &group.ah_attr));
  if (to_all_ == nullptr) return LastErrnoStatus("cannot make the group's address handle");
  queue_pair_ = group.qp_num;
  queue_key_ = group.qkey;
  return absl::OkStatus();
}

absl::Status MulticastMember::PostReceive(uint32_t slot) {
  ibv_sge sge = buffer_.Sge(slot * kSlotBytes, kSlotBytes);
  ibv_recv_wr wr{.wr_id = slot, .next = nullptr, .sg_list = &sge, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  return ErrnoStatus(ibv_post_recv(id_->qp, &wr, &bad), "cannot post a receive for datagrams");
}

absl::Status MulticastMember::Send(std::span<const std::byte> datagram) {
  GANNET_CHECK(datagram.size() <= kDatagramBytesMax, "too long a datagram");
  const uint64_t at = kReceives * kSlotBytes;
  std::memcpy(buffer_.data() + at, datagram.data(), datagram.size());
  ibv_sge sge = buffer_.Sge(at, static_cast<uint32_t>(datagram.size()));
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.ud.ah = to_all_.get();
  wr.wr.ud.remote_qpn = queue_pair_;
  wr.wr.ud.remote_qkey = queue_key_;
  ibv_send_wr* bad = nullptr;
  GANNET_RETURN_IF_ERROR(ErrnoStatus(ibv_post_send(id_->qp, &wr, &bad), "cannot send a datagram"));
  const int64_t deadline_ns = MonotonicNs() + kSendNsMax;
  ibv_wc done{};
  while (ibv_poll_cq(send_cq_.get(), 1, &done) == 0) {
    if (MonotonicNs() > deadline_ns) {
      return absl::UnavailableError("the device does not send a datagram");
    }
  }
  if (done.status == IBV_WC_SUCCESS) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the device sends no datagrams: ", ibv_wc_status_str(done.status)));
}

absl::StatusOr<std::optional<std::span<const std::byte>>> MulticastMember::Receive(
    int64_t wait_ns) {
  if (lent_) GANNET_RETURN_IF_ERROR(PostReceive(*std::exchange(lent_, std::nullopt)));
  const int64_t deadline_ns = MonotonicNs() + wait_ns;
  while (true) {
    ibv_wc arrived{};
    if (ibv_poll_cq(receive_cq_.get(), 1, &arrived) == 0) {
      // Armed, then polled once more: what comes in between is seen.
      ibv_req_notify_cq(receive_cq_.get(), 0);
      if (ibv_poll_cq(receive_cq_.get(), 1, &arrived) == 0) {
        if (!AwaitReadable(arrivals_->fd, deadline_ns)) return std::nullopt;
        ibv_cq* cq = nullptr;
        void* context = nullptr;
        if (ibv_get_cq_event(arrivals_.get(), &cq, &context) == 0) ibv_ack_cq_events(cq, 1);
        continue;
      }
    }
    if (arrived.status != IBV_WC_SUCCESS) {
      return absl::UnavailableError(
          absl::StrCat("datagrams cannot be received: ", ibv_wc_status_str(arrived.status)));
    }
    const auto slot = static_cast<uint32_t>(arrived.wr_id);
    if (arrived.byte_len < kHeaderBytes) {
      GANNET_RETURN_IF_ERROR(PostReceive(slot));
      continue;
    }
    lent_ = slot;
    return std::span<const std::byte>(buffer_.data() + slot * kSlotBytes + kHeaderBytes,
                                      arrived.byte_len - kHeaderBytes);
  }
}

}  // namespace gannet
