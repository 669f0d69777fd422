// Which node a device is near, and moving the process there. A wish that cannot be fulfilled has a
// reason in words (WhyNot).

#include "server/main/control/numa.h"

#include <numa.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace gannet {
namespace {

struct FreeMask {
  void operator()(bitmask* mask) const { numa_bitmask_free(mask); }
};

class ThisMachine : public NumaMachine {
 public:
  std::vector<int> Nodes() const override {
    std::vector<int> nodes;
    if (numa_available() < 0) return nodes;  // a kernel without NUMA, or a container that hides it
    for (int node = 0; node <= numa_max_node(); ++node) {
      if (numa_node_size64(node, nullptr) > 0) nodes.push_back(node);
    }
    return nodes;
  }

  std::optional<int> NodeOf(const std::string& device) const override {
    std::ifstream file(absl::StrCat("/sys/class/infiniband/", device, "/device/numa_node"));
    int node = -1;
    if (!(file >> node) || node < 0) return std::nullopt;
    return node;
  }

  int CoresOf(int node) const override {
    const cpu_set_t cores = UsableCores(node);
    return CPU_COUNT(&cores);
  }

  uint64_t MemoryOf(int node) const override {
    return static_cast<uint64_t>(std::max(numa_node_size64(node, nullptr), 0ll));
  }

  absl::Status Bind(int node) override {
    const cpu_set_t cores = UsableCores(node);
    if (sched_setaffinity(0, sizeof(cores), &cores) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("cannot run on the cores of NUMA node ", node, ": ", std::strerror(errno)));
    }
    numa_set_preferred(node);
    return absl::OkStatus();
  }

 private:
  // Those of the node that this process may use: taskset or a container may have left fewer.
  static cpu_set_t UsableCores(int node) {
    cpu_set_t allowed;
    cpu_set_t usable;
    CPU_ZERO(&allowed);
    CPU_ZERO(&usable);
    const std::unique_ptr<bitmask, FreeMask> of_node(numa_allocate_cpumask());
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 ||
        numa_node_to_cpus(node, of_node.get()) != 0) {
      return usable;
    }
    for (unsigned core = 0; core < of_node->size && core < CPU_SETSIZE; ++core) {
      if (numa_bitmask_isbitset(of_node.get(), core) && CPU_ISSET(core, &allowed)) {
        CPU_SET(core, &usable);
      }
    }
    return usable;
  }
};

std::optional<int> NodeNamed(std::string_view flag) {
  int node = 0;
  if (!absl::SimpleAtoi(std::string(flag), &node) || node < 0) return std::nullopt;
  return node;
}

// Returns why the node cannot be used; empty: it can.
std::string WhyNot(int node, const NumaWish& wish, const NumaMachine& machine) {
  const std::vector<int> nodes = machine.Nodes();
  if (std::ranges::find(nodes, node) == nodes.end()) {
    return absl::StrCat("there is no NUMA node ", node, " with memory; there are ",
                        absl::StrJoin(nodes, ", "));
  }
  if (machine.CoresOf(node) == 0) {
    return absl::StrCat("this process may use no core of NUMA node ", node);
  }
  if (const uint64_t bytes = machine.MemoryOf(node); bytes < wish.memory_bytes) {
    return absl::StrCat("NUMA node ", node, " has ", bytes, " bytes, and --memory asks for ",
                        wish.memory_bytes);
  }
  return "";
}

}  // namespace

NumaMachine& NumaMachine::This() {
  static ThisMachine machine;
  return machine;
}

absl::Status CheckNumaFlag(std::string_view flag) {
  if (flag == "auto" || flag == "off" || NodeNamed(flag)) return absl::OkStatus();
  return absl::InvalidArgumentError("--numa must be auto, off or the number of a node");
}

absl::StatusOr<std::string> ChooseNumaNode(const NumaWish& wish, NumaMachine& machine) {
  GANNET_CHECK(CheckNumaFlag(wish.flag).ok(), "no value of --numa");
  constexpr char kAnywhere[] = "; threads and memory are wherever the system puts them";
  if (wish.flag == "off") return "NUMA is left to the system (--numa=off)";
  const std::optional<int> named = NodeNamed(wish.flag);
  if (!named && machine.Nodes().size() <= 1) {
    return "one NUMA node: all memory is equally near";
  }
  const std::optional<int> node = named ? named : machine.NodeOf(wish.device);
  if (!node) {
    return absl::StrCat("the NUMA node of ", wish.device, " is not known", kAnywhere);
  }
  const std::string why_not = WhyNot(*node, wish, machine);
  if (!why_not.empty() && named) return absl::FailedPreconditionError(why_not);
  if (!why_not.empty()) return absl::StrCat(why_not, kAnywhere);
  GANNET_RETURN_IF_ERROR(machine.Bind(*node));
  return absl::StrCat("NUMA node ", *node, named ? "" : absl::StrCat(", that of ", wish.device),
                      ": threads on its ", machine.CoresOf(*node), " cores, memory there");
}

}  // namespace gannet
