#ifndef GANNET_SERVER_RPC_LOCK_RAIL_CHANGES_H_
#define GANNET_SERVER_RPC_LOCK_RAIL_CHANGES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "server/rpc/connection_closer.h"
#include "server/rpc/lock_words.h"
#include "server/rpc/worker_context.h"
#include "server/sessions/locks/lock_cas.h"
#include "server/sessions/locks/lock_service.h"

namespace gannet {

// What a worker does when the lock rail changes (docs/rails.md#locks): it gives up its swaps, and
// closes the connections of the dead device and those of the holders of locks, as their locks are
// lost. Later it swaps by another device.
//
// Owner thread only.
class LockRailChanges {
 public:
  // All outlive this.
  LockRailChanges(WorkerContext& context, LockWords& words, ConnectionCloser& closer)
      : context_(context), progress_(context.counters.lock_rail), words_(words), closer_(closer) {}

  void Take(LockService service);
  // Looks what has ended since. Call it whenever the control thread wakes the worker.
  void Look();
  // Notes whether the worker's swaps fail.
  void NoteSwaps();

 private:
  // Closes what names no lock rail any more.
  void End(const LockService& service);
  void Close(ServerConnection* connection);

  WorkerContext& context_;
  LockRailProgress& progress_;
  LockWords& words_;
  ConnectionCloser& closer_;
  std::vector<uint32_t> closing_;                   // ids of connections that are to go
  std::vector<std::unique_ptr<LockCas>> draining_;  // of dead devices
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_LOCK_RAIL_CHANGES_H_
