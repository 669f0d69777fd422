// A lock by request is a compare-and-swap that takes a while, so its request waits until OnDone.
// If the partition was closed meanwhile, the lock is given back, and the client is told to look
// elsewhere.

#include "server/rpc/lock_requests.h"

#include "common/layout/key_hash.h"
#include "common/protocol/partition_map.h"
#include "server/rpc/dispatcher.h"
#include "server/rpc/elsewhere.h"

namespace gannet {

void LockRequests::Begin(ServerConnection* connection, const RequestView& request) {
  const RequestHeader& header = request.header;
  Replies::BeginLong(connection, header);
  const KeyHash hash = words_.HashOf(request.key);
  const size_t index = words_.IndexOf(hash);
  const LockWord word(header.lock.lock_word);
  const bool force = (header.flags & kForce) != 0;
  if (!force && word.key_tag() != hash.LockTag()) {
    return replies_.AnswerLong(connection, ReplyTo(header, ReplyStatus::kInvalidArgument));
  }
  const bool extend = header.opcode == static_cast<uint8_t>(Opcode::kExtendLock);
  if (!force && !Owns(*connection, word)) {
    // The lock may be of a connection that is gone. Then it was lost with the connection.
    ReplyHeader reply =
        ReplyTo(header, extend ? ReplyStatus::kLockLost : ReplyStatus::kInvalidArgument);
    if (extend) reply.lock.lock_word = words_.WordOf(request.key);
    return replies_.AnswerLong(connection, reply);
  }
  if (extend) return replies_.AnswerLong(connection, words_.Extend(header, index));
  // There must be room for the lease before the lock is taken.
  if (waiting_.size() >= context_.options.lock_requests_max ||
      !words_.HasRoomForLease(header, index)) {
    return replies_.AnswerLong(connection, ReplyTo(header, ReplyStatus::kTryAgain));
  }
  Waiting& added = waiting_.emplace_back(Waiting{connection->id, header, index});
  if (context_.server.standing != nullptr) added.partition = PartitionOf(request.key);
}

bool LockRequests::MayWriteUnder(const ServerConnection& connection,
                                 const RequestView& request) const {
  const LockWord word(request.header.write.lock_word);
  if (!Owns(connection, word)) return false;
  if (context_.server.standing == nullptr) return true;
  return !words_.HasMoved(PartitionOf(request.key), words_.IndexOf(words_.HashOf(request.key)),
                          word.word());
}

// Not if its client swaps: a swap that is late takes effect behind the break, and its client does
// not learn of it.
void LockRequests::KeepLocksOf(const Session* session) const {
  ServerConnection* const first = context_.connections.FindQueuePair(session, 0);
  if (first != nullptr && !first->closing) first->keeps_locks |= !first->swaps;
}

bool LockRequests::Owns(const ServerConnection& connection, LockWord word) const {
  if (word.connection_id() == connection.holder) return true;
  const ServerConnection* holder = context_.connections.FindHolder(word.connection_id());
  return holder != nullptr && holder->session == connection.session;
}

void LockRequests::StartWaiting() {
  while (!waiting_.empty()) {
    const Waiting& request = waiting_.front();
    const ServerConnection* connection = context_.connections.FindOpen(request.connection);
    if (connection == nullptr && !request.gives_back) {  // else its lock may be kept
      waiting_.pop_front();
      continue;
    }
    if (!Start(request)) return;
    waiting_.pop_front();
  }
}

bool LockRequests::Start(const Waiting& request) {
  const RequestHeader& header = request.header;
  if ((header.flags & kForce) != 0) return StartForcedUnlock(request);
  const uint64_t expected = request.takes() ? 0 : header.lock.lock_word;
  const uint64_t desired = request.takes() ? header.lock.lock_word : 0;
  const auto done = [this, request](bool ok, uint64_t old) { OnDone(request, ok, old); };
  if (words_.cas().Start(request.index, expected, desired, done)) return true;
  if (words_.in_flight() > 0) return false;
  // Refused although nothing is in flight: compare-and-swaps no longer work.
  OnDone(request, false, 0);
  return true;
}

void LockRequests::OnDone(const Waiting& request, bool ok, uint64_t old) {
  if (request.gives_back) return RefuseElsewhere(request);
  const RequestHeader& header = request.header;
  const bool taking = request.takes();
  // The lock was free, or the client's own word was already there.
  const bool success =
      taking ? old == 0 || old == header.lock.lock_word : old == header.lock.lock_word;
  if (ok && success && taking && !IsServed(request)) return GiveBack(request);
  const bool moved = ok && success && !taking &&
                     words_.HasMoved(request.partition, request.index, header.lock.lock_word);
  if (ok && success && !taking) words_.DropLease({request.index, header.lock.lock_word});
  ServerConnection* connection = context_.connections.FindOpen(request.connection);
  // The connection is gone. If it took the lock, the janitor will find it, or, if the session's
  // locks are kept, its client asks again.
  if (connection == nullptr) return;
  ReplyHeader reply = ReplyTo(header, ReplyStatus::kOk);
  reply.lock.lock_word = taking ? header.lock.lock_word : 0;
  if (!ok) {
    reply.status = static_cast<uint8_t>(StatusOfFailure(taking));
  } else if (moved) {
    reply.status = static_cast<uint8_t>(ReplyStatus::kLockLost);
  } else if (!success) {
    reply.status = static_cast<uint8_t>(taking ? ReplyStatus::kLockHeld : ReplyStatus::kLockLost);
    reply.lock.lock_word = old;
  } else if (taking && header.lock.lease_ms > 0) {
    words_.SetLease(header, request.index);
  }
  replies_.AnswerLong(connection, reply);
}

// If the lock rail is dead, all locks are lost, and the next rail gives new ones. A lock that the
// failed swap took is in words that nobody looks at then.
ReplyStatus LockRequests::StatusOfFailure(bool taking) const {
  if (words_.closed() && !taking) return ReplyStatus::kLockLost;
  return words_.may_come_back() ? ReplyStatus::kTryAgain : ReplyStatus::kInternal;
}

bool LockRequests::IsServed(const Waiting& request) const {
  const GroupStanding* const standing = context_.server.standing;
  return standing == nullptr || standing->partitions().ServesPartition(request.partition);
}

// The partition was closed while the compare-and-swap was under way. Another client may have the
// lock elsewhere by now.
void LockRequests::GiveBack(Waiting request) {
  request.gives_back = true;
  waiting_.push_front(request);
}

void LockRequests::RefuseElsewhere(const Waiting& request) {
  ServerConnection* const connection = context_.connections.FindOpen(request.connection);
  if (connection == nullptr) return;
  connection->RemoveInProgress(request.header.sequence);
  RefuseAsElsewhere(*context_.server.standing, request.header, /*in_order=*/0, connection,
                    &replies_);
}

bool LockRequests::StartForcedUnlock(const Waiting& request) {
  const uint64_t word = words_.WordAt(request.index);
  if (word == 0) {
    AnswerForcedUnlock(request, ReplyStatus::kNotFound, 0);
    return true;
  }
  const auto done = [this, request, word](bool ok, uint64_t old) {
    OnForcedUnlockDone(request, word, ok, old);
  };
  if (words_.cas().Start(request.index, word, 0, done)) return true;
  if (words_.in_flight() > 0) return false;
  AnswerForcedUnlock(request, ReplyStatus::kInternal, 0);
  return true;
}

void LockRequests::OnForcedUnlockDone(Waiting request, uint64_t word, bool ok, uint64_t old) {
  if (!ok) return AnswerForcedUnlock(request, ReplyStatus::kInternal, 0);
  if (old == word) {
    words_.DropLease({request.index, word});
    words_.CountBroken();
    return AnswerForcedUnlock(request, ReplyStatus::kOk, word);
  }
  // The lock was released, and perhaps taken by another holder. Try again with the new word.
  if (--request.tries == 0) return AnswerForcedUnlock(request, ReplyStatus::kTryAgain, old);
  waiting_.push_back(request);
}

void LockRequests::AnswerForcedUnlock(const Waiting& request, ReplyStatus status, uint64_t word) {
  ServerConnection* connection = context_.connections.FindOpen(request.connection);
  if (connection == nullptr) return;
  ReplyHeader reply = ReplyTo(request.header, status);
  reply.lock.lock_word = word;
  replies_.AnswerLong(connection, reply);
}

}  // namespace gannet
