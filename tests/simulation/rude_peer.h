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

// A peer that does not play by the rules, or knows none. Nobody else may suffer from it.
class RudePeer {
 public:
  enum class Kind : uint8_t {
    kTakesNoReplies,  // asks for values and posts no receives; some want the server to try for ever
    kTakesFewReplies,
    kBesieges,  // asks for kShortKey and kLongKey, takes no reply, and says that it lives
    kSendsGarbage,
    kSilent,           // connects, and says nothing any more
    kAsksForNonsense,  // connects with private data that is none
    kUsesOthersLocks,  // writes under locks that others hold
    kPolite,           // asks what it is told to, and takes its replies
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
  // Its connection is broken.
  bool cut_off() const { return over_ || connector_->step() >= Connector::Step::kClosed; }

  // What besiegers ask for, so often each: the value of the one comes in a message, that of the
  // other in a buffer.
  static constexpr std::string_view kShortKey = "short", kLongKey = "long";
  static constexpr uint32_t kShortGets = 10, kLongGets = 3;
  // All of it was sent.
  bool sent_all() const { return sends_left_ == 0; }

  // REQUIRES: kPolite, established, and the last answer has come.
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
  std::pair<uint32_t, uint64_t> target_;  // key and lock word of another
  uint8_t retries_ = kRetriesMax;         // that the server is asked for
  bool slow_ = false;                     // to say that it takes no more
  int64_t next_send_ns_ = 0;
  int64_t next_heartbeat_ns_ = 0;
  bool prepared_ = false;
  bool over_ = false;
  bool drained_ = false;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_RUDE_PEER_H_
