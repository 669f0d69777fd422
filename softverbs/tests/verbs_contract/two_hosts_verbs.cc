// libibverbs for two instances: see two_hosts.h.
#include "softverbs/tests/verbs_contract/two_hosts.h"

// These names are macros of verbs.h, which the compiler expands for callers.
#undef ibv_get_device_list
#undef ibv_query_port
#undef ibv_reg_mr

using verbs_contract::CurrentHost;
using verbs_contract::Host;
using verbs_contract::HostOf;

namespace {

// The object of an event. Each kind begins with its context.
ibv_context* ContextOf(const ibv_async_event* event) { return event->element.qp->context; }

bool HasObject(const ibv_async_event* event) {
  switch (event->event_type) {
    case IBV_EVENT_DEVICE_FATAL:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
      return false;
    default:
      return true;
  }
}

}  // namespace

extern "C" {

ibv_device** ibv_get_device_list(int* count) {
  return CALL_AT(CurrentHost(), ibv_get_device_list, count);
}
void ibv_free_device_list(ibv_device** list) { CALL_AT(CurrentHost(), ibv_free_device_list, list); }
const char* ibv_get_device_name(ibv_device* device) {
  return CALL_AT(CurrentHost(), ibv_get_device_name, device);
}
const char* ibv_wc_status_str(ibv_wc_status status) {
  return CALL_AT(CurrentHost(), ibv_wc_status_str, status);
}
int ibv_fork_init() {
  const int at_servers = CALL_AT(Host::kServers, ibv_fork_init);
  return at_servers != 0 ? at_servers : CALL_AT(Host::kClients, ibv_fork_init);
}
ibv_context* ibv_open_device(ibv_device* device) {
  // A test opens a device once more by the pointer in a context. It is the one of that instance.
  return CALL_AT(verbs_contract::HostOfDevice(device), ibv_open_device, device);
}

// A function on an object, which has a context.
#define ON_CONTEXT(result, name, context, parameters, ...) \
  result name parameters { return CALL_AT(HostOf(context), name, __VA_ARGS__); }

ON_CONTEXT(int, ibv_close_device, c, (ibv_context * c), c)
ON_CONTEXT(int, ibv_query_device, c, (ibv_context * c, ibv_device_attr* attr), c, attr)
ON_CONTEXT(int, ibv_query_port, c, (ibv_context * c, uint8_t port, _compat_ibv_port_attr* attr), c,
           port, attr)
ON_CONTEXT(int, ibv_query_gid, c, (ibv_context * c, uint8_t port, int index, ibv_gid* gid), c, port,
           index, gid)
ON_CONTEXT(int, _ibv_query_gid_ex, c,
           (ibv_context * c, uint32_t port, uint32_t index, ibv_gid_entry* entry, uint32_t flags,
            size_t size),
           c, port, index, entry, flags, size)
ON_CONTEXT(ssize_t, _ibv_query_gid_table, c,
           (ibv_context * c, ibv_gid_entry* entries, size_t max, uint32_t flags, size_t size), c,
           entries, max, flags, size)
ON_CONTEXT(int, ibv_get_async_event, c, (ibv_context * c, ibv_async_event* event), c, event)
ON_CONTEXT(ibv_pd*, ibv_alloc_pd, c, (ibv_context * c), c)
ON_CONTEXT(int, ibv_dealloc_pd, pd->context, (ibv_pd * pd), pd)
ON_CONTEXT(ibv_mr*, ibv_reg_mr, pd->context, (ibv_pd * pd, void* at, size_t size, int access), pd,
           at, size, access)
ON_CONTEXT(ibv_mr*, ibv_reg_mr_iova2, pd->context,
           (ibv_pd * pd, void* at, size_t size, uint64_t iova, unsigned access), pd, at, size, iova,
           access)
ON_CONTEXT(int, ibv_rereg_mr, mr->context,
           (ibv_mr * mr, int flags, ibv_pd* pd, void* at, size_t size, int access), mr, flags, pd,
           at, size, access)
ON_CONTEXT(int, ibv_dereg_mr, mr->context, (ibv_mr * mr), mr)
ON_CONTEXT(ibv_comp_channel*, ibv_create_comp_channel, c, (ibv_context * c), c)
ON_CONTEXT(int, ibv_destroy_comp_channel, channel->context, (ibv_comp_channel * channel), channel)
ON_CONTEXT(ibv_cq*, ibv_create_cq, c,
           (ibv_context * c, int entries, void* context, ibv_comp_channel* channel, int vector), c,
           entries, context, channel, vector)
ON_CONTEXT(int, ibv_resize_cq, cq->context, (ibv_cq * cq, int entries), cq, entries)
ON_CONTEXT(int, ibv_destroy_cq, cq->context, (ibv_cq * cq), cq)
ON_CONTEXT(int, ibv_get_cq_event, channel->context,
           (ibv_comp_channel * channel, ibv_cq** cq, void** context), channel, cq, context)
ON_CONTEXT(void, ibv_ack_cq_events, cq->context, (ibv_cq * cq, unsigned count), cq, count)
ON_CONTEXT(ibv_srq*, ibv_create_srq, pd->context, (ibv_pd * pd, ibv_srq_init_attr* attr), pd, attr)
ON_CONTEXT(int, ibv_modify_srq, srq->context, (ibv_srq * srq, ibv_srq_attr* attr, int mask), srq,
           attr, mask)
ON_CONTEXT(int, ibv_query_srq, srq->context, (ibv_srq * srq, ibv_srq_attr* attr), srq, attr)
ON_CONTEXT(int, ibv_destroy_srq, srq->context, (ibv_srq * srq), srq)
ON_CONTEXT(ibv_qp*, ibv_create_qp, pd->context, (ibv_pd * pd, ibv_qp_init_attr* attr), pd, attr)
ON_CONTEXT(int, ibv_modify_qp, qp->context, (ibv_qp * qp, ibv_qp_attr* attr, int mask), qp, attr,
           mask)
ON_CONTEXT(int, ibv_query_qp, qp->context,
           (ibv_qp * qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init), qp, attr, mask, init)
ON_CONTEXT(int, ibv_destroy_qp, qp->context, (ibv_qp * qp), qp)

void ibv_ack_async_event(ibv_async_event* event) {
  const Host host = HasObject(event) ? HostOf(ContextOf(event)) : CurrentHost();
  CALL_AT(host, ibv_ack_async_event, event);
}

}  // extern "C"
