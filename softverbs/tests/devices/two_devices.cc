#include "softverbs/tests/devices/two_devices.h"

namespace softverbs {

Owned<ibv_context> OpenOfTwo(int number) {
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  EXPECT_EQ(count, 2);
  Owned<ibv_context> context(count == 2 ? ibv_open_device(list[number]) : nullptr);
  ibv_free_device_list(list);
  return context;
}

void ConnectEach(Side& one, Side& other, const ConnectOptions& options) {
  one.Connect(other.address(), options);
  other.Connect(one.address(), options);
}

}  // namespace softverbs
