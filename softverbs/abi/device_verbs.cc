#include <endian.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "softverbs/abi/cq_verbs.h"
#include "softverbs/abi/pd_verbs.h"
#include "softverbs/abi/qp_verbs.h"
#include "softverbs/abi/query_verbs.h"
#include "softverbs/abi/srq_verbs.h"
#include "softverbs/abi/window_verbs.h"
#include "softverbs/base/devices.h"
#include "softverbs/base/export.h"
#include "softverbs/base/gid_table.h"
#include "softverbs/base/verbs_limits.h"
#include "softverbs/cq/cq.h"
#include "softverbs/fault/strict.h"
#include "softverbs/nic/context.h"
#include "softverbs/qp/post.h"
#include "softverbs/qp/srq.h"

#undef ibv_get_device_list

namespace softverbs {
namespace {

ibv_device MakeDevice(int number) {
  const std::string name = DeviceName(number);
  ibv_device device{};
  device.node_type = IBV_NODE_CA;
  device.transport_type = IBV_TRANSPORT_IB;
  strcpy(device.name, name.c_str());
  strcpy(device.dev_name, name.c_str());
  strcpy(device.dev_path, ("/sys/class/infiniband_verbs/" + name).c_str());
  strcpy(device.ibdev_path, ("/sys/class/infiniband/" + name).c_str());
  return device;
}

// Returns a device, which exists for ever: pointers to it stay valid after ibv_free_device_list.
ibv_device* Device(int number) {
  static std::array<ibv_device, kMaxDevices> devices = [] {
    std::array<ibv_device, kMaxDevices> made{};
    for (int each = 0; each < kMaxDevices; ++each) {
      made[static_cast<size_t>(each)] = MakeDevice(each);
    }
    return made;
  }();
  return &devices[static_cast<size_t>(number)];
}

int NumberOf(const ibv_device* device) { return static_cast<int>(device - Device(0)); }

void FillOperations(Context& context) {
  ibv_context_ops& ops = context.verbs.context.ops;
  ops.poll_cq = PollCq;
  ops.req_notify_cq = RequestNotify;
  ops.post_send = PostSend;
  ops.post_recv = PostReceive;
  ops.post_srq_recv = PostSrqReceive;
  ops.alloc_mw = AllocateWindow;
  ops.bind_mw = BindWindow;
  ops.dealloc_mw = FreeWindow;
  context.verbs.query_port = QueryPort;
  context.verbs.query_device_ex = QueryDeviceEx;
  context.verbs.query_rt_values = QueryRtValues;
  context.verbs.create_cq_ex = CreateCqEx;
  context.verbs.create_qp_ex = CreateQpEx;
  context.verbs.create_srq_ex = CreateSrqEx;
  context.verbs.get_srq_num = GetSrqNumber;
  context.verbs.alloc_td = AllocateThreadDomain;
  context.verbs.dealloc_td = FreeThreadDomain;
  context.verbs.alloc_parent_domain = AllocateParentDomain;
}

// Says on stderr, once, why the device cannot be opened: programs say at most that it is so. What
// SOFTVERBS_NET has to do with it was said where it was tried. Keeps errno.
void ExplainNoDevice() {
  static std::atomic<bool> said{false};
  const int error = errno;
  const bool has_proc = access("/proc/self/fd", X_OK) == 0;
  const bool has_descriptors = error != EMFILE && error != ENFILE;
  if ((!has_proc || !has_descriptors) && !said.exchange(true, std::memory_order_relaxed)) {
    fprintf(stderr, "softverbs[%d]: cannot open softverbs0: %s\n", getpid(),
            !has_proc
                ? "/proc is not mounted here, and softverbs needs it (mount -t proc proc /proc)"
                : "no file descriptor is left; raise the limit (ulimit -n)");
  }
  errno = error;
}

}  // namespace
}  // namespace softverbs

using softverbs::Context;

SOFTVERBS_EXPORT ibv_device** ibv_get_device_list(int* num_devices) {
  const int count = softverbs::DeviceCount();
  auto** list = static_cast<ibv_device**>(calloc(size_t(count) + 1, sizeof(ibv_device*)));
  if (list == nullptr) return nullptr;
  for (int each = 0; each < count; ++each) list[each] = softverbs::Device(each);
  if (num_devices != nullptr) *num_devices = count;
  return list;
}

SOFTVERBS_EXPORT void ibv_free_device_list(ibv_device** list) { free(list); }

SOFTVERBS_EXPORT const char* ibv_get_device_name(ibv_device* device) { return device->name; }

SOFTVERBS_EXPORT int ibv_get_device_index(ibv_device*) { return -1; }

SOFTVERBS_EXPORT __be64 ibv_get_device_guid(ibv_device* device) {
  return htobe64(softverbs::DeviceGuid(softverbs::NumberOf(device)));
}

SOFTVERBS_EXPORT ibv_context* ibv_open_device(ibv_device* device) {
  softverbs::Nic* nic = softverbs::Nic::Get();
  if (nic == nullptr) {
    softverbs::ExplainNoDevice();
    return nullptr;
  }
  softverbs::RefreshGids();
  auto* context = new Context;
  if (context->async_events.fd() < 0) {
    delete context;
    errno = EMFILE;
    softverbs::ExplainNoDevice();
    return nullptr;
  }
  context->nic = nic;
  context->device = softverbs::NumberOf(device);
  context->verbs.sz = sizeof(verbs_context);
  ibv_context& ibv = context->verbs.context;
  ibv.device = device;
  ibv.cmd_fd = -1;
  ibv.async_fd = context->async_events.fd();
  ibv.num_comp_vectors = softverbs::kCompVectors;
  ibv.abi_compat = __VERBS_ABI_IS_EXTENDED;
  pthread_mutex_init(&ibv.mutex, nullptr);
  softverbs::FillOperations(*context);
  nic->ports().Add(context);
  return &ibv;
}

SOFTVERBS_EXPORT int ibv_close_device(ibv_context* ibv) {
  if (softverbs::Inherited(ibv)) return 0;
  Context* context = Context::From(ibv);
  if (context->objects.load(std::memory_order_acquire) != 0) {
    // The kernel would destroy what is left. Here something may still refer to it, so it all stays.
    softverbs::fault::Misuse("ibv_close_device: %d objects were never destroyed",
                             context->objects.load(std::memory_order_relaxed));
    return 0;
  }
  context->nic->ports().Remove(context);
  pthread_mutex_destroy(&ibv->mutex);
  delete context;
  return 0;
}

SOFTVERBS_EXPORT int ibv_get_async_event(ibv_context* context, ibv_async_event* event) {
  const auto popped = Context::From(context)->async_events.Pop();
  if (!popped) return -1;
  *event = *popped;
  return 0;
}

namespace softverbs {
namespace {

template <class Object>
void CountAcknowledged(Object* object, uint32_t* completed) {
  pthread_mutex_lock(&object->mutex);
  ++*completed;
  pthread_cond_signal(&object->cond);
  pthread_mutex_unlock(&object->mutex);
}

}  // namespace
}  // namespace softverbs

SOFTVERBS_EXPORT void ibv_ack_async_event(ibv_async_event* event) {
  switch (event->event_type) {
    case IBV_EVENT_CQ_ERR:
      return softverbs::CountAcknowledged(event->element.cq,
                                          &event->element.cq->async_events_completed);
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return softverbs::CountAcknowledged(event->element.qp, &event->element.qp->events_completed);
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return softverbs::CountAcknowledged(event->element.srq,
                                          &event->element.srq->events_completed);
    default:
      return;
  }
}
