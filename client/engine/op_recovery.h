#ifndef GANNET_CLIENT_ENGINE_OP_RECOVERY_H_
#define GANNET_CLIENT_ENGINE_OP_RECOVERY_H_

#include <cstdint>
#include <span>

#include "absl/functional/function_ref.h"
#include "client/engine/op_fate.h"
#include "client/engine/op_rerouting.h"
#include "client/engine/op_table.h"
#include "client/engine/server_set.h"

namespace gannet {

// Tells operations what they lost: their deadline, their connection, the session that the server
// had of them, the store that they were meant for. FateOf decides what becomes of them. One owner
// thread.
class OpRecovery {
 public:
  // All of these outlive it.
  OpRecovery(OpTable& ops, ServerSet& servers, OpRerouting& rerouting)
      : ops_(ops), servers_(servers), rerouting_(rerouting) {}

  // The operation reached its deadline.
  void Expire(Op& op) { Suffer(op, Loss::kTime); }
  // The connections to a server are gone (SessionOwner::OnLost).
  void OnLost(EngineServer& server);
  // A server is connected (SessionOwner::OnReady). Calls start(Op&) for the operations that waited
  // for that.
  void OnReady(EngineServer& server, Comeback comeback, std::span<const uint32_t> abandoned,
               absl::FunctionRef<void(Op&)> start);
  // A server has another name than was assumed, so keys changed their servers. Ends the unsent
  // operations whose key is not their server's any more.
  void OnKeysMoved();

 private:
  void Suffer(Op& op, Loss loss);
  void LoseOp(Op& op, Loss loss);
  // The lock that an operation which is over has to release is lost.
  static void ForgiveDebt(Op& op);
  void AbandonOp(Op& op);

  OpTable& ops_;
  ServerSet& servers_;
  OpRerouting& rerouting_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_OP_RECOVERY_H_
