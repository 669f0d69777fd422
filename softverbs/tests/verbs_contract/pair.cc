#include "softverbs/tests/verbs_contract/pair.h"

#include <utility>

namespace verbs_contract {
namespace {

constexpr size_t kBufferBytes = 64 << 10;

void Connect(End& client, Listener& listener, const PairOptions& options) {
  rdma_conn_param param = ConnectionParameters(options);
  EXPECT_EQ(rdma_connect(client.id, &param), 0) << strerror(errno);
  EXPECT_TRUE(Readable(listener.events->fd, kPatienceMs));
}

}  // namespace

rdma_conn_param ConnectionParameters(const PairOptions& options) {
  rdma_conn_param param{};
  param.responder_resources = options.responder_resources;
  param.initiator_depth = options.initiator_depth;
  param.retry_count = options.retry_count;
  param.rnr_retry_count = options.rnr_retry_count;
  return param;
}

Buffer::Buffer(ibv_pd* pd, size_t bytes, int access) : bytes_(bytes) {
  mr_ = ibv_reg_mr(pd, bytes_.data(), bytes_.size(), access);
  EXPECT_NE(mr_, nullptr) << strerror(errno);
  if (mr_ == nullptr) return;
  lkey_ = mr_->lkey;
  rkey_ = mr_->rkey;
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

EventChannel MakeEventChannel(Host host) {
  const AtHost at(host);
  rdma_event_channel* events = rdma_create_event_channel();
  EXPECT_NE(events, nullptr) << strerror(errno);
  return EventChannel(events, rdma_destroy_event_channel);
}

Resources::Resources(ibv_context* verbs, const PairOptions& options, bool with_srq) {
  pd = ibv_alloc_pd(verbs);
  EXPECT_NE(pd, nullptr) << strerror(errno);
  channel = ibv_create_comp_channel(verbs);
  EXPECT_NE(channel, nullptr) << strerror(errno);
  cq = ibv_create_cq(verbs, static_cast<int>(options.cq_entries), nullptr, channel, 0);
  EXPECT_NE(cq, nullptr) << strerror(errno);
  if (with_srq) {
    ibv_srq_init_attr srq_attr{};
    srq_attr.attr = {options.recv_wrs, 1, 0};
    srq = ibv_create_srq(pd, &srq_attr);
    EXPECT_NE(srq, nullptr) << strerror(errno);
  }
  const bool atomics = TheDevice().has_atomics();
  buffer = std::make_unique<Buffer>(pd, kBufferBytes,
                                    atomics ? kAllAccess : kAllAccess & ~IBV_ACCESS_REMOTE_ATOMIC);
}

Resources::~Resources() {
  buffer.reset();
  if (srq != nullptr) {
    EXPECT_EQ(ibv_destroy_srq(srq), 0);
  }
  EXPECT_EQ(ibv_destroy_cq(cq), 0);
  EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
  EXPECT_EQ(ibv_dealloc_pd(pd), 0);
}

End::End(rdma_cm_id* cm_id, EventChannel its_channel, const PairOptions& options, bool with_srq,
         std::shared_ptr<Resources> shared)
    : event_channel(std::move(its_channel)),
      events(event_channel.get()),
      id(cm_id),
      resources(shared != nullptr ? std::move(shared)
                                  : std::make_shared<Resources>(cm_id->verbs, options, with_srq)),
      pd(resources->pd),
      channel(resources->channel),
      cq(resources->cq),
      srq(resources->srq),
      buffer(resources->buffer.get()) {
  ibv_qp_init_attr attr{};
  attr.send_cq = cq;
  attr.recv_cq = cq;
  attr.srq = srq;
  attr.cap = {options.send_wrs, srq != nullptr ? 0 : options.recv_wrs, 2, 1, options.inline_bytes};
  attr.qp_type = IBV_QPT_RC;
  EXPECT_EQ(rdma_create_qp(id, pd, &attr), 0) << strerror(errno);
}

End::~End() {
  if (id->qp != nullptr) rdma_destroy_qp(id);
  EXPECT_EQ(rdma_destroy_id(id), 0);
}

void End::MigrateTo(EventChannel new_channel) {
  EXPECT_EQ(rdma_migrate_id(id, new_channel.get()), 0) << strerror(errno);
  event_channel = std::move(new_channel);
  events = event_channel.get();
}

Listener::Listener(int backlog) : events(MakeEventChannel(Host::kServers)) {
  EXPECT_EQ(rdma_create_id(events.get(), &id, nullptr, RDMA_PS_TCP), 0) << strerror(errno);
  sockaddr_storage address = TheDevice().address;
  EXPECT_EQ(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&address)), 0) << strerror(errno);
  EXPECT_EQ(rdma_listen(id, backlog), 0) << strerror(errno);
}

Listener::~Listener() { EXPECT_EQ(rdma_destroy_id(id), 0); }

rdma_cm_id* Resolve(rdma_event_channel* events, sockaddr* to) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(events, &id, nullptr, RDMA_PS_TCP), 0) << strerror(errno);
  EXPECT_EQ(rdma_resolve_addr(id, nullptr, to, kPatienceMs), 0) << strerror(errno);
  ExpectEvent(events, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(rdma_resolve_route(id, kPatienceMs), 0) << strerror(errno);
  ExpectEvent(events, RDMA_CM_EVENT_ROUTE_RESOLVED);
  // 4.096 us * 2^14 = 67 ms; the default is seconds. On a link between hosts softverbs waits that
  // long even if the peer lives, and a busy machine may not give it a core in time.
  uint8_t ack_timeout = TheDevice().over_tcp || TwoHosts() ? 17 : 14;
  EXPECT_EQ(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_ACK_TIMEOUT, &ack_timeout,
                            sizeof(ack_timeout)),
            0);
  return id;
}

Pair::Pair(const PairOptions& options)
    : Pair(options, std::make_shared<Listener>(), MakeEventChannel(),
           MakeEventChannel(Host::kServers), nullptr, nullptr) {}

Pair::Pair(const PairOptions& options, Pair& first)
    : Pair(options, first.listener_, first.client().event_channel, first.server().event_channel,
           first.client().resources, first.server().resources) {}

std::unique_ptr<Pair> Pair::ToServerOf(const PairOptions& options, Pair& first) {
  return std::unique_ptr<Pair>(new Pair(options, first.listener_, MakeEventChannel(),
                                        first.server().event_channel, nullptr,
                                        first.server().resources));
}

Pair::Pair(const PairOptions& options, std::shared_ptr<Listener> listener,
           EventChannel client_events, EventChannel server_events,
           std::shared_ptr<Resources> client_resources, std::shared_ptr<Resources> server_resources)
    : listener_(std::move(listener)) {
  rdma_cm_id* id = Resolve(client_events.get(), rdma_get_local_addr(listener_->id));
  client_ = std::make_unique<End>(id, client_events, options, false, std::move(client_resources));
  Connect(*client_, *listener_, options);

  rdma_cm_event* request = NextEvent(listener_->events.get());
  EXPECT_EQ(request->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  server_ = std::make_unique<End>(request->id, listener_->events, options, options.server_srq,
                                  std::move(server_resources));
  rdma_ack_cm_event(request);
  rdma_conn_param param = ConnectionParameters(options);
  EXPECT_EQ(rdma_accept(server_->id, &param), 0) << strerror(errno);
  ExpectEvent(client_->events, RDMA_CM_EVENT_ESTABLISHED);
  ExpectEvent(listener_->events.get(), RDMA_CM_EVENT_ESTABLISHED);
  server_->MigrateTo(std::move(server_events));
}

}  // namespace verbs_contract
