#ifndef SOFTVERBS_CM_LISTENING_SOCKET_H_
#define SOFTVERBS_CM_LISTENING_SOCKET_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_set>

#include "softverbs/base/unique_fd.h"
#include "softverbs/cm/peer_socket.h"
#include "softverbs/cm/wire.h"
#include "softverbs/nic/loop.h"

namespace softverbs::cm {

// The listening socket of an id, and the connections that have not sent their request yet.
// Members are guarded by State::mutex.
class ListeningSocket final : public PeerOwner,
                              public std::enable_shared_from_this<ListeningSocket> {
 public:
  // Called for each connection and its first message, with the mutex held, until Close.
  using RequestHandler = std::function<void(std::shared_ptr<PeerSocket>, const Message&)>;
  // A connection must begin with a message of the kind `awaited`. `backlog` bounds the requests
  // that the application has not fetched yet.
  ListeningSocket(MessageKind awaited, RequestHandler on_request, UniqueFd fd, int backlog)
      : awaited_(awaited),
        on_request_(std::move(on_request)),
        fd_(std::move(fd)),
        backlog_(backlog) {}

  // Returns 0 or an errno. REQUIRES: mutex held; called once.
  int Start() SV_REQUIRES(state_mutex);
  // Stops accepting, and closes the socket and the connections without request. When it returns,
  // the port is free. REQUIRES: mutex not held.
  void Close();

  // Takes one place of the backlog. Returns false if there is none.
  bool TakePlace() SV_REQUIRES(state_mutex);
  void GivePlaceBack() SV_REQUIRES(state_mutex) { backlog_++; }

  void OnMessage(std::shared_ptr<PeerSocket> peer, const Message& message)
      SV_REQUIRES(state_mutex) override;
  void OnEnd(const std::shared_ptr<PeerSocket>& peer) SV_REQUIRES(state_mutex) override;

 private:
  void OnReadable();
  void Adopt(UniqueFd fd) SV_REQUIRES(state_mutex);
  void AdoptPeer(std::shared_ptr<PeerSocket> peer) SV_REQUIRES(state_mutex);
  // Answers another host's connection, which another process of this host accepted.
  void AnswerRemote(UniqueFd fd);
  // Called when there are no descriptors left. Refuses one connection with the spare descriptor, or
  // else pauses.
  void RefuseOne() SV_REQUIRES(state_mutex);
  void Pause() SV_REQUIRES(state_mutex);

  const MessageKind awaited_;
  const RequestHandler on_request_;
  bool closed_ SV_GUARDED_BY(state_mutex) = false;
  UniqueFd fd_ SV_GUARDED_BY(state_mutex);
  int backlog_ SV_GUARDED_BY(state_mutex);
  Loop::Watch watch_ SV_GUARDED_BY(state_mutex) = 0;
  // So that a connection can be refused when there are no descriptors left.
  UniqueFd spare_ SV_GUARDED_BY(state_mutex);
  std::unordered_set<std::shared_ptr<PeerSocket>> silent_ SV_GUARDED_BY(state_mutex);
};

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_LISTENING_SOCKET_H_
