#ifndef SOFTVERBS_FAULT_PLAN_H_
#define SOFTVERBS_FAULT_PLAN_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace softverbs::fault {

// The kinds of faults. Their names are those of the plan's grammar.
enum class FaultKind : uint8_t {
  kTearRead,
  kDelayCompletion,
  kDelayPost,
  kStallPeer,
  kDropConnection,
  kReceiverNotReady,
  kError,
  kLostAck,
  kFailRegMr,
  kRefuseConnect,
  kSlowConnect,
  kPortDown,
  kDeviceDead,
};
constexpr size_t kKinds = 13;
// Returns null past the last kind.
const char* Name(FaultKind kind);

// A fault's chance, and the longest time that it lasts.
struct Chance {
  double chance = 0;
  int64_t ns = 0;
};

constexpr size_t kOpcodes = IBV_WR_ATOMIC_FETCH_AND_ADD + 1;

// A port that goes down so long after the plan begins, and comes back so long after that (0:
// never).
struct PortFault {
  int number = 0;  // of a port, counted over all devices, or of a device
  int64_t after_ns = 0;
  int64_t for_ns = 0;
};

enum class Atomics : uint8_t { kGlobal, kNic, kNone };

// A fault plan, as SOFTVERBS_FAULTS describes it. Immutable once it is active.
struct Plan {
  uint64_t seed = 0;
  // By FaultKind. The chances by opcode, and the count of kDropConnection, are below.
  std::array<Chance, kKinds> chances{};
  uint64_t drop_connection_after = 0;  // requests of one connection; 0 = never
  std::array<Chance, kOpcodes> error{};
  std::array<ibv_wc_status, kOpcodes> error_status{};
  std::array<Chance, kOpcodes> lost_ack{};
  std::vector<PortFault> port_down;
  std::vector<PortFault> device_dead;  // for_ns is 0
  Atomics atomics = Atomics::kGlobal;
  bool strict = false;

  const Chance& operator[](FaultKind kind) const { return chances[static_cast<size_t>(kind)]; }
};

// Parses `text` (grammar: softverbs/DESIGN.md). On failure returns false, and `*error` names the
// wrong part and what is accepted there. If the text has no seed, the plan's seed stays as it is.
bool Parse(std::string_view text, Plan* plan, std::string* error);

}  // namespace softverbs::fault

#endif  // SOFTVERBS_FAULT_PLAN_H_
