#ifndef GANNET_TESTS_SIMULATION_ROOM_H_
#define GANNET_TESTS_SIMULATION_ROOM_H_

#include "server/store/store.h"
#include "tests/simulation/run.h"

namespace gannet::simulation {

// At the end of a run, whatever its clients left in the store: it has room where it promises to.
// What the store is told of time goes on from `now_ms`.
//
// 1. A store full of items that are past their expiry refuses no write.
// 2. A full store refuses no write that replaces an item by one as long.
// 3. When 99 % of the items of a full store are gone, long ones find room in time.
void CheckRoom(Run* run, Store* store, uint64_t now_ms);

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_ROOM_H_
