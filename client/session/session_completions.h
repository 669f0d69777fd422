#ifndef GANNET_CLIENT_SESSION_SESSION_COMPLETIONS_H_
#define GANNET_CLIENT_SESSION_SESSION_COMPLETIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "client/session/client_connections.h"
#include "client/session/primary_lease_watch.h"
#include "client/session/session_heartbeats.h"
#include "client/session/session_memory.h"
#include "client/session/session_options.h"
#include "client/session/session_phase.h"
#include "client/session/session_reports.h"
#include "client/session/session_requests.h"
#include "client/session/watched_time.h"

namespace gannet {

// Takes a session's completions and gives each to whom it concerns. Completions that came after a
// primary's lease are held until a lease is there (primary_lease_watch.h). One owner thread.
class SessionCompletions {
 public:
  struct Dependencies {  // outlive this
    const SessionOptions* options;
    SessionPhase* phase;
    SessionReports* reports;
    const std::unique_ptr<SessionMemory>* memory;
    ClientConnections* connections;
    PrimaryLeaseWatch* lease;
    SessionRequests* requests;
    SessionHeartbeats* heartbeats;
    const WatchedTime* watched;
  };

  explicit SessionCompletions(const Dependencies& given) : given_(given) {}

  // Takes what is there, up to a limit, and posts receives again. May break the connections.
  // REQUIRES: ready.
  void Poll(int64_t now_ns);
  // Call it when the session begins by other terms, or uses another device.
  void LookAtTerms() { plain_ = !given_.lease->on() && (*given_.memory)->devices.size() == 1; }
  // Does so while the connections drain: answers that came in time count, everything else was
  // flushed. Returns the number of completions.
  size_t PollDraining(int64_t now_ns);

  // Of the last Poll: how many work requests completed, and whether it took all that was there.
  size_t completed() const { return completed_; }
  bool all_taken() const { return all_taken_; }

 private:
  template <bool kUnderLease>
  void Take(CompletionQueue& queue, int64_t now_ns);
  [[gnu::noinline]] void TakeOtherwise(int64_t now_ns);
  [[gnu::noinline]] void OnQueueBroken(const CompletionQueue& queue);
  [[gnu::noinline]] void TakeUnderLease(std::span<const ibv_wc> completions, int64_t now_ns);
  void TakeDrained(std::span<const ibv_wc> completions, int64_t now_ns);
  void Deliver(const std::vector<ibv_wc>& held, int64_t now_ns);
  static bool IsReply(const ibv_wc& completion);
  bool HeldUntilBelieved(const ibv_wc& completion) const;
  void OnCompletion(const ibv_wc& completion, int64_t now_ns);
  void OnSendCompletion(ClientConnection& connection, uint32_t position, const ibv_wc& completion);
  void OnReceiveCompletion(ClientConnection& connection, uint32_t receive, const ibv_wc& completion,
                           int64_t now_ns);
  void OnMessage(ClientConnection& connection, std::span<const std::byte> message, int64_t now_ns);
  void BreakBy(ClientConnection& connection, const ibv_wc& completion);

  const Dependencies given_;
  bool plain_ = false;  // there is no lease, and one device
  size_t completed_ = 0;
  bool all_taken_ = true;
  bool receives_used_ = false;  // some are to be posted again
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_COMPLETIONS_H_
