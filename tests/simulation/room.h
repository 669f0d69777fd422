#ifndef GANNET_TESTS_SIMULATION_ROOM_H_
#define GANNET_TESTS_SIMULATION_ROOM_H_

#include "common/base/server_time.h"
#include "server/memory/store/store.h"
#include "server/writes/writes.h"
#include "tests/simulation/run.h"

namespace gannet::simulation {

// Checks at the end of a run that the store has room as it promises, whatever clients left in it.
// The store's time continues from `now`.
//
// 1. A store full of items that are past their expiry refuses no write.
// 2. A full store refuses no write that replaces an item by one as long, unless that is large.
// 3. When 99 % of the items of a full store are deleted, long ones soon find room.
void CheckRoom(Run* run, Store* store, Writes* writes, ServerTime now);

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_ROOM_H_
