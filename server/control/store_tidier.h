#ifndef GANNET_SERVER_CONTROL_STORE_TIDIER_H_
#define GANNET_SERVER_CONTROL_STORE_TIDIER_H_

#include <cstdint>
#include <functional>

#include "common/base/wake_up.h"
#include "server/changes/change_stream.h"
#include "server/control/full_log.h"
#include "server/control/server_workers.h"
#include "server/rpc/now.h"
#include "server/store/store.h"
#include "server/writes/writes.h"

namespace gannet {

// Does the idle work of a store, in steps: room, expired items, growth of the index. Tells workers
// of a new index, and the log how full the store is. One owner thread.
class StoreTidier {
 public:
  struct Dependencies {  // outlive it
    Store* store = nullptr;
    Writes* writes = nullptr;
    const ChangeStream* changes = nullptr;
    const ServerWorkers* workers = nullptr;
    WakeUp* wanted = nullptr;  // asked when a write wants a step
  };
  explicit StoreTidier(const Dependencies& given)
      : given_(given), index_generation_(given.store->index_generation()) {}

  // Does a step, if it is due or wanted.
  void Poll(const Now& now);
  int64_t due_ns() const { return due_ns_; }

 private:
  void Tidy(const Now& now);
  // Returns whether evictions still wait.
  bool PublishEvictions();
  void TellOfIndex();

  const Dependencies given_;
  uint64_t index_generation_;  // that the workers know
  int64_t due_ns_ = 0;
  FullLog full_log_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_CONTROL_STORE_TIDIER_H_
