#ifndef SOFTVERBS_ABI_QUERY_VERBS_H_
#define SOFTVERBS_ABI_QUERY_VERBS_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>

namespace softverbs {

// What ibv_query_device says of a device of this process.
ibv_device_attr DeviceAttributes(int device);

// Members of verbs_context. Without a context, QueryPort says what a port is that is up.
int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attr, size_t attr_size);
int QueryDeviceEx(ibv_context* context, const ibv_query_device_ex_input* input,
                  ibv_device_attr_ex* attr, size_t attr_size);
int QueryRtValues(ibv_context* context, ibv_values_ex* values);

}  // namespace softverbs

#endif  // SOFTVERBS_ABI_QUERY_VERBS_H_
