#ifndef GANNET_TESTS_CLIENT_ENGINE_PHASES_H_
#define GANNET_TESTS_CLIENT_ENGINE_PHASES_H_

#include <algorithm>
#include <array>
#include <vector>

#include "client/engine/op.h"

namespace gannet {

inline std::vector<OpPhase> AllPhases() {
  std::vector<OpPhase> all;
  for (size_t i = 0; i < kOpPhases; ++i) all.push_back(static_cast<OpPhase>(i));
  return all;
}

// Returns the shortest way from one phase to another that kOpTransitions allows, without the first
// phase. Empty: there is none, or the two are one.
inline std::vector<OpPhase> WayBetween(OpPhase from, OpPhase to) {
  std::vector<std::vector<OpPhase>> ways = {{}};
  std::vector<OpPhase> ends = {from};
  for (size_t i = 0; i < ends.size(); ++i) {
    if (ends[i] == to) return ways[i];
    for (const OpPhase next : AllPhases()) {
      if (!kOpTransitions.Allow(ends[i], next)) continue;
      if (std::find(ends.begin(), ends.end(), next) != ends.end()) continue;
      ends.push_back(next);
      ways.push_back(ways[i]);
      ways.back().push_back(next);
    }
  }
  return {};
}

// Leads an operation that is free to a phase.
inline void LeadTo(OpPhase phase, Op* op) {
  for (const OpPhase next : WayBetween(op->phase, phase)) op->phase.GoTo(next);
}

}  // namespace gannet

#endif  // GANNET_TESTS_CLIENT_ENGINE_PHASES_H_
