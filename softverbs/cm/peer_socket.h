#ifndef SOFTVERBS_CM_PEER_SOCKET_H_
#define SOFTVERBS_CM_PEER_SOCKET_H_

#include <infiniband/verbs.h>
#include <sys/types.h>

#include <memory>
#include <optional>
#include <vector>

#include "softverbs/base/mutex.h"
#include "softverbs/base/port_state.h"
#include "softverbs/base/unique_fd.h"
#include "softverbs/cm/state.h"
#include "softverbs/cm/wire.h"
#include "softverbs/nic/loop.h"

namespace softverbs::cm {

class PeerSocket;

// The receiver of what arrives on a socket. REQUIRES, for both: State::mutex held, on the loop
// thread, in the socket's own handler.
class PeerOwner {
 public:
  virtual void OnMessage(std::shared_ptr<PeerSocket> peer, const Message& message)
      SV_REQUIRES(state_mutex) = 0;
  // The peer's end is gone, or it sent an invalid message.
  virtual void OnEnd(const std::shared_ptr<PeerSocket>& peer) SV_REQUIRES(state_mutex) = 0;

 protected:
  ~PeerOwner() = default;
};

// One end of the socket that joins two ids. It stays open for the connection's life, so its end
// means that the peer's id or process is gone. The loop thread reads what arrives.
//
// While the port that the connection goes through is down, what is sent waits, what arrives is not
// read, and the peer does not see that this end closed, unless the process ends. What waited goes
// on when the port is back.
//
// Members are guarded by State::mutex. The loop's watch keeps the PeerSocket alive.
class PeerSocket : public std::enable_shared_from_this<PeerSocket> {
 public:
  explicit PeerSocket(UniqueFd fd) : fd_(std::move(fd)) {}
  // One end of a TCP connection to the host with this GID.
  PeerSocket(UniqueFd fd, const ibv_gid& host) : fd_(std::move(fd)), host_(host) {}

  // Names the port that the connection goes through. REQUIRES: mutex held; before Start, or
  // on the loop thread.
  void GoThrough(int port) { port_ = port; }
  // Begins to read. REQUIRES: mutex held; called once.
  void Start();
  // Returns false if the peer is gone. Never blocks, because a connection sends far less than a
  // socket buffers.
  bool Send(const Message& message);
  // Stops reading and closes the socket, if need be when the port is back, or after
  // kAnswerTimeoutNs. REQUIRES: mutex not held, unless on the loop thread in
  // this socket's own handler.
  void Close();

  // Returns the GID of the other host, or nothing if the peer is on this one.
  const std::optional<ibv_gid>& host() const { return host_; }
  // Returns the descriptor that came with the last message, or an invalid one.
  UniqueFd TakePassed() { return std::move(passed_); }

  // Returns whether the process at the other end runs as this process's user. Reports it if not.
  static bool PeerIsTrusted(int fd);

  // The receiver of what arrives: an id, or the listener until the request comes. Null: the socket
  // is being closed.
  PeerOwner* owner SV_GUARDED_BY(state_mutex) = nullptr;

 private:
  bool WaitsForPort() const { return port_ && IsPortDown(*port_); }
  bool SendNow(const Message& message);
  void SendWithPort() SV_REQUIRES(port_mutex_);
  void SendWaiting();
  // Returns whether reading stopped. It goes on when the port is back.
  bool StopAtPort();
  void Watch() SV_REQUIRES(port_mutex_);
  void CloseWithPort();
  void OnReadable();
  // Reads one message. Returns false if there is nothing (more) to read. A size of 0 means the end.
  bool Receive(Message* message, size_t* size);
  // Reads what there is, up to the end of one message. Returns what recv(2) does.
  ssize_t ReadRecord(Message* message);
  ssize_t ReadStream(Message* message);
  void End() SV_REQUIRES(state_mutex);

  UniqueFd fd_;
  const std::optional<ibv_gid> host_;
  std::optional<int> port_;
  // Guards what happens when the port is back. Taken behind State::mutex, which Close may not take.
  Mutex port_mutex_;
  std::vector<Message> waiting_ SV_GUARDED_BY(port_mutex_);
  Loop::Watch watch_ SV_GUARDED_BY(port_mutex_) = 0;
  bool is_closed_ SV_GUARDED_BY(port_mutex_) = false;
  // Loop thread only.
  UniqueFd passed_;
  Message partial_{};  // of a stream
  size_t partial_bytes_ = 0;
};

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_PEER_SOCKET_H_
