#ifndef GANNET_SERVER_RPC_LOCK_REQUESTS_H_
#define GANNET_SERVER_RPC_LOCK_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>

#include "common/layout/lock_word.h"
#include "common/protocol/message.h"
#include "server/rpc/lock_words.h"
#include "server/rpc/replies.h"
#include "server/rpc/worker_context.h"

namespace gannet {

// Locks by RPC. kLock and kUnlock are for clients whose own NIC cannot compare-and-swap the
// server's lock words. The words and their rules stay the same; only the server swaps them.
// kExtendLock and forced unlocks are for all clients. Owner thread only.
class LockRequests {
 public:
  // All outlive this.
  LockRequests(WorkerContext& context, LockWords& words, Replies& replies)
      : context_(context), words_(words), replies_(replies) {}

  void Begin(ServerConnection* connection, const RequestView& request);
  // Returns the lock word of a key.
  uint64_t WordOf(std::string_view key) const { return words_.WordOf(key); }
  // Returns whether the request's lock word names a lock of its session, which was not lost with
  // its key's partition.
  bool MayWriteUnder(const ServerConnection& connection, const RequestView& request) const;
  // The session's client knows that locks by RPC outlive its first connection, and
  // that one is open.
  void KeepLocksOf(const Session* session) const;
  // Starts the requests that wait, as long as there is room.
  void Serve() {
    if (!waiting_.empty()) [[unlikely]]
      StartWaiting();
  }
  size_t waiting() const { return waiting_.size(); }

 private:
  static constexpr uint32_t kForcedTriesMax = 16;

  struct Waiting {
    uint32_t connection;
    RequestHeader header;
    size_t index;                      // of the lock word
    uint32_t partition = 0;            // of the key
    uint32_t tries = kForcedTriesMax;  // left, for a forced unlock
    bool gives_back = false;           // it got a lock whose partition is not served any more

    // Whether the word is to become the request's.
    bool takes() const {
      return header.opcode == static_cast<uint8_t>(Opcode::kLock) && !gives_back;
    }
  };

  // Returns whether the word's holder is the session's.
  bool Owns(const ServerConnection& connection, LockWord word) const;
  void StartWaiting();
  // These return false if no compare-and-swap can start now.
  bool Start(const Waiting& request);
  bool StartForcedUnlock(const Waiting& request);
  void OnDone(const Waiting& request, bool ok, uint64_t old);
  void OnForcedUnlockDone(Waiting request, uint64_t word, bool ok, uint64_t old);
  // Returns the answer if a swap failed.
  ReplyStatus StatusOfFailure(bool taking) const;
  bool IsServed(const Waiting& request) const;
  void GiveBack(Waiting request);
  void RefuseElsewhere(const Waiting& request);
  void AnswerForcedUnlock(const Waiting& request, ReplyStatus status, uint64_t word);

  WorkerContext& context_;
  LockWords& words_;
  Replies& replies_;
  std::deque<Waiting> waiting_;  // wait for a compare-and-swap
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_LOCK_REQUESTS_H_
