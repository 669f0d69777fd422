#ifndef GANNET_CLIENT_SESSION_SESSION_REQUESTS_H_
#define GANNET_CLIENT_SESSION_SESSION_REQUESTS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/session/client_connections.h"
#include "client/session/request_rails.h"
#include "client/session/request_watch.h"
#include "client/session/request_window.h"
#include "client/session/session_memory.h"
#include "client/session/session_reports.h"
#include "client/session/session_sends.h"
#include "client/session/watched_time.h"
#include "common/protocol/item_leases_reply.h"
#include "common/protocol/message.h"
#include "common/protocol/rails_reply.h"

namespace gannet {

// A session's requests, from their encoding to their answers, over any number of connections. One
// owner thread.
class SessionRequests {
 public:
  struct Dependencies {  // outlive this
    SessionReports* reports;
    const std::unique_ptr<SessionMemory>* memory;
    ClientConnections* connections;
    SessionSends* sends;
    const WatchedTime* watched;
  };

  explicit SessionRequests(const Dependencies& given) : given_(given) {}

  // A connection was made, and watched time begins anew.
  void Restart() {
    watch_.Restart(*given_.watched);
    by_rails_.Restart();
    lost_ = false;
    to_tell_.clear();
    map_position_.reset();
    asks_for_item_leases_ = false;
    asks_for_rails_.reset();
    in_order_ = false;
    item_leases_ = {};
    rails_.reset();
  }
  // The server knows the session: sends the unanswered requests again, by the first connection.
  // What they lend to the server is named by the keys of its device, which may be another one now.
  void Resend(int64_t now_ns);
  // The server does not know it. Adds the operations whose answers will never be known to
  // `abandoned`, and begins a session with so many credits.
  void BeginAnew(uint16_t credits, std::vector<uint32_t>* abandoned);

  // Returns whether the session is ready, and there is room and a credit for Send.
  bool CanSend() const { return given_.sends->CanSend() && window_.CanSend(); }
  // Numbers, encodes and sends a request, and returns its number. `entry` says who waits for the
  // answer, and what is lent to the server. REQUIRES: CanSend().
  uint64_t Send(RequestView request, RequestWindow::Entry entry, int64_t now_ns);
  // What the session itself asks, each once: see ClientSession for the map; where the server's
  // leases on items are; which rails it has. SendQuestions sends what there are credits for.
  void AskForMap(uint64_t position) { map_position_ = position; }
  void AskForItemLeases() { asks_for_item_leases_ = true; }
  void AskForRails(RailsAsk ask) {
    asks_for_rails_ = ask;
    in_order_ |= ask == RailsAsk::kRailsInOrder;
  }
  bool has_questions() const {
    return map_position_.has_value() || asks_for_item_leases_ || asks_for_rails_.has_value() ||
           lost_ || !to_tell_.empty();
  }
  // Sends what else there is to send: what another connection lost, too, and which requests were
  // given up.
  void SendQuestions(int64_t now_ns);
  // The server has told its rails: requests go by all of them from now on, until Restart, if it was
  // asked with RailsAsk::kRailsInOrder.
  void UseRails() {
    if (in_order_) by_rails_.Use();
  }
  // The connection broke, and is flushed: what it carried is to be sent again by others.
  void TakeLost(const ClientConnection& over);
  // Where the server's leases on items are, as it answered on this connection. No words: it has
  // none, or has not answered.
  const ItemLeasesReply& item_leases() const { return item_leases_; }
  // What the server answered of its rails since the last call; nullopt: nothing.
  std::optional<RailsReply> TakeRails() { return std::exchange(rails_, std::nullopt); }
  // From now on nobody waits for the answer to this request of `op`. Returns the request, or
  // nullptr if it was answered.
  // If several rails are used, the server will be told: those before it may be on a dead one.
  const RequestWindow::Entry* IgnoreAnswer(uint64_t sequence, uint32_t op);

  // Takes the answer to a request. Returns false if it is none: it is a heartbeat's, or the second
  // answer to a request that was sent twice.
  bool TakeAnswer(const ReplyView& reply);

  // Returns whether the server answers no requests. It answers heartbeats perhaps.
  bool Stuck(int64_t silence_ns) const {
    return watch_.Stuck(window_, *given_.watched, silence_ns);
  }
  bool empty() const { return window_.empty(); }
  uint32_t unanswered() const { return window_.unanswered(); }
  uint32_t RoomForGets() const { return window_.RoomForGets(); }

 private:
  void Add(RequestWindow::Entry& entry, int64_t now_ns);
  bool AddByRails(RequestWindow::Entry& entry, int64_t now_ns);
  RequestRails::Sent* SentOf(const RequestWindow::Entry& entry) {
    return by_rails_.Find(window_.IndexOf(entry.sequence), entry.sequence);
  }
  void TakeLost(RequestWindow::Entry& entry, RequestRails::Sent& sent, uint32_t over);
  void SendLost(int64_t now_ns);
  void TellGivenUp(int64_t now_ns);
  void TakeOtherAnswer(RequestWindow::Entry& entry, const ReplyView& reply);
  void EndUnwanted(RequestWindow::Entry& entry);
  void NameMemoryAnew(const RequestWindow::Entry& entry, uint32_t former, uint32_t domain) const;
  void SendQuestion(Opcode opcode, uint64_t word, uint32_t op, int64_t now_ns);

  const Dependencies given_;
  RequestWindow window_;
  RequestWatch watch_;
  RequestRails by_rails_{given_.connections};
  bool lost_ = false;              // some are to be sent again
  std::vector<uint64_t> to_tell_;  // numbers that were given up
  uint32_t domain_ = 0;            // whose keys the requests name, but for those in by_rails_
  std::optional<uint64_t> map_position_;  // to be asked for
  bool asks_for_item_leases_ = false;     // the same, of this
  std::optional<RailsAsk> asks_for_rails_;
  bool in_order_ = false;  // the server was told that no number is left out
  ItemLeasesReply item_leases_{};
  std::optional<RailsReply> rails_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_REQUESTS_H_
