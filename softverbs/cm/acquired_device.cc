#include "softverbs/cm/acquired_device.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>

#include "softverbs/base/devices.h"
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

std::array<std::atomic<SharedDevice*>, kMaxDevices> the_devices{};

SharedDevice& GetDevice(int number) {
  static const bool created = [] {
    const auto renew = [] {
      for (auto& each : the_devices) each.store(new SharedDevice, std::memory_order_relaxed);
    };
    OnForkChild(renew);
    renew();  // relaxed: the guard of this static orders it before every caller's load
    return true;
  }();
  (void)created;
  return *the_devices[static_cast<size_t>(number)].load(std::memory_order_relaxed);
}

uint8_t ToLimit(int attribute) { return static_cast<uint8_t>(std::clamp(attribute, 0, 255)); }

// Returns 0 or an errno.
int Open(int number, SharedDevice& device) SV_REQUIRES(device.mutex) {
  if (device.context != nullptr) return 0;
  ibv_device** list = ibv_get_device_list(nullptr);
  if (list == nullptr) return ENODEV;
  ibv_context* context = list[number] == nullptr ? nullptr : ibv_open_device(list[number]);
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

int AcquireDevice(int number, AcquiredDevice* acquired) {
  SharedDevice& device = GetDevice(number);
  const LockGuard lock(device.mutex);
  if (const int error = Open(number, device)) return error;
  if (device.pd == nullptr) device.pd = ibv_alloc_pd(device.context);
  if (device.pd == nullptr) return errno;
  device.users++;
  *acquired = {device.context, device.pd, device.limits};
  return 0;
}

void ReleaseDevice(int number) {
  SharedDevice& device = GetDevice(number);
  const LockGuard lock(device.mutex);
  if (--device.users > 0) return;
  // This fails while the application still has objects in the domain. Then the domain stays for the
  // next id.
  if (ibv_dealloc_pd(device.pd) == 0) device.pd = nullptr;
}

}  // namespace softverbs::cm

SOFTVERBS_EXPORT ibv_context** rdma_get_devices(int* num_devices) {
  const int count = softverbs::DeviceCount();
  if (num_devices != nullptr) *num_devices = 0;
  auto** list = static_cast<ibv_context**>(calloc(size_t(count) + 1, sizeof(ibv_context*)));
  if (list == nullptr) return nullptr;
  for (int number = 0; number < count; ++number) {
    softverbs::cm::SharedDevice& device = softverbs::cm::GetDevice(number);
    const softverbs::LockGuard lock(device.mutex);
    if (const int error = softverbs::cm::Open(number, device)) {
      free(list);
      errno = error;
      return nullptr;
    }
    list[number] = device.context;
  }
  if (num_devices != nullptr) *num_devices = count;
  return list;
}

SOFTVERBS_EXPORT void rdma_free_devices(ibv_context** list) { free(list); }
