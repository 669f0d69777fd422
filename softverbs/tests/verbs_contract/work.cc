// Work requests, completions and events: the free functions of pair.h.
#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

using std::chrono::steady_clock;

ibv_send_wr OneSided(ibv_wr_opcode opcode, ibv_sge* sge, uint64_t address, uint32_t rkey,
                     uint64_t id) {
  ibv_send_wr wr{};
  wr.wr_id = id;
  wr.sg_list = sge;
  wr.num_sge = 1;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = address;
  wr.wr.rdma.rkey = rkey;
  return wr;
}

ibv_send_wr Atomic(ibv_wr_opcode opcode, ibv_sge* sge, uint64_t address, uint32_t rkey,
                   uint64_t compare_add, uint64_t swap, uint64_t id) {
  ibv_send_wr wr = OneSided(opcode, sge, 0, 0, id);
  wr.wr.atomic.remote_addr = address;
  wr.wr.atomic.rkey = rkey;
  wr.wr.atomic.compare_add = compare_add;
  wr.wr.atomic.swap = swap;
  return wr;
}

}  // namespace

bool Readable(int fd, int timeout_ms) {
  pollfd waiting{fd, POLLIN, 0};
  return poll(&waiting, 1, timeout_ms) == 1;
}

rdma_cm_event* NextEvent(rdma_event_channel* events) {
  if (!Readable(events->fd, kPatienceMs)) {
    ADD_FAILURE() << "no rdma_cm event within " << kPatienceMs << " ms";
    return nullptr;
  }
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(events, &event), 0) << strerror(errno);
  return event;
}

int ExpectEvent(rdma_event_channel* events, rdma_cm_event_type type) {
  rdma_cm_event* event = NextEvent(events);
  if (event == nullptr) return -1;
  EXPECT_STREQ(rdma_event_str(event->event), rdma_event_str(type)) << "status " << event->status;
  const int status = event->status;
  rdma_ack_cm_event(event);
  return status;
}

bool AwaitAsyncEvent(ibv_context* verbs, ibv_event_type type, ibv_async_event* event,
                     int patience_ms) {
  const auto give_up = steady_clock::now() + std::chrono::milliseconds(patience_ms);
  while (steady_clock::now() < give_up) {
    if (!Readable(verbs->async_fd, patience_ms)) continue;
    if (ibv_get_async_event(verbs, event) != 0) return false;
    if (event->event_type == type) return true;
    ibv_ack_async_event(event);
  }
  return false;
}

ibv_wc NextCompletion(ibv_cq* cq) {
  const auto give_up = steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
  ibv_wc wc{};
  while (steady_clock::now() < give_up) {
    const int n = ibv_poll_cq(cq, 1, &wc);
    EXPECT_GE(n, 0);
    if (n == 1) return wc;
    // A software NIC needs this core, and siw starves without it.
    std::this_thread::yield();
  }
  ADD_FAILURE() << "no completion within " << kPatienceMs << " ms";
  wc.status = IBV_WC_GENERAL_ERR;
  return wc;
}

// The time is bounded, too: on a busy machine each yield may take milliseconds, and the retries
// that a test counts on would be used up meanwhile.
bool PollForAWhile(ibv_cq* cq, ibv_wc* wc) {
  const auto give_up = steady_clock::now() + std::chrono::milliseconds(500);
  for (int i = 0; i < 20000; ++i) {
    if (ibv_poll_cq(cq, 1, wc) != 0) return true;
    if (i % 16 != 0) continue;
    std::this_thread::yield();
    if (steady_clock::now() > give_up) break;
  }
  return false;
}

bool NoCompletion(ibv_cq* cq) {
  ibv_wc wc{};
  return !PollForAWhile(cq, &wc);
}

ibv_send_wr Read(ibv_sge* sge, uint64_t address, uint32_t rkey, uint64_t id) {
  return OneSided(IBV_WR_RDMA_READ, sge, address, rkey, id);
}

ibv_send_wr Write(ibv_sge* sge, uint64_t address, uint32_t rkey, uint64_t id) {
  return OneSided(IBV_WR_RDMA_WRITE, sge, address, rkey, id);
}

ibv_send_wr Send(ibv_sge* sge, uint64_t id) { return OneSided(IBV_WR_SEND, sge, 0, 0, id); }

ibv_send_wr CompareAndSwap(ibv_sge* sge, uint64_t address, uint32_t rkey, uint64_t expected,
                           uint64_t desired, uint64_t id) {
  return Atomic(IBV_WR_ATOMIC_CMP_AND_SWP, sge, address, rkey, expected, desired, id);
}

ibv_send_wr FetchAndAdd(ibv_sge* sge, uint64_t address, uint32_t rkey, uint64_t add, uint64_t id) {
  return Atomic(IBV_WR_ATOMIC_FETCH_AND_ADD, sge, address, rkey, add, 0, id);
}

int Post(End& end, ibv_send_wr wr) {
  ibv_send_wr* bad = nullptr;
  return std::abs(ibv_post_send(end.qp(), &wr, &bad));
}

int PostReceive(End& end, ibv_sge sge, uint64_t id) {
  ibv_recv_wr wr{id, nullptr, &sge, 1};
  ibv_recv_wr* bad = nullptr;
  return std::abs(end.srq != nullptr ? ibv_post_srq_recv(end.srq, &wr, &bad)
                                     : ibv_post_recv(end.qp(), &wr, &bad));
}

ibv_wc Do(End& end, ibv_send_wr wr) {
  EXPECT_EQ(Post(end, wr), 0);
  return NextCompletion(end.cq);
}

ibv_qp_state StateOf(ibv_qp* qp) {
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  EXPECT_EQ(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
  return attr.qp_state;
}

void ExpectErrorState(End& end) {
  const ibv_qp_state state = StateOf(end.qp());
  if (state == IBV_QPS_RESET) return;  // it has been connected: the device does not tell
  EXPECT_EQ(state, IBV_QPS_ERR);
}

void ToState(ibv_qp* qp, ibv_qp_state state) {
  ibv_qp_attr attr{};
  attr.qp_state = state;
  EXPECT_EQ(std::abs(ibv_modify_qp(qp, &attr, IBV_QP_STATE)), 0);
}

void ExpectWaitsFor(const std::function<void()>& acknowledge,
                    const std::function<void()>& destroy) {
  std::atomic<bool> acknowledged{false};
  std::atomic<bool> early{false};
  std::thread destroyer([&] {
    destroy();
    // Sequentially consistent: if destroy returned before the store below, it did not wait for the
    // acknowledgement.
    early.store(!acknowledged.load());
  });
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();
  acknowledged.store(true);
  acknowledge();
  destroyer.join();
  EXPECT_FALSE(early.load());
}

}  // namespace verbs_contract
