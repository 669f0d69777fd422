#ifndef GANNET_TESTS_SIMULATION_SEEDS_H_
#define GANNET_TESTS_SIMULATION_SEEDS_H_

#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>

#include "tests/simulation/checks.h"

namespace gannet::simulation {

// What the environment asks of a program that runs seeds.

inline uint64_t NumberFrom(const char* variable, uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given == nullptr ? otherwise : std::strtoull(given, nullptr, 10);
}

// Returns the checks that GANNET_SIMULATION_OFF names, separated by commas.
inline std::set<Check> ChecksThatAreOff() {
  std::set<Check> off;
  const char* given = std::getenv("GANNET_SIMULATION_OFF");
  if (given == nullptr) return off;
  const std::string names = "," + std::string(given) + ",";
  for (size_t i = 0; i < kCheckNames.size(); ++i) {
    if (names.find(std::string(",") + kCheckNames[i] + ",") != std::string::npos) {
      off.insert(static_cast<Check>(i));
    }
  }
  return off;
}

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_SEEDS_H_
