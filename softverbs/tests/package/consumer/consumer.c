// Prints the name of the only device, if it takes a fault plan.
#include <infiniband/verbs.h>
#include <softverbs/control.h>
#include <stdio.h>

int main(void) {
  int count = 0;
  struct ibv_device** devices = ibv_get_device_list(&count);
  if (devices == NULL || count != 1 || softverbs_set_faults("seed=1,rnr=1/2", NULL, 0) != 0) {
    return 1;
  }
  puts(ibv_get_device_name(devices[0]));
  ibv_free_device_list(devices);
  return 0;
}
