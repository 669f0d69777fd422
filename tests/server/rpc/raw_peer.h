#ifndef GANNET_TESTS_SERVER_RPC_RAW_PEER_H_
#define GANNET_TESTS_SERVER_RPC_RAW_PEER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/protocol/connect.h"
#include "common/protocol/message.h"
#include "common/rdma/completion.h"
#include "common/rdma/connector.h"
#include "common/rdma/memory.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {

// A client of bytes: connects with what it is told to, sends what it is told to, and checks
// nothing. Steps the server while it waits.
class RawPeer {
 public:
  struct Reply {
    ReplyHeader header;
    std::string value;
    ReplyStatus status() const { return static_cast<ReplyStatus>(header.status); }
  };

  explicit RawPeer(Driver* driver);
  ~RawPeer();

  // True: accepted, grant() is the answer. False: refused, or it failed; see reject().
  bool Connect(std::span<const std::byte> private_data);
  bool Connect(const ConnectRequest& request) {
    return Connect(std::as_bytes(std::span(&request, 1)));
  }
  bool Connect() { return Connect(NewConnectRequest()); }
  // Another queue pair of `other`'s session, or the same again.
  bool Join(const RawPeer& other, uint16_t qp_index);

  const Grant& grant() const { return grant_; }
  // nullopt: the server gave no reason.
  std::optional<Reject> reject() const { return reject_; }

  // Sends bytes as they are, without waiting for anything. False: the connection does not take
  // them.
  bool Send(std::span<const std::byte> message);
  bool Send(const RequestHeader& header, std::string_view key = "", std::string_view value = "");
  // The next reply, in the order of arrival; nullopt: the connection broke first.
  std::optional<Reply> Receive();
  // The next reply if it is there.
  std::optional<Reply> TryReceive();
  std::optional<Reply> Call(const RequestHeader& header, std::string_view key = "",
                            std::string_view value = "");
  // A header with the next sequence number.
  RequestHeader Header(Opcode opcode, uint8_t flags = 0);
  ReplyStatus Put(std::string_view key, std::string_view value);
  std::optional<std::string> Get(std::string_view key);

  // Until everything sent was taken by the server's device, while the server itself does nothing.
  // False: it was not within `for_ns`.
  bool WaitSent(int64_t for_ns = kStepNsMax);
  // Closes the connection while the server does nothing; true once all that was sent came back.
  bool CloseAlone();
  // Takes what has completed.
  void Poll();
  // Before Connect: how often the server's device may try to send to this peer.
  void AskForRetries(uint8_t rnr_retry_count) { rnr_retry_count_ = rnr_retry_count; }
  // From now on, or, before Connect, none at all.
  void PostNoMoreReceives() { receiving_ = false; }
  // While it has no receive posted, the server's device waits 655 ms before each try. REQUIRES:
  // connected.
  void TakeSlowly();

  // Steps until the connection is broken; false when it does not break.
  bool WaitBroken();
  bool broken() const { return broken_; }
  // Tells nobody, and does nothing any more: a process that was stopped.
  void FallSilent() { silent_ = true; }

  // Compare-and-swap of a lock word by this peer's own device: what the word was.
  std::optional<uint64_t> Cas(size_t lock_index, uint64_t expected, uint64_t desired);
  std::optional<uint64_t> CasAt(uint64_t address, uint32_t rkey, uint64_t expected,
                                uint64_t desired);

  // Memory that the server may READ and WRITE.
  RegisteredBuffer& lent() { return lent_; }
  uint64_t next_sequence = 1;

 private:
  void Prepare();
  void PostReceive(uint32_t slot);

  Driver* const driver_;
  Handle<ibv_pd> pd_;
  std::unique_ptr<CompletionQueue> cq_;
  RegisteredBuffer receives_;
  RegisteredBuffer sends_;
  RegisteredBuffer lent_;
  std::unique_ptr<Connector> connector_;
  Grant grant_{};
  std::optional<Reject> reject_;
  std::deque<Reply> replies_;
  uint8_t rnr_retry_count_ = kRnrRetryCount;
  uint32_t next_send_ = 0;
  uint32_t sends_in_flight_ = 0;
  bool cas_done_ = false;
  bool broken_ = false;
  bool silent_ = false;
  bool receiving_ = true;
  bool drained_ = false;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_RPC_RAW_PEER_H_
