#include "server/rpc/lock_rail_changes.h"

#include <utility>

#include "common/base/words.h"
#include "common/layout/lock_word.h"
#include "server/sessions/locks/closed_lock_cas.h"

namespace gannet {

void LockRailChanges::Take(LockService service) {
  const uint64_t number = service.number;
  if (service.place) {
    context_.cas = std::move(service.cas);
    words_.UseCas();
    context_.lock_place = service.place;
  } else {
    End(service);
  }
  progress_.known_.store(number, std::memory_order_release);
}

// Swaps that are in flight fail at once: their requests are answered, and take no lock of the next
// rail. The device may do them yet, in memory that has no other use.
void LockRailChanges::End(const LockService& service) {
  const uint32_t dead = context_.lock_place->rail;
  context_.lock_place.reset();
  draining_.push_back(std::exchange(context_.cas, std::make_unique<ClosedLockCas>()));
  words_.UseCas();
  draining_.back()->BeginDrain();
  closer_.BreakKeptLocks(BootTime::Never());
  for (const auto& [id, connection] : context_.connections) {
    if (context_.server.OneDevice(connection->rail, dead)) Close(connection.get());
  }
  // A holder of another rail has its lock by an answer of this worker. So its word is there.
  for (const uint64_t& word : service.lost) {
    const uint32_t holder = LockWord(LoadWord(&word)).connection_id();
    if (holder == 0) continue;
    if (ServerConnection* const it = context_.connections.FindHolder(holder)) Close(it);
  }
}

void LockRailChanges::Close(ServerConnection* connection) {
  connection->keeps_locks = false;
  closing_.push_back(connection->id);
  closer_.Close(connection, "the lock rail is dead, and all locks are lost");
}

void LockRailChanges::Look() {
  std::erase_if(closing_, [this](uint32_t id) { return context_.connections.Find(id) == nullptr; });
  std::erase_if(draining_, [](const auto& cas) { return cas->LookDrained(); });
  if (!closing_.empty()) return;
  progress_.gone_.store(progress_.known(), std::memory_order_release);
  if (draining_.empty()) progress_.obeyed_.store(progress_.known(), std::memory_order_release);
}

void LockRailChanges::NoteSwaps() {
  if (context_.cas->broken()) progress_.failed_.store(progress_.known(), std::memory_order_relaxed);
}

}  // namespace gannet
