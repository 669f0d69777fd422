#include "softverbs/tests/cm/cm_fixture.h"

#include <arpa/inet.h>
#include <poll.h>

#include <cstring>

namespace softverbs::cm_test {

Endpoint::Endpoint(const std::string& host, uint16_t port) {
  auto* v4 = reinterpret_cast<sockaddr_in*>(&storage_);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage_);
  if (host.find(':') == std::string::npos) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &v4->sin_addr), 1) << host;
  } else {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    EXPECT_EQ(inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr), 1) << host;
  }
}

Channel MakeChannel() {
  Channel channel(rdma_create_event_channel());
  EXPECT_NE(channel, nullptr) << strerror(errno);
  return channel;
}

Id MakeId(const Channel& channel, void* context) {
  rdma_cm_id* id = nullptr;
  EXPECT_EQ(rdma_create_id(channel.get(), &id, context, RDMA_PS_TCP), 0) << strerror(errno);
  return Id(id);
}

bool Readable(const Channel& channel) {
  pollfd fd = {.fd = channel->fd, .events = POLLIN, .revents = 0};
  return poll(&fd, 1, 0) == 1;
}

Event Next(const Channel& channel) {
  pollfd fd = {.fd = channel->fd, .events = POLLIN, .revents = 0};
  if (poll(&fd, 1, kPatienceMs) != 1) {
    ADD_FAILURE() << "no event";
    return nullptr;
  }
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(channel.get(), &event), 0) << strerror(errno);
  return Event(event);
}

Event Expect(const Channel& channel, rdma_cm_event_type type) {
  Event event = Next(channel);
  if (event == nullptr) return event;
  EXPECT_EQ(event->event, type) << rdma_event_str(event->event) << ", not " << rdma_event_str(type)
                                << ", status " << event->status;
  return event;
}

Id Listen(const Channel& channel, const std::string& host, int backlog) {
  Id id = MakeId(channel);
  EXPECT_EQ(rdma_bind_addr(id.get(), Endpoint(host, 0).get()), 0) << strerror(errno);
  EXPECT_EQ(rdma_listen(id.get(), backlog), 0) << strerror(errno);
  return id;
}

uint16_t PortOf(const Id& id) { return ntohs(rdma_get_src_port(id.get())); }

Id Resolve(const Channel& channel, uint16_t port, const std::string& host) {
  Id id = MakeId(channel);
  EXPECT_EQ(rdma_resolve_addr(id.get(), nullptr, Endpoint(host, port).get(), 1000), 0)
      << strerror(errno);
  EXPECT_EQ(Expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED)->id, id.get());
  EXPECT_EQ(rdma_resolve_route(id.get(), 1000), 0) << strerror(errno);
  EXPECT_EQ(Expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED)->id, id.get());
  return id;
}

ibv_qp_init_attr QpAttributes() {
  ibv_qp_init_attr attr = {};
  attr.cap = {.max_send_wr = 4,
              .max_recv_wr = 4,
              .max_send_sge = 1,
              .max_recv_sge = 1,
              .max_inline_data = 0};
  attr.qp_type = IBV_QPT_RC;
  attr.sq_sig_all = 1;
  return attr;
}

rdma_conn_param Param(std::string_view data) {
  rdma_conn_param param = {};
  param.private_data = data.data();
  param.private_data_len = static_cast<uint8_t>(data.size());
  param.qp_num = 0x123456;
  return param;
}

std::string DataOf(const Event& event) {
  return std::string(static_cast<const char*>(event->param.conn.private_data),
                     event->param.conn.private_data_len);
}

std::string Padded(std::string_view data, size_t size) {
  std::string padded(data);
  padded.resize(size);
  return padded;
}

Id CmTest::Request(const Id& active, rdma_conn_param param) {
  EXPECT_EQ(rdma_connect(active.get(), &param), 0) << strerror(errno);
  const Event event = Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST);
  return Id(event == nullptr ? nullptr : event->id);
}

Id CmTest::Establish(Id* active) {
  *active = Resolve(client_, port_);
  Id passive = Request(*active);
  rdma_conn_param param = Param();
  EXPECT_EQ(rdma_accept(passive.get(), &param), 0) << strerror(errno);
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_CONNECT_RESPONSE)->id, active->get());
  EXPECT_EQ(rdma_establish(active->get()), 0) << strerror(errno);
  EXPECT_EQ(Expect(server_, RDMA_CM_EVENT_ESTABLISHED)->id, passive.get());
  return passive;
}

}  // namespace softverbs::cm_test
