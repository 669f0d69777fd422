#ifndef GANNET_SERVER_RPC_REQUEST_ADMISSION_H_
#define GANNET_SERVER_RPC_REQUEST_ADMISSION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/protocol/message.h"
#include "server/group/replica/group_standing.h"
#include "server/rpc/connection_closer.h"
#include "server/rpc/elsewhere.h"
#include "server/rpc/held_replies.h"
#include "server/rpc/replies.h"
#include "server/rpc/worker_context.h"
#include "server/sessions/session/session.h"

namespace gannet {

// Whether a request is executed. Answers those that are not: of keys of other groups, writes of a
// session that may only read, writes that are put off or come behind such a one, and what was sent
// twice. Sets those aside that came before those before them.
//
// Owner thread only.
class RequestAdmission {
 public:
  // All outlive this. The parts may not exist yet.
  RequestAdmission(WorkerContext& context, ConnectionCloser& closer, HeldReplies& held_replies,
                   Replies& replies)
      : context_(context), closer_(closer), held_replies_(held_replies), replies_(replies) {}

  // Refuses what must not be executed, whatever it asks for, and counts it. Returns false if the
  // request is to be treated as any other. Nothing is decided of a request that comes too early:
  // that is asked again in its turn.
  bool IsRefused(ServerConnection* connection, const RequestView& request) {
    if (IsElsewhere(standing_, request.key) && RefuseElsewhere(connection, request)) return true;
    if (connection->ordinary || ComesTooEarly(*connection->session, request.header)) [[likely]]
      return false;
    return connection->session->read_only() ? RefuseWrite(connection, request)
                                            : PutOffBehind(connection, request);
  }
  // Returns whether a request is to be executed: its number has not come before. Otherwise it was
  // answered as it was then, or its connection is closed.
  bool Admit(ServerConnection* connection, const RequestView& request) {
    ReplyHeader recorded;
    const Session::Admission admission =
        connection->session->Admit(request.header.sequence, &recorded);
    if (admission == Session::Admission::kExecute) [[likely]]
      return true;
    return AdmitAgain(connection, request, admission, recorded);
  }
  // From now on all numbers of the session come (RailsAsk::kRailsInOrder).
  static void BeginOrder(Session* session) {
    if (session->aside == nullptr)
      session->aside = std::make_unique<RequestsAside>(session->credits());
  }
  // Puts off a write, and all later ones of its key in the session. Returns the answer, which tells
  // how many ms to wait; 0: that is not known.
  ReplyHeader PutOff(ServerConnection* connection, const RequestView& request, uint64_t wait_ms);

  // Answers a request that stands for one that was given up. The answer is remembered, so if the
  // other one comes yet, by a dead connection, it is not executed. REQUIRES: it is admitted.
  void AnswerGivenUp(ServerConnection* connection, const RequestHeader& header);
  // Admits a malformed request, whose number counts. Returns whether it is to be refused now.
  bool AdmitMalformed(ServerConnection* connection, const RequestHeader& header,
                      std::span<const std::byte> message);
  // Takes a request that was set aside, and whose number is the next one by now, or came meanwhile.
  // It is not among its connection's unanswered ones any more.
  struct SetAside {
    ServerConnection* connection;
    std::vector<std::byte> message;
  };
  std::optional<SetAside> TakeAside();

 private:
  bool RefuseElsewhere(ServerConnection* connection, const RequestView& request);
  bool RefuseWrite(ServerConnection* connection, const RequestView& request);
  // Puts off a write of a key of which an earlier one is put off. Returns false if it is none.
  bool PutOffBehind(ServerConnection* connection, const RequestView& request);
  // Puts off all later writes of the request's key in the session, over whichever connection they
  // come. Returns false if it writes none.
  bool PutOffLater(ServerConnection* connection, const RequestView& request);
  // Whether Admit will set it aside, or refuse its number.
  static bool ComesTooEarly(const Session& session, const RequestHeader& header) {
    return session.aside != nullptr && header.sequence > session.highest() + 1;
  }
  // Counts a request that is not executed, and admits it. Returns whether it is to be answered.
  bool AdmitRefused(ServerConnection* connection, const RequestView& request);
  // Handles a request that was not admitted: a duplicate, or a violation of the protocol. Returns
  // true if it must be executed after all.
  bool AdmitAgain(ServerConnection* connection, const RequestView& request,
                  Session::Admission admission, ReplyHeader recorded);
  void CloseExecutorOf(const ServerConnection* asking, uint64_t sequence);
  void KeepAside(ServerConnection* connection, uint64_t sequence,
                 std::span<const std::byte> message);
  // Returns false if no reply to this request is held.
  bool RedirectHeld(ServerConnection* connection, uint64_t sequence);

  WorkerContext& context_;
  ConnectionCloser& closer_;
  HeldReplies& held_replies_;
  Replies& replies_;
  const GroupStanding* const standing_ = context_.server.standing;
  std::vector<uint64_t> waiting_;  // tokens of sessions of which something was set aside
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_REQUEST_ADMISSION_H_
