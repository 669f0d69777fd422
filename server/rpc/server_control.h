#ifndef GANNET_SERVER_RPC_SERVER_CONTROL_H_
#define GANNET_SERVER_RPC_SERVER_CONTROL_H_

#include <cstdint>

#include "common/protocol/message.h"
#include "common/protocol/storage.h"
#include "server/rpc/now.h"

namespace gannet {

// The server that a worker is in, as the worker sees it (server/main/control/server.h).
//
// Thread safety: any thread.
class ServerControl {
 public:
  // A write waits for the disk, or for a group's member: it is looked at soon.
  virtual void AskForSync() = 0;
  // Returns the statistics of the whole server.
  virtual StatsReply Stats(const Now& now) const = 0;
  // Says where the items are kept. If `snapshot`, asks for one first, and returns its number; 0 if
  // there is no directory to write it to.
  virtual uint64_t Storage(bool snapshot, StorageReply* reply) = 0;

 protected:
  ~ServerControl() = default;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SERVER_CONTROL_H_
