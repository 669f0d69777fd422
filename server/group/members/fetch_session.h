#ifndef GANNET_SERVER_GROUP_MEMBERS_FETCH_SESSION_H_
#define GANNET_SERVER_GROUP_MEMBERS_FETCH_SESSION_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/auth/auth_file.h"
#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"
#include "common/lookup/index_view.h"
#include "common/protocol/connect.h"
#include "common/protocol/heartbeats.h"
#include "common/protocol/index_news.h"
#include "common/protocol/message.h"
#include "common/rdma/completion.h"
#include "common/rdma/connector.h"
#include "common/rdma/device.h"
#include "common/rdma/idler.h"
#include "common/rdma/memory.h"
#include "common/rdma/queue_pair.h"

namespace gannet {

// A session at another server that does nothing but READ its region. For that server it is a
// client's session. It has one connection, sends heartbeats, and learns by their answers of an
// index that grows. It does not connect again.
//
//   auto session = FetchSession::Begin(options, now);
//   session->Poll(now);              // until ready()
//   session->AddRead(...); session->Post();
//   session->Poll(now);              // then done() has the tags of the READs that are done
//
// Owner thread only. The destructor waits, for a bounded time, until the device has flushed what is
// in flight.
class FetchSession {
 public:
  static constexpr uint32_t kReadsMax = 64;  // in flight

  struct Options {
    Device device;
    ibv_pd* pd = nullptr;  // on this device
    SocketAddress server;
    AuthFile* keys = nullptr;  // outlives the session; nullptr: no key
    WallClock wall;            // by which a connection request must be fresh
    int64_t connect_timeout_ns = 10 * kNsPerSecond;
    Idler* idle = nullptr;  // while the destructor waits for the device
  };

  // The errors of Connector::Start, and ResourceExhausted.
  static absl::StatusOr<std::unique_ptr<FetchSession>> Begin(const Options& options, BootTime now);
  ~FetchSession();
  FetchSession(const FetchSession&) = delete;
  FetchSession& operator=(const FetchSession&) = delete;

  // Goes on with connecting, takes completions, and sends heartbeats.
  void Poll(BootTime now);
  bool ready() const { return connection().connected() && status_.ok(); }
  // Why it is over, if it is. Unavailable: the server refused, is silent, or closed the connection.
  const absl::Status& status() const { return status_; }

  // REQUIRES for all that follows, unless it says otherwise: the session was ready.
  const Grant& grant() const { return grant_; }
  // Changes within Poll.
  const IndexView& view() const { return view_; }
  // Asks the server for news of the index. Any number of calls send one heartbeat.
  void WantIndex() { index_wanted_ = true; }
  // Takes note that no READ is under way, nor will be posted, of an index older than this one. The
  // next heartbeat says so, and goes out at once if that is news.
  void Acknowledge(uint64_t generation) {
    unsaid_ |= acknowledged_ != static_cast<uint32_t>(generation);
    acknowledged_ = static_cast<uint32_t>(generation);
  }

  uint32_t room() const { return kReadsMax - in_flight_ - chained_; }
  uint32_t in_flight() const { return in_flight_; }
  // READs `bytes` of the region at `offset` into `to`. REQUIRES: room(). `to` stays until its tag
  // is done, or the session is destroyed.
  void AddRead(uint32_t tag, uint64_t offset, uint32_t bytes, std::byte* to, uint32_t lkey);
  // Posts what was added, with one doorbell.
  void Post();
  // The tags of the READs that the last Poll found done. READs may complete in any order.
  const std::vector<uint32_t>& done() const { return done_; }

  // For sleeping, in any state: Arm; Poll; if that completed() nothing, sleep until one of the
  // fds() is readable (-1: none) or until deadline().
  void Arm();
  bool completed() const { return completed_; }
  std::array<int, 2> fds() const {
    return {connector_->fd(), completions_ != nullptr ? completions_->fd() : -1};
  }
  BootTime deadline() const;

 private:
  enum class Work : uint8_t { kRead = 1, kSend, kReceive };
  static constexpr uint32_t kHeartbeats = kHeartbeatsUnansweredMax;
  // The server sends nothing but answers to heartbeats, and short notices.
  static constexpr uint32_t kReceives = 2 * kHeartbeats;
  static constexpr int64_t kControlNs = 10 * kNsPerMs;

  explicit FetchSession(const Options& options) : options_(options) {}
  void PollConnecting(BootTime now);
  absl::Status Configure();
  void OnEstablished(BootTime now);
  void OnConnectFailed();
  void PollCompletions(BootTime now);
  void OnCompletion(const ibv_wc& completion, BootTime now);
  void OnMessage(std::span<const std::byte> message);
  void PollControl(BootTime now);
  void SendHeartbeat(BootTime now);
  void Fail(absl::Status status);
  Connection& connection() const { return *connector_->connection(); }
  std::string server() const { return options_.server.ToString(); }
  int64_t silence_ns() const { return int64_t{grant_.silence_ms} * kNsPerMs; }
  BootTime HeartbeatDue() const { return sent_at_ + silence_ns() / kMessagesPerSilence; }
  bool MayAsk() const { return sent_ - answered_ < kHeartbeats && sends_in_flight_ < kHeartbeats; }

  const Options options_;
  std::optional<AuthKey> key_;
  ConnectRequest request_{};
  absl::Status status_;
  Grant grant_{};
  IndexView view_;

  // In the order in which they may be destroyed, the last one first.
  std::unique_ptr<CompletionQueue> completions_;
  RegisteredBuffer messages_;  // receives, then heartbeats
  std::unique_ptr<Connector> connector_;

  std::array<ibv_send_wr, kReadsMax> chain_{};
  std::array<ibv_sge, kReadsMax> sges_{};
  uint32_t chained_ = 0;
  uint32_t in_flight_ = 0;
  uint32_t sends_in_flight_ = 0;
  bool completed_ = false;  // something did in the last Poll
  std::vector<uint32_t> done_;

  // Heartbeats.
  uint32_t acknowledged_ = 0;
  uint32_t newest_ = 0;
  bool index_wanted_ = false;
  bool unsaid_ = false;  // what was acknowledged
  uint64_t sent_ = 0;
  uint64_t answered_ = 0;
  BootTime sent_at_;
  BootTime next_control_;
  // For how long the server was silent while this process looked: a process that stood still heard
  // nobody.
  int64_t silent_ns_ = 0;
  BootTime looked_at_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_FETCH_SESSION_H_
