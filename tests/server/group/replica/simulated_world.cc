#include "tests/server/group/replica/simulated_world.h"

#include "tests/server/group/replica/simulated_member.h"

namespace gannet {

SimulatedWorld::SimulatedWorld(uint64_t seed)
    : time(seed), min_copies(1 + static_cast<uint32_t>(seed % 2)) {}
SimulatedWorld::~SimulatedWorld() = default;

void SimulatedWorld::OnCommitted(uint64_t number, const std::string& key) {
  if (number < committed.size()) {
    if (committed[number] != key) Wrong("another record was committed there");
    return;
  }
  if (number > committed.size()) return Wrong("a record is missing before the one committed");
  if (number_of.contains(key)) return Wrong("a write is done twice");
  committed.push_back(key);
  number_of[key] = number;
  unanswered.erase(std::stoull(key) - 10'000'000);
}

void SimulatedWorld::OnApplied(const std::string& key, uint64_t lsn) {
  const uint64_t number = NumberOf(lsn);
  ++tallies.applied_records;
  if (number >= committed.size()) return Wrong("a backup applied what is not committed");
  if (committed[number] != key) Wrong("a backup applied another record");
}

}  // namespace gannet
