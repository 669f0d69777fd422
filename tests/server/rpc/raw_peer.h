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

// A raw client: connects with the bytes that it is given, sends the bytes that it is given, and
// checks nothing. Steps the server while it waits.
class RawPeer {
 public:
  struct Reply {
    ReplyHeader header;
    std::string value;
    ReplyStatus status() const { return static_cast<ReplyStatus>(header.status); }
  };

  explicit RawPeer(SteppedServer* driver);
  // Connects to another of the server's addresses, from this device.
  RawPeer(SteppedServer* driver, const Device& device, const SocketAddress& to);
  ~RawPeer();

  // Returns true if accepted; then grant() is the answer. Returns false if it was refused or
  // failed; see reject().
  bool Connect(std::span<const std::byte> private_data);
  bool Connect(const ConnectRequest& request) {
    return Connect(std::as_bytes(std::span(&request, 1)));
  }
  bool Connect() { return Connect(NewConnectRequest()); }
  // Joins `other`'s session with another queue pair, or with the same index again.
  bool Join(const RawPeer& other, uint16_t qp_index);

  const Grant& grant() const { return grant_; }
  // Returns nullopt if the server gave no reason.
  std::optional<Reject> reject() const { return reject_; }

  // Sends bytes as they are, without waiting. Returns false if the connection does not take them.
  bool Send(std::span<const std::byte> message);
  bool Send(const RequestHeader& header, std::string_view key = "", std::string_view value = "");
  // Returns the next reply, in order of arrival, or nullopt if the connection broke first.
  std::optional<Reply> Receive();
  // Returns the next reply if it is there.
  std::optional<Reply> TryReceive();
  std::optional<Reply> Call(const RequestHeader& header, std::string_view key = "",
                            std::string_view value = "");
  // Returns a header with the next sequence number.
  RequestHeader Header(Opcode opcode, uint8_t flags = 0);
  ReplyStatus Put(std::string_view key, std::string_view value);
  std::optional<std::string> Get(std::string_view key);

  // Waits until the server's device has taken everything that was sent, while the server itself
  // does nothing. Returns false if that did not happen within `for_ns`.
  bool WaitSent(int64_t for_ns = kStepNsMax);
  // Closes the connection while the server does nothing. Returns true once all that was sent has
  // completed.
  bool CloseAlone();
  // Takes completions.
  void Poll();
  // Sets how often the server's device may try to send to this peer. Call it before Connect.
  void AskForRetries(uint8_t rnr_retry_count) { rnr_retry_count_ = rnr_retry_count; }
  // Posts no receives from now on; if called before Connect, none at all.
  void PostNoMoreReceives() { receiving_ = false; }
  // Makes the server's device wait 655 ms before each try while this peer has no receive posted.
  // REQUIRES: connected.
  void TakeSlowly();

  // Steps until the connection is broken. Returns false if it does not break.
  bool WaitBroken();
  bool broken() const { return broken_; }
  // Stops doing anything, without telling anybody, like a stopped process.
  void FallSilent() { silent_ = true; }

  // Swaps a lock word by this peer's own device. Returns the previous word.
  std::optional<uint64_t> Cas(size_t lock_index, uint64_t expected, uint64_t desired);
  std::optional<uint64_t> CasAt(uint64_t address, uint32_t rkey, uint64_t expected,
                                uint64_t desired);
  // READs a word of the server, or WRITEs one. Return nullopt and false if that fails.
  std::optional<uint64_t> ReadAt(uint64_t address, uint32_t rkey);
  bool WriteAt(uint64_t address, uint32_t rkey, uint64_t word);
  // Does READ, WRITE, compare-and-swap or fetch-and-add of a word of the server. WRITEs and adds
  // `operand`, or swaps it in for what the word is. Returns the word that came, or was sent.
  std::optional<uint64_t> OnWord(ibv_wr_opcode opcode, uint64_t address, uint32_t rkey,
                                 uint64_t operand);
  // Sends a heartbeat that asks the server's device to make a key invalid. Returns when the device
  // took or refused it.
  void SendAndInvalidate(uint32_t rkey);

  // Memory that the server may READ and WRITE.
  RegisteredBuffer& lent() { return lent_; }
  uint64_t next_sequence = 1;

 private:
  void Prepare();
  // The word of sends_ that these work on.
  ibv_sge WordSge();
  // Posts, and waits until it is done. Returns the word then.
  std::optional<uint64_t> WordAfter(ibv_send_wr* request);
  void PostReceive(uint32_t slot);

  SteppedServer* const driver_;
  const Device device_;
  const SocketAddress to_;
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
