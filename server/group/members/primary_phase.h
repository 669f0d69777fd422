#ifndef GANNET_SERVER_GROUP_MEMBERS_PRIMARY_PHASE_H_
#define GANNET_SERVER_GROUP_MEMBERS_PRIMARY_PHASE_H_

#include <cstdint>

namespace gannet {

// What a server is while it is primary of its group (docs/group.md):
//
//   opening --tail is committed--> applies --it may open-------> open <-----+
//                                                                 |         | the register does not
//                                        an operator, or a stop   v         | name the successor
//                                                             hands over    |
//                                        no lease is left that    |         |
//                                        is not short             v         |
//                                                             steps down ---+
//
// It is deposed from each of them, and that is the end.
enum class PrimaryPhase : uint8_t {
  kOpening,  // sends its tail to all who are in sync
  kApplies,  // applies the tail, and waits for its disk and for leases on items of a former primary
  kOpen,     // takes clients
  kHandsOver,  // takes clients, and tells them of short leases only
  kStepsDown,  // grants no lease and records nothing, as its successor is to be named
  kDeposed,    // somebody else is primary
};

constexpr bool MayFollow(PrimaryPhase from, PrimaryPhase to) {
  using enum PrimaryPhase;
  const bool deposed = to == kDeposed;
  switch (from) {
    case kOpening:
      return deposed || to == kApplies;
    case kApplies:
      return deposed || to == kOpen;
    case kOpen:
      return deposed || to == kHandsOver;
    case kHandsOver:
      return deposed || to == kStepsDown;
    case kStepsDown:
      return deposed || to == kOpen;
    case kDeposed:
      return false;
  }
  return false;
}

// Whether it has taken clients, and nobody has deposed it.
constexpr bool IsOpen(PrimaryPhase phase) {
  return phase >= PrimaryPhase::kOpen && phase <= PrimaryPhase::kStepsDown;
}
// Whether the stream may go on.
constexpr bool Records(PrimaryPhase phase) { return phase < PrimaryPhase::kStepsDown; }

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_PRIMARY_PHASE_H_
