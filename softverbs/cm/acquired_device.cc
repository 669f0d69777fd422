#include "softverbs/cm/acquired_device.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "softverbs/base/export.h"
#include "softverbs/base/fork.h"
#include "softverbs/base/mutex.h"

namespace softverbs::cm {
namespace {

struct SharedDevice {
  Mutex mutex;
  ibv_context* context SV_GUARDED_BY(mutex) = nullptr;  // never closed, as with rdma-core
  ibv_pd* pd SV_GUARDED_BY(mutex) = nullptr;
  int users SV_GUARDED_BY(mutex) = 0;
  DeviceLimits limits SV_GUARDED_BY(mutex) = {};
};

std::atomic<SharedDevice*> the_device{nullptr};

SharedDevice& GetDevice() {
  static const bool created = [] {
    const auto renew = [] { the_device.store(new SharedDevice, std::memory_order_relaxed); };
    OnForkChild(renew);
    renew();  // relaxed: the guard of this static orders it before every caller's load
    return true;
  }();
  (void)created;
  return *the_device.load(std::memory_order_relaxed);
}

uint8_t ToLimit(int attribute) { return static_cast<uint8_t>(std::clamp(attribute, 0, 255)); }

// Returns 0 or an errno.
int Open(SharedDevice& device) SV_REQUIRES(device.mutex) {
  if (device.context != nullptr) return 0;
  ibv_device** list = ibv_get_device_list(nullptr);
  if (list == nullptr) return ENODEV;
  ibv_context* context = list[0] == nullptr ? nullptr : ibv_open_device(list[0]);
  ibv_free_device_list(list);
  if (context == nullptr) return errno;
  ibv_device_attr attributes = {};
  if (const int error = ibv_query_device(context, &attributes)) {
    ibv_close_device(context);
    return error;
  }
  device.limits = {.responder_resources = ToLimit(attributes.max_qp_rd_atom),
                   .initiator_depth = ToLimit(attributes.max_qp_init_rd_atom)};
  device.context = context;
  return 0;
}

}  // namespace

int AcquireDevice(AcquiredDevice* acquired) {
  SharedDevice& device = GetDevice();
  const LockGuard lock(device.mutex);
  if (const int error = Open(device)) return error;
  if (device.pd == nullptr) device.pd = ibv_alloc_pd(device.context);
  if (device.pd == nullptr) return errno;
  device.users++;
  *acquired = {device.context, device.pd, device.limits};
  return 0;
}

void ReleaseDevice() {
  SharedDevice& device = GetDevice();
  const LockGuard lock(device.mutex);
  if (--device.users > 0) return;
  // This fails while the application still has objects in the domain. Then the domain stays for the
  // next id.
  if (ibv_dealloc_pd(device.pd) == 0) device.pd = nullptr;
}

}  // namespace softverbs::cm

SOFTVERBS_EXPORT ibv_context** rdma_get_devices(int* num_devices) {
  softverbs::cm::SharedDevice& device = softverbs::cm::GetDevice();
  const softverbs::LockGuard lock(device.mutex);
  if (num_devices != nullptr) *num_devices = 0;
  if (const int error = softverbs::cm::Open(device)) {
    errno = error;
    return nullptr;
  }
  auto** list = static_cast<ibv_context**>(calloc(2, sizeof(ibv_context*)));
  if (list == nullptr) return nullptr;
  list[0] = device.context;
  if (num_devices != nullptr) *num_devices = 1;
  return list;
}

SOFTVERBS_EXPORT void rdma_free_devices(ibv_context** list) { free(list); }
