#ifndef SOFTVERBS_FAULT_PLAN_H_
#define SOFTVERBS_FAULT_PLAN_H_

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace softverbs::fault {

// What can go wrong on purpose. The names are those of the plan's grammar.
enum class Kind : uint8_t {
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
};
constexpr size_t kKinds = 11;
// Null past the last one.
const char* Name(Kind kind);

// A chance, and how long the fault lasts at most.
struct Chance {
  double chance = 0;
  int64_t ns = 0;
};

constexpr size_t kOpcodes = IBV_WR_ATOMIC_FETCH_AND_ADD + 1;

enum class Atomics : uint8_t { kGlobal, kNic, kNone };

// A fault plan: what SOFTVERBS_FAULTS says. Immutable once it is active.
struct Plan {
  uint64_t seed = 0;
  // By Kind; those by opcode and the count of kDropConnection are below.
  std::array<Chance, kKinds> chances{};
  uint64_t drop_connection_after = 0;  // requests of one connection; 0 = never
  std::array<Chance, kOpcodes> error{};
  std::array<ibv_wc_status, kOpcodes> error_status{};
  std::array<Chance, kOpcodes> lost_ack{};
  Atomics atomics = Atomics::kGlobal;
  bool strict = false;

  const Chance& operator[](Kind kind) const { return chances[static_cast<size_t>(kind)]; }
};

// Parses `text` (grammar: docs/softverbs.md). False with `*error` naming the part that is wrong and
// what is accepted there. Without a seed in the text the plan's stays as it is.
bool Parse(std::string_view text, Plan* plan, std::string* error);

}  // namespace softverbs::fault

#endif  // SOFTVERBS_FAULT_PLAN_H_
