#ifndef GANNET_TESTS_SIMULATION_RUDE_PEER_H_
#define GANNET_TESTS_SIMULATION_RUDE_PEER_H_

#include <cstdint>
#include <memory>
#include <string>

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
    kTakesNoReplies,  // asks for values and posts no receives, and lets the server try for ever
    kTakesFewReplies,
    kSendsGarbage,
    kSilent,           // connects, and says nothing any more
    kAsksForNonsense,  // connects with private data that is none
    kUsesOthersLocks,  // writes under locks that others hold
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

 private:
  void Prepare();
  void PostReceives();
  void PostOneReceive(uint32_t slot);
  void OnReply(uint32_t slot);
  void Connect();
  void PollCompletions();
  void SendSomething();
  void SendHeartbeat();
  uint32_t Garbage(std::byte* out);
  uint32_t Request(std::byte* out);
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
  uint64_t answers_ = 0;  // to writes
  int64_t next_write_ns_ = 0;
  int64_t next_heartbeat_ns_ = 0;
  bool prepared_ = false;
  bool over_ = false;
  bool drained_ = false;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_RUDE_PEER_H_
