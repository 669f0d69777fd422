#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"
#include "server/rpc/worker.h"

namespace gannet {

// kLock and kUnlock are for clients whose own NIC cannot compare-and-swap the server's lock words.
// The words and their rules stay the same; only the server swaps them. kExtendLock is for all
// clients.

void Worker::BeginLock(ServerConnection* connection, const RequestView& request) {
  const RequestHeader& header = request.header;
  BeginLong(connection, header);
  const KeyHash hash = KeyHash::Of(request.key, node_->grant.hash_seed);
  const size_t index = hash.LockIndex(node_->lock_words.size());
  const LockWord word(header.lock.lock_word);
  const bool force = (header.flags & kForce) != 0;
  if (!force && word.key_tag() != hash.LockTag()) {
    return AnswerLong(connection, ReplyTo(header, ReplyStatus::kInvalidArgument));
  }
  const bool extend = header.opcode == static_cast<uint8_t>(Opcode::kExtendLock);
  const bool taking = header.opcode == static_cast<uint8_t>(Opcode::kLock);
  const bool own = taking ? word.connection_id() == connection->id : OwnsLock(*connection, word);
  if (!force && !own) {
    // The lock may be of a connection that is gone. Then it was lost with the connection.
    ReplyHeader reply =
        ReplyTo(header, extend ? ReplyStatus::kLockLost : ReplyStatus::kInvalidArgument);
    if (extend) reply.lock.lock_word = LockWordNow(request.key);
    return AnswerLong(connection, reply);
  }
  if (extend) return AnswerLong(connection, ExtendLock(header, index));
  // There must be room for the lease before the lock is taken.
  if (lock_requests_.size() >= options_.lock_requests_max ||
      (header.lock.lease_ms > 0 &&
       !node_->leases->HasRoom({index, header.lock.lock_word}, now_.monotonic_ns))) {
    return AnswerLong(connection, ReplyTo(header, ReplyStatus::kTryAgain));
  }
  lock_requests_.push_back({connection->id, header, index});
}

bool Worker::OwnsLock(const ServerConnection& connection, LockWord word) {
  const ServerConnection* holder = Find(word.connection_id());
  return holder != nullptr && holder->session == connection.session;
}

void Worker::ServeLocks() {
  while (!lock_requests_.empty()) {
    const LockRequest& request = lock_requests_.front();
    const ServerConnection* connection = Find(request.connection);
    if (connection == nullptr || connection->closing) {
      lock_requests_.pop_front();
      continue;
    }
    if (!StartLock(request)) return;
    lock_requests_.pop_front();
  }
}

bool Worker::StartLock(const LockRequest& request) {
  const RequestHeader& header = request.header;
  if ((header.flags & kForce) != 0) return StartForcedUnlock(request);
  const bool taking = header.opcode == static_cast<uint8_t>(Opcode::kLock);
  const uint64_t expected = taking ? 0 : header.lock.lock_word;
  const uint64_t desired = taking ? header.lock.lock_word : 0;
  const auto done = [this, request](bool ok, uint64_t old) { OnLockDone(request, ok, old); };
  if (cas_->Start(request.index, expected, desired, done)) return true;
  if (cas_->in_flight() > 0) return false;
  // Refused although nothing is in flight: compare-and-swaps no longer work.
  OnLockDone(request, false, 0);
  return true;
}

void Worker::OnLockDone(const LockRequest& request, bool ok, uint64_t old) {
  const RequestHeader& header = request.header;
  const bool taking = header.opcode == static_cast<uint8_t>(Opcode::kLock);
  // The lock was free, or the client's own word was already there.
  const bool success =
      taking ? old == 0 || old == header.lock.lock_word : old == header.lock.lock_word;
  if (ok && success && !taking) node_->leases->Drop({request.index, header.lock.lock_word});
  ServerConnection* connection = Find(request.connection);
  // The connection is gone. If it took the lock, the janitor will find it.
  if (connection == nullptr || connection->closing) return;
  ReplyHeader reply = ReplyTo(header, ReplyStatus::kOk);
  reply.lock.lock_word = taking ? header.lock.lock_word : 0;
  if (!ok) {
    reply.status = static_cast<uint8_t>(ReplyStatus::kInternal);
  } else if (!success) {
    reply.status = static_cast<uint8_t>(taking ? ReplyStatus::kLockHeld : ReplyStatus::kLockLost);
    reply.lock.lock_word = old;
  } else if (taking && header.lock.lease_ms > 0) {
    SetLease(header, request.index);
  }
  AnswerLong(connection, reply);
}

}  // namespace gannet
