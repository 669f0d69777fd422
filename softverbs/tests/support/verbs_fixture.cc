#include "softverbs/tests/support/verbs_fixture.h"

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace softverbs {

int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Owned<ibv_context> OpenDevice() {
  ibv_device** list = ibv_get_device_list(nullptr);
  EXPECT_NE(list, nullptr);
  if (list == nullptr) return nullptr;
  EXPECT_STREQ(ibv_get_device_name(list[0]), "softverbs0");
  Owned<ibv_context> context(ibv_open_device(list[0]));
  ibv_free_device_list(list);
  return context;
}

TestMemory::TestMemory(MemoryKind kind, size_t size) : size_(size) {
  const bool mapped = kind == MemoryKind::kMapped;
  if (mapped) {
    fd_ = memfd_create("softverbs-test", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(fd_, static_cast<off_t>(size)), 0);
  }
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    mapped ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd_, 0);
  EXPECT_NE(data, MAP_FAILED);
  data_ = static_cast<uint8_t*>(data);
}

TestMemory::~TestMemory() {
  munmap(data_, size_);
  if (fd_ >= 0) close(fd_);
}

Side::Side(ibv_context* device, const SideOptions& options)
    : context(device),
      own_pd(options.pd == nullptr ? ibv_alloc_pd(device) : nullptr),
      pd(options.pd == nullptr ? own_pd.get() : options.pd),
      channel(options.with_channel ? ibv_create_comp_channel(device) : nullptr),
      cq(ibv_create_cq(device, options.cqe, nullptr, channel.get(), 0)),
      memory(options.kind, options.memory),
      mr(ibv_reg_mr(pd, memory.data(), memory.size(), static_cast<int>(options.access))) {
  ibv_qp_init_attr attr{};
  attr.send_cq = attr.recv_cq = cq.get();
  attr.srq = options.srq;
  attr.qp_type = options.type;
  attr.sq_sig_all = options.signal_all;
  attr.cap.max_send_wr = options.max_send_wr;
  attr.cap.max_recv_wr = options.max_recv_wr;
  attr.cap.max_send_sge = attr.cap.max_recv_sge = options.max_sge;
  attr.cap.max_inline_data = options.max_inline;
  qp.reset(ibv_create_qp(pd, &attr));
  EXPECT_NE(qp, nullptr);
  EXPECT_NE(mr, nullptr);
}

std::optional<uint8_t> FindGidIndex(ibv_context* context, bool ipv4) {
  constexpr uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  constexpr uint8_t kNone[16] = {};
  for (int index = 0; index <= UINT8_MAX; ++index) {
    ibv_gid gid;
    if (ibv_query_gid(context, 1, index, &gid) != 0) break;
    if (memcmp(gid.raw, kNone, sizeof(kNone)) == 0) continue;
    if ((memcmp(gid.raw, kMapped, sizeof(kMapped)) == 0) == ipv4) {
      return static_cast<uint8_t>(index);
    }
  }
  return std::nullopt;
}

Address Side::address() const {
  Address address{};
  address.qp_num = qp->qp_num;
  address.psn = qp->qp_num * 7 & 0xffffff;
  EXPECT_EQ(ibv_query_gid(context, 1, 0, &address.gid), 0);
  address.memory = memory.address();
  address.rkey = mr->rkey;
  return address;
}

namespace {

constexpr int kReliableRtr = IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kReliableRts =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;

}  // namespace

void Side::ToRtr(const Address& peer, const ConnectOptions& options) {
  const bool reliable = qp->qp_type == IBV_QPT_RC;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_INIT;
  attr.port_num = 1;
  attr.qp_access_flags = options.access;
  ASSERT_EQ(ibv_modify_qp(qp.get(), &attr,
                          IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
            0);
  attr = {};
  attr.qp_state = IBV_QPS_RTR;
  attr.path_mtu = IBV_MTU_4096;
  attr.dest_qp_num = peer.qp_num;
  attr.rq_psn = peer.psn;
  attr.max_dest_rd_atomic = options.max_dest_rd_atomic;
  attr.min_rnr_timer = options.min_rnr_timer;
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = 1;
  attr.ah_attr.grh.dgid = peer.gid;
  attr.ah_attr.grh.hop_limit = 1;
  ASSERT_EQ(ibv_modify_qp(qp.get(), &attr,
                          IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                              IBV_QP_RQ_PSN | (reliable ? kReliableRtr : 0)),
            0);
}

void Side::ToRts(const ConnectOptions& options) {
  const bool reliable = qp->qp_type == IBV_QPT_RC;
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_RTS;
  attr.timeout = options.timeout;
  attr.retry_cnt = options.retry_cnt;
  attr.rnr_retry = options.rnr_retry;
  attr.sq_psn = address().psn;
  attr.max_rd_atomic = options.max_rd_atomic;
  ASSERT_EQ(
      ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | (reliable ? kReliableRts : 0)),
      0);
}

void Side::Connect(const Address& peer, const ConnectOptions& options) {
  ToRtr(peer, options);
  ToRts(options);
}

void Side::ToError() {
  ibv_qp_attr attr{};
  attr.qp_state = IBV_QPS_ERR;
  ASSERT_EQ(ibv_modify_qp(qp.get(), &attr, IBV_QP_STATE), 0);
}

ibv_qp_state Side::State() const {
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  EXPECT_EQ(ibv_query_qp(qp.get(), &attr, IBV_QP_STATE, &init), 0);
  return attr.qp_state;
}

int Side::PostReceive(uint64_t wr_id, size_t offset, size_t length) {
  ibv_sge sge = Sge(offset, length);
  ibv_recv_wr wr{wr_id, nullptr, &sge, length > 0 ? 1 : 0};
  ibv_recv_wr* bad;
  return ibv_post_recv(qp.get(), &wr, &bad);
}

int Side::Post(ibv_send_wr wr, ibv_sge sge) {
  wr.sg_list = &sge;
  wr.num_sge = 1;
  ibv_send_wr* bad;
  return ibv_post_send(qp.get(), &wr, &bad);
}

int Side::PostSend(uint64_t wr_id, size_t offset, size_t length, unsigned flags) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.opcode = IBV_WR_SEND;
  wr.send_flags = flags;
  return Post(wr, Sge(offset, length));
}

namespace {

ibv_send_wr RdmaRequest(uint64_t wr_id, ibv_wr_opcode opcode, const Address& peer, size_t at) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = peer.memory + at;
  wr.wr.rdma.rkey = peer.rkey;
  return wr;
}

ibv_send_wr AtomicRequest(uint64_t wr_id, ibv_wr_opcode opcode, const Address& peer, size_t at,
                          uint64_t compare_add, uint64_t swap) {
  ibv_send_wr wr{};
  wr.wr_id = wr_id;
  wr.opcode = opcode;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.atomic.remote_addr = peer.memory + at;
  wr.wr.atomic.rkey = peer.rkey;
  wr.wr.atomic.compare_add = compare_add;
  wr.wr.atomic.swap = swap;
  return wr;
}

}  // namespace

int Side::Read(uint64_t wr_id, size_t offset, size_t length, const Address& peer, size_t at) {
  return Post(RdmaRequest(wr_id, IBV_WR_RDMA_READ, peer, at), Sge(offset, length));
}

int Side::Write(uint64_t wr_id, size_t offset, size_t length, const Address& peer, size_t at) {
  return Post(RdmaRequest(wr_id, IBV_WR_RDMA_WRITE, peer, at), Sge(offset, length));
}

int Side::CompareSwap(uint64_t wr_id, size_t offset, const Address& peer, size_t at,
                      uint64_t compare, uint64_t swap) {
  return Post(AtomicRequest(wr_id, IBV_WR_ATOMIC_CMP_AND_SWP, peer, at, compare, swap),
              Sge(offset, 8));
}

int Side::FetchAdd(uint64_t wr_id, size_t offset, const Address& peer, size_t at, uint64_t add) {
  return Post(AtomicRequest(wr_id, IBV_WR_ATOMIC_FETCH_AND_ADD, peer, at, add, 0), Sge(offset, 8));
}

ibv_wc NextCompletion(ibv_cq* cq) {
  ibv_wc wc{};
  const int64_t give_up = NowNs() + kTimeoutNs;
  int polled = 0;
  while ((polled = ibv_poll_cq(cq, 1, &wc)) == 0 && NowNs() < give_up) sched_yield();
  EXPECT_EQ(polled, 1) << "no completion";
  if (polled != 1) wc.status = IBV_WC_GENERAL_ERR;
  return wc;
}

ibv_wc Side::Next() { return NextCompletion(cq.get()); }

bool Side::Idle() {
  ibv_wc wc;
  return ibv_poll_cq(cq.get(), 1, &wc) == 0;
}

void Side::Fill(size_t offset, size_t length, uint8_t seed) {
  for (size_t i = 0; i < length; ++i) {
    memory.data()[offset + i] = static_cast<uint8_t>(seed + i * 31 + i / 251);
  }
}

bool Side::Matches(size_t offset, size_t length, uint8_t seed) const {
  for (size_t i = 0; i < length; ++i) {
    if (memory.data()[offset + i] != static_cast<uint8_t>(seed + i * 31 + i / 251)) return false;
  }
  return true;
}

bool HasEvent(ibv_context* context) {
  pollfd entry{context->async_fd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

ibv_async_event NextEvent(ibv_context* context) {
  ibv_async_event event{};
  pollfd entry{context->async_fd, POLLIN, 0};
  const int ready = poll(&entry, 1, static_cast<int>(kTimeoutNs / 1'000'000));
  EXPECT_EQ(ready, 1) << "no asynchronous event";
  if (ready == 1) {
    EXPECT_EQ(ibv_get_async_event(context, &event), 0);
    ibv_ack_async_event(&event);
  }
  return event;
}

Pair::Pair(ibv_context* context, const SideOptions& a_options, const SideOptions& b_options,
           const ConnectOptions& connect)
    : a(context, a_options), b(context, b_options) {
  a.ToRtr(b.address(), connect);
  b.ToRtr(a.address(), connect);
  a.ToRts(connect);
  b.ToRts(connect);
}

}  // namespace softverbs
