#ifndef GANNET_CLIENT_ENGINE_REQUEST_OPS_H_
#define GANNET_CLIENT_ENGINE_REQUEST_OPS_H_

#include "client/engine/lock_ops.h"
#include "client/engine/lookup_gets.h"
#include "client/engine/op_rerouting.h"
#include "client/engine/op_table.h"
#include "client/session/client_session.h"

namespace gannet {

// What goes by RPC: writes, Stats and Ping, GETs where READs do not suffice, locks where the NIC
// cannot take them. A request waits in its server's queue (Op::QueueRequest), is sent, and its
// operation goes on with the reply. One owner thread.
class RequestOps {
 public:
  // All of these outlive it.
  RequestOps(OpTable& ops, LookupGets& gets, LockOps& locks, OpRerouting& rerouting)
      : ops_(ops), gets_(gets), locks_(locks), rerouting_(rerouting) {}

  // Sends what waits for this server, as long as there is room: compare-and-swaps and the READs
  // behind them, then requests.
  void SendQueued(EngineServer& server);
  // See SessionOwner. Returns false if the operation was over before.
  bool OnReply(RequestWindow::Entry* answered, const ReplyView& reply);

 private:
  void SendGets(EngineServer& server);
  bool Send(EngineServer& server, Op& op);
  bool DropUnwanted(const OrderedWork& work);
  void OnAnswer(Op& op, RequestWindow::Entry* answered, const ReplyView& reply);
  void OnReplyForPeople(Op& op, const ReplyView& reply);
  void OnGetReply(Op& op, RequestWindow::Entry* answered, const ReplyView& reply);
  static bool TakeValue(Op& op, RequestWindow::Entry* answered, const ReplyView& reply);
  void ReadWhereTold(Op& op, const ReplyHeader& reply);
  void OnWriteReply(Op& op, const ReplyView& reply);
  void OnTouchReply(Op& op, const ReplyView& reply);
  void OnFlushReply(Op& op, const ReplyView& reply);
  void OnMapBehindFlush(Op& op, const ReplyView& reply);
  void OnLateReply(Op& op, const ReplyView& reply);

  OpTable& ops_;
  LookupGets& gets_;
  LockOps& locks_;
  OpRerouting& rerouting_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_REQUEST_OPS_H_
