#ifndef GANNET_SERVER_RPC_LOCK_WORDS_H_
#define GANNET_SERVER_RPC_LOCK_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>

#include "common/base/boot_time.h"
#include "common/base/words.h"
#include "common/layout/key_hash.h"
#include "common/protocol/list_entries.h"
#include "common/protocol/message.h"
#include "server/rpc/worker_context.h"
#include "server/sessions/locks/lock_cas.h"
#include "server/sessions/locks/lock_janitor.h"
#include "server/sessions/locks/lock_leases.h"

namespace gannet {

// The lock words, as one worker sees and changes them: their leases, the locks of dead connections,
// and the list of locks. The server's CPU only reads lock words here. The loads are relaxed: a word
// alone says who holds it, and every change compares it again. Owner thread only.
class LockWords {
 public:
  // The context outlives this.
  explicit LockWords(WorkerContext& context)
      : context_(context),
        janitor_(context.server.lock_words, &context.server.connection_ids, context.cas.get()) {}

  size_t IndexOf(const KeyHash& hash) const {
    return hash.LockIndex(context_.server.lock_words.size());
  }
  KeyHash HashOf(std::string_view key) const {
    return KeyHash::Of(key, context_.server.grant.hash_seed);
  }
  uint64_t WordAt(size_t index) const { return LoadWord(&context_.server.lock_words[index]); }
  uint64_t WordOf(std::string_view key) const { return WordAt(IndexOf(HashOf(key))); }
  LockCas& cas() { return *context_.cas; }
  // The context has another one: the lock rail changes.
  void UseCas() { janitor_.UseCas(context_.cas.get()); }
  // Returns whether no rail serves locks now.
  bool closed() const { return !context_.lock_place; }
  // Returns whether a swap that failed may be done by another rail, later.
  bool may_come_back() const { return context_.server.rails.size() > 1; }
  size_t in_flight() const { return context_.cas->in_flight(); }

  // Returns true if there is room for the lease that the request asks for, or it asks for none.
  bool HasRoomForLease(const RequestHeader& header, size_t index) const;
  // This worker decides by the map of this revision from now on. Remembers which locks are held
  // already.
  void NoteMap(uint64_t revision);
  uint64_t map_revision() const { return map_revision_; }
  // Returns whether the partition of a lock's key may have been another group's since the lock was
  // taken by `word`. Another client may have had the lock there, although the word is still here.
  bool HasMoved(uint32_t partition, size_t index, uint64_t word) const;

  // Gives the lock the lease that the request asks for. Returns false if the lock is being broken.
  bool SetLease(const RequestHeader& header, size_t index);
  ReplyHeader Extend(const RequestHeader& header, size_t index);
  // The lock was released or broken.
  void DropLease(const LockLeases::Lease& lease) { context_.server.leases.Drop(lease); }
  // Breaks locks whose lease is over.
  void BreakExpired();
  // When BreakExpired has work.
  BootTime next_expiry() const { return context_.server.leases.Next(context_.index); }

  // A connection is gone: break its locks.
  void OnConnectionGone() { janitor_.Hasten(context_.now.boot); }
  // Looks for locks of dead connections. Returns true if a pass is under way.
  bool PollJanitor() { return janitor_.Poll(context_.now.boot); }
  BootTime next_pass() const { return janitor_.next_pass(); }
  // Counts a lock that was broken by force.
  void CountBroken() { janitor_.CountBroken(); }
  uint64_t locks_broken() const { return janitor_.locks_broken(); }
  // Logs how many locks were broken, now and then.
  void TellBroken();

  // Fills `value_out` with LockEntries, from the request's position on.
  ReplyHeader List(const RequestHeader& header, std::span<std::byte> value_out) const;

 private:
  LockEntry EntryOf(size_t index, uint64_t word) const;

  // A lock that was held when this worker learned of a map.
  struct Held {
    uint64_t word;
    uint64_t map_revision;  // of the map before that one. It was taken by that map or an older one
  };

  WorkerContext& context_;
  LockJanitor janitor_;
  uint64_t map_revision_ = 0;
  std::unordered_map<size_t, Held> held_;  // by the word's index
  uint64_t broken_told_ = 0;               // locks_broken as last logged
  uint64_t expired_told_ = 0;              // locks_expired as last logged
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_LOCK_WORDS_H_
