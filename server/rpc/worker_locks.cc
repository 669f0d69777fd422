#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"
#include "server/rpc/worker.h"

namespace gannet {

// kLock and kUnlock, for clients whose own NIC cannot compare-and-swap the server's lock words. The
// words and their rules are the same: only who swaps is different.

void Worker::BeginLock(ServerConnection* connection, const RequestView& request) {
  const RequestHeader& header = request.header;
  BeginLong(connection, header);
  const KeyHash hash = KeyHash::Of(request.key, node_->grant.hash_seed);
  const LockWord word(header.lock_word);
  if (word.key_tag() != hash.LockTag() || !OwnsLock(*connection, header)) {
    // A lock of a connection that is gone was lost with it.
    return AnswerLong(connection, ReplyTo(header, ReplyStatus::kInvalidArgument));
  }
  if (lock_requests_.size() >= options_.lock_requests_max) {
    return AnswerLong(connection, ReplyTo(header, ReplyStatus::kTryAgain));
  }
  lock_requests_.push_back({connection->id, header, hash.LockIndex(node_->lock_words.size())});
}

bool Worker::OwnsLock(const ServerConnection& connection, const RequestHeader& header) {
  const LockWord word(header.lock_word);
  if (header.opcode == static_cast<uint8_t>(Opcode::kLock)) {
    return word.connection_id() == connection.id;
  }
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
  const bool taking = header.opcode == static_cast<uint8_t>(Opcode::kLock);
  const uint64_t expected = taking ? 0 : header.lock_word;
  const uint64_t desired = taking ? header.lock_word : 0;
  const auto done = [this, id = request.connection, header, taking](bool ok, uint64_t old) {
    OnLockDone(id, header, taking, ok, old);
  };
  if (cas_->Start(request.index, expected, desired, done)) return true;
  if (cas_->in_flight() > 0) return false;
  // Nothing in flight and yet refused: swaps do not work any more.
  OnLockDone(request.connection, header, taking, false, 0);
  return true;
}

void Worker::OnLockDone(uint32_t connection_id, const RequestHeader& header, bool taking, bool ok,
                        uint64_t old) {
  ServerConnection* connection = Find(connection_id);
  // Gone meanwhile: if it took the lock, the janitor will find it.
  if (connection == nullptr || connection->closing) return;
  // Taken, or (its holder's own word) taken already.
  const bool success = taking ? old == 0 || old == header.lock_word : old == header.lock_word;
  ReplyHeader reply = ReplyTo(header, ReplyStatus::kOk);
  reply.lock_word = taking ? header.lock_word : 0;
  if (!ok) {
    reply.status = static_cast<uint8_t>(ReplyStatus::kInternal);
  } else if (!success) {
    reply.status = static_cast<uint8_t>(taking ? ReplyStatus::kLockHeld : ReplyStatus::kLockLost);
    reply.lock_word = old;
  }
  AnswerLong(connection, reply);
}

}  // namespace gannet
