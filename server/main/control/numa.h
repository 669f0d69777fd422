#ifndef GANNET_SERVER_MAIN_CONTROL_NUMA_H_
#define GANNET_SERVER_MAIN_CONTROL_NUMA_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gannet {

// What there is to know and to do about the machine's NUMA nodes. A node is some of the cores, the
// memory that is near them, and the devices that are. Tests have machines of their own.
class NumaMachine {
 public:
  virtual ~NumaMachine() = default;

  // The nodes that have memory. One or none: all memory is equally near.
  virtual std::vector<int> Nodes() const = 0;
  // The node that the RDMA device is attached to. nullopt: the system does not say, as of a device
  // made of software.
  virtual std::optional<int> NodeOf(const std::string& device) const = 0;
  // How many of the cores that this process may use are of the node.
  virtual int CoresOf(int node) const = 0;
  virtual uint64_t MemoryOf(int node) const = 0;
  // Has this thread, and those that it starts from now on, run on these cores, and take memory
  // there as long as there is some.
  virtual absl::Status Bind(int node) = 0;

  // The machine that this is; libnuma knows it.
  static NumaMachine& This();
};

struct NumaWish {
  std::string_view flag;  // --numa
  std::string device;     // that the server uses
  uint64_t memory_bytes;  // of the region
};

// Returns InvalidArgument unless this is a value of --numa: auto, off, or a node's number.
absl::Status CheckNumaFlag(std::string_view flag);

// Binds this thread and those that it starts to one node, as the flag asks:
//   auto  to the device's node, if that is known and has cores and memory enough
//   N     to node N
//   off   to none
// Returns a line that says what was done, and why. FailedPrecondition: node N cannot be used.
// REQUIRES: CheckNumaFlag returned OK.
absl::StatusOr<std::string> ChooseNumaNode(const NumaWish& wish, NumaMachine& machine);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_NUMA_H_
