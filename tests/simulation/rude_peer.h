#ifndef GANNET_TESTS_SIMULATION_RUDE_PEER_H_
#define GANNET_TESTS_SIMULATION_RUDE_PEER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/protocol/message.h"
#include "common/rdma/completion.h"
#include "common/rdma/connector.h"
#include "common/rdma/memory.h"
#include "tests/simulation/history.h"
#include "tests/simulation/run.h"

namespace gannet::simulation {

// A peer that breaks the protocol. Nobody else may suffer from it.
class RudePeer {
 public:
  enum class Kind : uint8_t {
    kTakesNoReplies,  // asks for values, posts no receives; may want the server to retry for ever
    kTakesFewReplies,
    kBesieges,  // asks for kShortKey and kLongKey, takes no reply, and sends heartbeats
    kSendsGarbage,
    kSilent,           // connects, and then sends nothing
    kAsksForNonsense,  // connects with invalid private data
    kUsesOthersLocks,  // writes under locks that others hold
    kPolite,           // sends the requests that it is told to, and takes its replies
    kCount,
  };
  // All outlive the peer.
  RudePeer(Kind kind, const std::string& endpoint, Run* run, const History* history);
  ~RudePeer();
  RudePeer(const RudePeer&) = delete;
  RudePeer& operator=(const RudePeer&) = delete;

  void Poll();
  bool established() const { return connector_->step() == Connector::Step::kEstablished; }
  bool refused() const { return connector_->step() == Connector::Step::kFailed; }
  // Returns true if its connection is broken.
  bool cut_off() const { return over_ || connector_->step() >= Connector::Step::kClosed; }

  // A besieger sends so many GETs of each of these keys. The short value fits a message, the long
  // one needs a buffer.
  static constexpr std::string_view kShortKey = "short", kLongKey = "long";
  static constexpr uint32_t kShortGets = 10, kLongGets = 3;
  // Returns true if all its requests were sent.
  bool sent_all() const { return sends_left_ == 0; }

  // REQUIRES: the kind is kPolite, established(), and the last answer has come.
  void Ask(Opcode opcode, std::string_view key);
  const std::optional<ReplyHeader>& answer() const { return answer_; }

 private:
  static constexpr uint8_t kRetriesMax = 6;
  static constexpr uint8_t kRetryForEver = 7;

  void Prepare();
  void PostReceives();
  void PostOneReceive(uint32_t slot);
  void OnReply(uint32_t slot);
  void Connect();
  void OnEstablished();
  void PollCompletions();
  void SendSomething();
  void SendHeartbeat();
  uint32_t Garbage(std::byte* out);
  uint32_t Request(std::byte* out);
  RequestHeader GetHeader(std::string_view key, bool into_buffer);
  uint32_t GetOfBesieger(std::byte* out);
  bool TakesReplies() const;
  bool MayWriteUnderLock();
  uint32_t WriteUnderLock(std::byte* out);
  void Send(const std::byte* message, uint32_t bytes);

  const Kind kind_;
  Run* const run_;
  const History* const history_;
  Handle<ibv_pd> pd_;
  std::unique_ptr<CompletionQueue> cq_;
  RegisteredBuffer sends_;
  RegisteredBuffer receives_;
  RegisteredBuffer lent_;
  std::unique_ptr<Connector> connector_;
  uint32_t receives_left_ = 0;
  uint32_t sends_left_ = 0;
  uint64_t sequence_ = 0;
  std::optional<ReplyHeader> answer_;
  std::pair<uint32_t, uint64_t> target_;  // key and lock word of another client
  uint8_t retries_ = kRetriesMax;         // the retries that it asks the server for
  bool slow_ = false;                     // its device asks for a long wait before each retry
  int64_t next_send_ns_ = 0;
  int64_t next_heartbeat_ns_ = 0;
  bool prepared_ = false;
  bool over_ = false;
  bool drained_ = false;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_RUDE_PEER_H_
