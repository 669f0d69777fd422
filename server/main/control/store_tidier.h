#ifndef GANNET_SERVER_MAIN_CONTROL_STORE_TIDIER_H_
#define GANNET_SERVER_MAIN_CONTROL_STORE_TIDIER_H_

#include <cstdint>

#include "common/base/boot_time.h"
#include "common/base/wake_up.h"
#include "server/log/changes/change_stream.h"
#include "server/main/control/full_log.h"
#include "server/main/control/server_workers.h"
#include "server/memory/store/store.h"
#include "server/rpc/now.h"
#include "server/writes/writes.h"

namespace gannet {

// Does the idle work of a store, in steps: room, expired items, growth of the index. Tells workers
// of a new index, and the log how full the store is. One owner thread.
class StoreTidier {
 public:
  // `wanted` is asked when a write wants a step. Both outlive it.
  StoreTidier(const ServerWorkers& workers, WakeUp* wanted)
      : workers_(workers),
        server_(workers.context()),
        wanted_(wanted),
        index_generation_(server_.store.index_generation()) {}

  // Does a step, if it is due or wanted.
  void Poll(const Now& now);
  BootTime due() const { return due_; }

 private:
  void Tidy(const Now& now);
  // Returns whether evictions still wait.
  bool PublishEvictions();
  void TellOfIndex();

  const ServerWorkers& workers_;
  ServerContext& server_;
  WakeUp* const wanted_;
  uint64_t index_generation_;  // that the workers know
  BootTime due_;
  FullLog full_log_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_STORE_TIDIER_H_
