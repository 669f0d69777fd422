#ifndef GANNET_SERVER_RPC_TIER_GETS_H_
#define GANNET_SERVER_RPC_TIER_GETS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/protocol/message.h"
#include "server/memory/store/write_outcome.h"
#include "server/memory/tier/tier_reads.h"
#include "server/rpc/replies.h"
#include "server/rpc/server_connection.h"
#include "server/rpc/worker_context.h"

namespace gannet {

class LongValues;

// GETs whose values are on the disk. Each finds its key's stub, begins or joins a read of the
// record, and is answered when that is done: by a WRITE out of the tier's memory into the client's
// buffer, in front of the reply.
//
//   Begin --> Look --> the read --> OnDone --> WRITE, reply --> Give: the value may be promoted
//              ^____________________| nothing can be read there, and the stub is another one now
//
// A GET that waits holds a place here and a credit of its session; no receive, buffer or lock. It
// also holds its number, and so the numbers that its session may use: if these are needed, and the
// disk takes long, its client is to ask again. Owner thread only.
class TierGets {
 public:
  // All outlive this. `long_values` may not exist yet.
  TierGets(WorkerContext& context, Replies& replies, LongValues& long_values)
      : context_(context), replies_(replies), long_values_(long_values) {}

  // Begins the GET of an admitted request whose buffer is long enough for what was there last.
  // REQUIRES: the server has a tier.
  void Begin(ServerConnection* connection, const RequestHeader& header, std::string_view key);
  // Begins to bring a key's value back into memory, for a write that needs it. Whether that
  // succeeds is seen when the write comes again.
  void Bring(std::string_view key);
  // Answers those whose reads are done. Call it when the tier has woken the worker.
  void TakeDone();
  // The WRITE of this GET's value completed, or never will.
  void Give(uint32_t number);
  // Ends the waits that are long and keep their sessions from using numbers. Call it by the
  // worker's timers. Returns when to call it again.
  BootTime EndLongWaits();

  // How many wait, or have a value on its way.
  size_t busy() const { return gets_.size() - free_.size(); }

 private:
  static constexpr size_t kGetsMax = 4096;  // that wait, or have a value on its way
  // So often a GET looks for its key, and then the client is to ask again.
  static constexpr uint32_t kLooksMax = 8;
  // So long a read takes only if the disk hangs, or far too many wait for it. Who asks again joins
  // the read, which is rarely done just between.
  static constexpr int64_t kLongWaitNs = 50 * kNsPerMs;

  struct Get {
    bool brings = false;      // there is no request: the value goes into memory
    uint32_t connection = 0;  // that waits; 0: none does
    RequestHeader header{};
    std::string key;
    BootTime began;
    uint32_t looks = 0;
    ReadOutcome found;       // last: a stub
    uint64_t read = 0;       // whose value is on its way to the client
    std::string_view value;  // that one, in the tier's memory
  };

  // Returns whether this GET's session will soon have no numbers because of it.
  static bool IsInTheWay(const ServerConnection& connection, const Get& get);
  // Returns how many GETs of the connection's session wait.
  uint32_t WaitingOf(const ServerConnection& connection) const;
  uint32_t Add(Get get);
  void Remove(uint32_t number);
  // Looks for the key, and begins to read its value. Answers if there is nothing to read.
  void Look(ServerConnection* connection, uint32_t number);
  // Puts a value that was read into memory, if there is room, and its stub is still there.
  void BringBack(const Get& get, std::string_view value) const;
  // Deletes the stub that led nowhere. Returns false if it is something else now: look again.
  bool DeleteStub(const Get& get) const;
  void OnDone(const TierReads::Done& done);
  // Posts the WRITE of a value and the reply behind it. Returns false if the connection cannot.
  bool SendValue(ServerConnection* connection, uint32_t number);
  // Ends the wait, and the request with it.
  void Answer(ServerConnection* connection, const Get& get, const ReplyHeader& reply);
  void End(ServerConnection* connection, uint32_t number, const ReplyHeader& reply);

  WorkerContext& context_;
  Replies& replies_;
  LongValues& long_values_;
  std::vector<Get> gets_;  // by their numbers, which are the tags of their reads
  std::vector<uint32_t> free_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_TIER_GETS_H_
