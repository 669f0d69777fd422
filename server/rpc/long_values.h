#ifndef GANNET_SERVER_RPC_LONG_VALUES_H_
#define GANNET_SERVER_RPC_LONG_VALUES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>

#include "common/protocol/message.h"
#include "server/rpc/held_replies.h"
#include "server/rpc/lock_words.h"
#include "server/rpc/replies.h"
#include "server/rpc/worker_context.h"
#include "server/writes/writes.h"

namespace gannet {

class TierGets;

// Values too long for a message. READs those of PUTs out of the clients' memory, and WRITEs those
// of GETs into it. Owner thread only.
class LongValues {
 public:
  // All outlive this. GETs wait for a buffer of the context's `staging`, and PUTs that overwrite an
  // item in a full heap for one of `replacing`. So these bound how many run at once.
  LongValues(WorkerContext& context, Replies& replies, HeldReplies& held_replies,
             const LockWords& lock_words, TierGets& tier_gets)
      : context_(context),
        replies_(replies),
        held_replies_(held_replies),
        lock_words_(lock_words),
        tier_gets_(tier_gets) {}

  void BeginPut(ServerConnection* connection, const RequestView& request);
  void BeginGet(ServerConnection* connection, const RequestView& request);

  // Posts READs of the connection's values, as many as may be in flight.
  void PostReads(ServerConnection* connection);
  void OnRead(ServerConnection* connection, uint32_t bytes, bool ok);
  // The WRITE out of this buffer completed.
  void GiveStaging(ServerConnection* connection, uint32_t buffer) {
    staging_.Give(buffer);
    --connection->staging_buffers;
  }
  // Forgets the connection's PUTs and GETs that wait. What is under way goes on.
  void DropWaiting(ServerConnection* connection);

  // Serves one GET of each connection, in turn, and the PUTs that may go on.
  void Serve() {
    if (!get_turns_.empty()) [[unlikely]]
      ServeGets();
    if (puts_wait()) [[unlikely]]
      ServePuts();
  }
  // Returns true if PUTs wait for a buffer, or for the disk.
  bool puts_wait() const { return !replacing_waits_.empty(); }
  // Continues PUTs that waited for a buffer, or for the disk.
  void ServePuts();

  // How many buffers are taken, and how many PUTs and GETs wait.
  size_t busy() const {
    return context_.options.staging_buffers - staging_.available() +
           replacing_.taken(context_.options.replacing_buffers) + replacing_waits_.size() +
           gets_waiting_;
  }

 private:
  // Returns how long a PUT without conditions has to wait, as its item is leased to clients. Ends
  // the lease.
  uint64_t LeaseLeftMs(const RequestView& request) const;
  static constexpr size_t kGetsMax = 1024;  // that wait

  // Returns the PUT that is to be READ next, or nullptr if there is none now.
  LargePut* NextToRead(ServerConnection* connection);
  void PostPiece(ServerConnection* connection, LargePut* put);
  // Finds the memory for the value of a PUT.
  enum class Sink : uint8_t { kFound, kWait, kNone };
  Sink FindSink(ServerConnection* connection, LargePut* put);
  void GiveSink(const LargePut& put);
  // Lets this connection's PUTs go on later.
  void WaitForSink(const ServerConnection& connection);
  // Refuses what is decided only now, if another group has got the key meanwhile. It came before,
  // and was not refused then. Returns false if it is to be decided.
  bool RefuseElsewhere(ServerConnection* connection, const RequestHeader& header,
                       std::string_view key);
  bool RefuseMovedLock(ServerConnection* connection, const LargePut& put);
  Writes::Decided Commit(const ServerConnection& connection, const LargePut& put);
  void ServeGets();
  void ServeNextGet(ServerConnection* connection);
  // Returns true if the staging buffer is in use.
  bool ServeGet(ServerConnection* connection, const LargeGet& get, uint32_t staging);

  WorkerContext& context_;
  Replies& replies_;
  HeldReplies& held_replies_;
  const LockWords& lock_words_;
  TierGets& tier_gets_;
  BufferPool& staging_ = context_.staging;
  ReplacingBuffers& replacing_ = context_.replacing;
  std::deque<uint32_t> get_turns_;        // ids of connections with GETs that wait
  size_t gets_waiting_ = 0;               // of all connections
  std::deque<uint32_t> replacing_waits_;  // ids that wait for a buffer of replacing_, or the disk
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_LONG_VALUES_H_
