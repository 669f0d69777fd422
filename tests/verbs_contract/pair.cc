#include "tests/verbs_contract/pair.h"

#include <netdb.h>
#include <poll.h>

#include <chrono>
#include <cstdlib>

namespace verbs_contract {
namespace {

using std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(5);

constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
constexpr size_t kBufferBytes = 64 << 10;

rdma_conn_param ConnectionParameters(const PairOptions& options) {
  rdma_conn_param param{};
  param.responder_resources = options.responder_resources;
  param.initiator_depth = options.initiator_depth;
  param.retry_count = options.retry_count;
  param.rnr_retry_count = options.rnr_retry_count;
  return param;
}

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

std::string TestAddress() {
  const char* address = std::getenv("VERBS_CONTRACT_ADDRESS");
  return address != nullptr ? address : "127.0.0.1";
}

bool HasAtomics(ibv_context* verbs) {
  ibv_device_attr attr{};
  EXPECT_EQ(ibv_query_device(verbs, &attr), 0);
  return attr.atomic_cap != IBV_ATOMIC_NONE;
}

bool IsIwarp(ibv_context* verbs) { return verbs->device->transport_type == IBV_TRANSPORT_IWARP; }

Buffer::Buffer(ibv_pd* pd, size_t bytes, int access) : bytes_(bytes) {
  mr_ = ibv_reg_mr(pd, bytes_.data(), bytes_.size(), access);
  EXPECT_NE(mr_, nullptr) << strerror(errno);
  if (mr_ != nullptr) lkey_ = mr_->lkey;
}

Buffer::~Buffer() { Deregister(); }

void Buffer::Deregister() {
  if (mr_ != nullptr) {
    EXPECT_EQ(ibv_dereg_mr(mr_), 0);
  }
  mr_ = nullptr;
}

uint64_t Buffer::Word(size_t offset) const {
  uint64_t word;
  std::memcpy(&word, bytes_.data() + offset, sizeof(word));
  return word;
}

rdma_cm_event* NextEvent(rdma_event_channel* channel) {
  pollfd waiting{channel->fd, POLLIN, 0};
  if (poll(&waiting, 1, 5000) != 1) {
    ADD_FAILURE() << "no rdma_cm event within 5 s";
    return nullptr;
  }
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(channel, &event), 0) << strerror(errno);
  return event;
}

int ExpectEvent(rdma_event_channel* channel, rdma_cm_event_type type) {
  rdma_cm_event* event = NextEvent(channel);
  if (event == nullptr) return -1;
  EXPECT_STREQ(rdma_event_str(event->event), rdma_event_str(type)) << "status " << event->status;
  const int status = event->status;
  rdma_ack_cm_event(event);
  return status;
}

void End::Equip(rdma_cm_id* cm_id, bool with_srq) {
  id = cm_id;
  pd = ibv_alloc_pd(id->verbs);
  ASSERT_NE(pd, nullptr);
  channel = ibv_create_comp_channel(id->verbs);
  ASSERT_NE(channel, nullptr);
  cq = ibv_create_cq(id->verbs, options.cq_entries, nullptr, channel, 0);
  ASSERT_NE(cq, nullptr);
  if (with_srq) {
    ibv_srq_init_attr srq_attr{};
    srq_attr.attr = {options.recv_wrs, 1, 0};
    srq = ibv_create_srq(pd, &srq_attr);
    ASSERT_NE(srq, nullptr);
  }
  ibv_qp_init_attr attr{};
  attr.send_cq = cq;
  attr.recv_cq = cq;
  attr.srq = srq;
  attr.cap = {options.send_wrs, with_srq ? 0 : options.recv_wrs, 2, 1, options.inline_bytes};
  attr.qp_type = IBV_QPT_RC;
  attr.sq_sig_all = options.signal_all;
  ASSERT_EQ(rdma_create_qp(id, pd, &attr), 0) << strerror(errno);
  buffer = std::make_unique<Buffer>(pd, kBufferBytes, kAllAccess);
}

End::~End() {
  if (id != nullptr && id->qp != nullptr) rdma_destroy_qp(id);
  buffer.reset();
  if (srq != nullptr) {
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
  }
  if (cq != nullptr) {
    EXPECT_EQ(ibv_destroy_cq(cq), 0);
  }
  if (channel != nullptr) {
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
  }
  if (pd != nullptr) {
    EXPECT_EQ(ibv_dealloc_pd(pd), 0);
  }
  if (id != nullptr) {
    EXPECT_EQ(rdma_destroy_id(id), 0);
  }
  if (events != nullptr) rdma_destroy_event_channel(events);
}

Pair::Pair(const PairOptions& options)
    : client_(std::make_unique<End>(options)), server_(std::make_unique<End>(options)) {
  listen_events_ = rdma_create_event_channel();
  rdma_cm_id* client_id = nullptr;
  client_->events = rdma_create_event_channel();
  if (rdma_create_id(listen_events_, &listener_, nullptr, RDMA_PS_TCP) != 0 ||
      rdma_create_id(client_->events, &client_id, nullptr, RDMA_PS_TCP) != 0) {
    std::perror("verbs_contract: no RDMA device to test");
    std::abort();  // without one no case means anything
  }

  addrinfo* found = nullptr;
  EXPECT_EQ(getaddrinfo(TestAddress().c_str(), nullptr, nullptr, &found), 0);
  EXPECT_EQ(rdma_bind_addr(listener_, found->ai_addr), 0) << strerror(errno);
  EXPECT_EQ(rdma_listen(listener_, 8), 0) << strerror(errno);
  EXPECT_EQ(rdma_resolve_addr(client_id, nullptr, rdma_get_local_addr(listener_), 2000), 0)
      << strerror(errno);
  freeaddrinfo(found);
  ExpectEvent(client_->events, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(rdma_resolve_route(client_id, 2000), 0);
  ExpectEvent(client_->events, RDMA_CM_EVENT_ROUTE_RESOLVED);
  // 4.096 us * 2^14 = 67 ms; the default is seconds.
  uint8_t ack_timeout = 14;
  EXPECT_EQ(rdma_set_option(client_id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout,
                            sizeof(ack_timeout)),
            0);
  client_->Equip(client_id, false);
  rdma_conn_param param = ConnectionParameters(options);
  EXPECT_EQ(rdma_connect(client_id, &param), 0) << strerror(errno);

  rdma_cm_event* request = NextEvent(listen_events_);
  EXPECT_EQ(request->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  server_->Equip(request->id, options.server_srq);
  rdma_ack_cm_event(request);
  EXPECT_EQ(rdma_accept(server_->id, &param), 0) << strerror(errno);
  ExpectEvent(client_->events, RDMA_CM_EVENT_ESTABLISHED);
  ExpectEvent(listen_events_, RDMA_CM_EVENT_ESTABLISHED);
  server_->events = rdma_create_event_channel();
  EXPECT_EQ(rdma_migrate_id(server_->id, server_->events), 0) << strerror(errno);
}

Pair::~Pair() {
  client_.reset();
  server_.reset();
  EXPECT_EQ(rdma_destroy_id(listener_), 0);
  rdma_destroy_event_channel(listen_events_);
}

ibv_wc NextCompletion(ibv_cq* cq) {
  const auto give_up = steady_clock::now() + kPatience;
  ibv_wc wc{};
  while (steady_clock::now() < give_up) {
    const int n = ibv_poll_cq(cq, 1, &wc);
    EXPECT_GE(n, 0);
    if (n == 1) return wc;
  }
  ADD_FAILURE() << "no completion within 5 s";
  wc.status = IBV_WC_GENERAL_ERR;
  return wc;
}

bool NoCompletion(ibv_cq* cq) {
  ibv_wc wc{};
  for (int i = 0; i < 20000; ++i) {
    if (ibv_poll_cq(cq, 1, &wc) != 0) return false;
  }
  return true;
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
  return ibv_post_send(end.qp(), &wr, &bad);
}

int PostReceive(End& end, ibv_sge sge, uint64_t id) {
  ibv_recv_wr wr{id, nullptr, &sge, 1};
  ibv_recv_wr* bad = nullptr;
  return end.srq != nullptr ? ibv_post_srq_recv(end.srq, &wr, &bad)
                            : ibv_post_recv(end.qp(), &wr, &bad);
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

}  // namespace verbs_contract
