#ifndef GANNET_SERVER_RPC_SILENCE_H_
#define GANNET_SERVER_RPC_SILENCE_H_

#include <cstdint>

#include "common/base/boot_time.h"
#include "server/rpc/connection_closer.h"
#include "server/rpc/worker_context.h"

namespace gannet {

// Closes the connections of one worker whose peers are silent, take no replies, or have a key that
// is valid no longer. Owner thread only.
class Silence {
 public:
  // Both outlive this.
  Silence(WorkerContext& context, ConnectionCloser& closer) : context_(context), closer_(closer) {}

  // Gives all peers `gap_ns` more time, because the worker was stalled for so long.
  void Forgive(int64_t gap_ns);
  void Check();
  // When Check, or a session's end, is due.
  BootTime Next() const;

 private:
  // Whether what it brought has been set aside for too long.
  bool WaitsTooLong(const ServerConnection& connection) const;
  // Closes a connection whose peer is alive, but takes no replies.
  void CheckTaking(ServerConnection* connection);

  WorkerContext& context_;
  ConnectionCloser& closer_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SILENCE_H_
