// librdmacm for two instances: see two_hosts.h.
#include <map>
#include <mutex>
#include <utility>

#include "softverbs/tests/verbs_contract/two_hosts.h"

using verbs_contract::CurrentHost;
using verbs_contract::Host;
using verbs_contract::HostOf;

namespace {

// The channels of the server's host, and the events that wait for their acknowledgement. An id has
// its channel; an event may outlive its id.
std::mutex mutex;
std::map<const void*, Host> hosts;

void Note(const void* object, Host host) {
  const std::lock_guard guard(mutex);
  hosts[object] = host;
}

Host Forget(const void* object) {
  const std::lock_guard guard(mutex);
  const auto found = hosts.find(object);
  if (found == hosts.end()) return Host::kClients;
  const Host host = found->second;
  hosts.erase(found);
  return host;
}

}  // namespace

Host verbs_contract::HostOf(const rdma_event_channel* channel) {
  const std::lock_guard guard(mutex);
  const auto found = hosts.find(channel);
  return found == hosts.end() ? Host::kClients : found->second;
}

extern "C" {

rdma_event_channel* rdma_create_event_channel() {
  const Host host = CurrentHost();
  rdma_event_channel* channel = CALL_AT(host, rdma_create_event_channel);
  if (channel != nullptr) Note(channel, host);
  return channel;
}
void rdma_destroy_event_channel(rdma_event_channel* channel) {
  CALL_AT(Forget(channel), rdma_destroy_event_channel, channel);
}
int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  const Host host = HostOf(channel);
  const int result = CALL_AT(host, rdma_get_cm_event, channel, event);
  if (result == 0) Note(*event, host);
  return result;
}
int rdma_ack_cm_event(rdma_cm_event* event) {
  return CALL_AT(Forget(event), rdma_ack_cm_event, event);
}
const char* rdma_event_str(rdma_cm_event_type type) {
  return CALL_AT(CurrentHost(), rdma_event_str, type);
}
int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** id, void* context,
                   rdma_port_space space) {
  return CALL_AT(HostOf(channel), rdma_create_id, channel, id, context, space);
}

// A function on an id.
#define ON_ID(result, name, parameters, ...) \
  result name parameters { return CALL_AT(HostOf(id->channel), name, __VA_ARGS__); }

ON_ID(int, rdma_destroy_id, (rdma_cm_id * id), id)
ON_ID(int, rdma_bind_addr, (rdma_cm_id * id, sockaddr* address), id, address)
ON_ID(int, rdma_resolve_addr, (rdma_cm_id * id, sockaddr* from, sockaddr* to, int timeout), id,
      from, to, timeout)
ON_ID(int, rdma_resolve_route, (rdma_cm_id * id, int timeout), id, timeout)
ON_ID(int, rdma_set_option, (rdma_cm_id * id, int level, int name, void* value, size_t size), id,
      level, name, value, size)
ON_ID(int, rdma_listen, (rdma_cm_id * id, int backlog), id, backlog)
ON_ID(int, rdma_connect, (rdma_cm_id * id, rdma_conn_param* parameters), id, parameters)
ON_ID(int, rdma_accept, (rdma_cm_id * id, rdma_conn_param* parameters), id, parameters)
ON_ID(int, rdma_reject, (rdma_cm_id * id, const void* data, uint8_t size), id, data, size)
ON_ID(int, rdma_disconnect, (rdma_cm_id * id), id)
ON_ID(int, rdma_migrate_id, (rdma_cm_id * id, rdma_event_channel* channel), id, channel)
ON_ID(int, rdma_create_qp, (rdma_cm_id * id, ibv_pd* pd, ibv_qp_init_attr* attr), id, pd, attr)
ON_ID(void, rdma_destroy_qp, (rdma_cm_id * id), id)
ON_ID(__be16, rdma_get_src_port, (rdma_cm_id * id), id)

}  // extern "C"
