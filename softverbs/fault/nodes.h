#ifndef SOFTVERBS_FAULT_NODES_H_
#define SOFTVERBS_FAULT_NODES_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace softverbs::fault {

// The nodes of a simulated network: which one makes queue pairs now, and which directions between
// two are cut. Without a simulation everything is on node 0, and nothing is cut.
//
// One thread, the simulation's.
struct Nodes {
  static constexpr size_t kMax = 8;

  uint32_t present = 0;
  bool any_cut = false;
  std::array<std::array<bool, kMax>, kMax> cut{};  // from, to

  void Cut(uint32_t from, uint32_t to, bool is_cut) {
    cut[from][to] = is_cut;
    any_cut = false;
    for (const auto& row : cut) {
      for (const bool each : row) any_cut |= each;
    }
  }
};

inline constinit Nodes nodes;

}  // namespace softverbs::fault

#endif  // SOFTVERBS_FAULT_NODES_H_
