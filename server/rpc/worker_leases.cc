#include <algorithm>
#include <cstring>
#include <limits>

#include "common/base/words.h"
#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"
#include "glog/logging.h"
#include "server/rpc/worker.h"

namespace gannet {

// Leases that expire, forced unlocks, and the list of locks. The server's CPU only reads lock words
// here. The loads are relaxed: a word alone says who holds it, and every change compares it again.

namespace {

// Keeps a Poll short: so many words take about 20 us.
constexpr size_t kWordsPerPage = 65536;
// About 70 years, so that a deadline in nanoseconds does not overflow.
constexpr uint64_t kLeaseMsMost = 1ull << 41;

int64_t LeaseEndNs(uint64_t lease_ms, int64_t now_ns) {
  if (lease_ms == 0) return LockLeases::kNever;
  return now_ns + static_cast<int64_t>(std::min(lease_ms, kLeaseMsMost)) * kNsPerMs;
}

uint32_t LeaseMsLeft(int64_t deadline_ns, int64_t now_ns) {
  if (deadline_ns == LockLeases::kNever) return 0;
  // At least 1, because 0 means that there is no lease.
  const int64_t left_ms = std::max<int64_t>((deadline_ns - now_ns) / kNsPerMs, 1);
  return static_cast<uint32_t>(std::min<int64_t>(left_ms, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

uint64_t Worker::LockWordNow(std::string_view key) const {
  const KeyHash hash = KeyHash::Of(key, node_->grant.hash_seed);
  return LoadWord(&node_->lock_words[hash.LockIndex(node_->lock_words.size())]);
}

// The lease counts from now, and at the client from when it sent the request. So the client never
// believes that it holds the lock longer than the server does.
bool Worker::SetLease(const RequestHeader& header, size_t index) {
  const int64_t end_ns = LeaseEndNs(header.lock.lease_ms, now_.monotonic_ns);
  if (!node_->leases->Set(options_.index, {index, header.lock.lock_word}, end_ns)) return false;
  timers_due_ns_ = std::min(timers_due_ns_, end_ns);
  return true;
}

ReplyHeader Worker::ExtendLock(const RequestHeader& header, size_t index) {
  ReplyHeader reply = ReplyTo(header, ReplyStatus::kOk);
  reply.lock.lock_word = LoadWord(&node_->lock_words[index]);
  if (reply.lock.lock_word != header.lock.lock_word) {
    reply.status = static_cast<uint8_t>(ReplyStatus::kLockLost);
  } else if (!node_->leases->HasRoom({index, header.lock.lock_word}, now_.monotonic_ns) ||
             !SetLease(header, index)) {
    // There is no room, or the lock is being broken right now. In that case a retry finds it lost.
    reply.status = static_cast<uint8_t>(ReplyStatus::kTryAgain);
  }
  return reply;
}

void Worker::BreakExpired() {
  while (const auto lease = node_->leases->TakeDue(options_.index, now_.monotonic_ns)) {
    const auto done = [this, lease = *lease](bool ok, uint64_t old) {
      node_->leases->Drop(lease);
      if (ok && old == lease.word) counters_.locks_expired.Add(1);
    };
    if (LoadWord(&node_->lock_words[lease->index]) != lease->word) {
      node_->leases->Drop(*lease);  // released long ago
    } else if (!cas_->Start(lease->index, lease->word, 0, done)) {
      // No place is free. If nothing is in flight either, compare-and-swaps no longer work.
      if (cas_->in_flight() == 0) return node_->leases->Drop(*lease);
      return node_->leases->PutBack(*lease);
    }
  }
}

bool Worker::StartForcedUnlock(const LockRequest& request) {
  const uint64_t word = LoadWord(&node_->lock_words[request.index]);
  if (word == 0) {
    AnswerForcedUnlock(request, ReplyStatus::kNotFound, 0);
    return true;
  }
  const auto done = [this, request, word](bool ok, uint64_t old) {
    OnForcedUnlockDone(request, word, ok, old);
  };
  if (cas_->Start(request.index, word, 0, done)) return true;
  if (cas_->in_flight() > 0) return false;
  AnswerForcedUnlock(request, ReplyStatus::kInternal, 0);
  return true;
}

void Worker::OnForcedUnlockDone(LockRequest request, uint64_t word, bool ok, uint64_t old) {
  if (!ok) return AnswerForcedUnlock(request, ReplyStatus::kInternal, 0);
  if (old == word) {
    node_->leases->Drop({request.index, word});
    janitor_->CountBroken();
    return AnswerForcedUnlock(request, ReplyStatus::kOk, word);
  }
  // The lock was released, and perhaps taken by another holder. Try again with the new word.
  if (--request.tries == 0) return AnswerForcedUnlock(request, ReplyStatus::kTryAgain, old);
  lock_requests_.push_back(request);
}

void Worker::AnswerForcedUnlock(const LockRequest& request, ReplyStatus status, uint64_t word) {
  ServerConnection* connection = Find(request.connection);
  if (connection == nullptr || connection->closing) return;
  ReplyHeader reply = ReplyTo(request.header, status);
  reply.lock.lock_word = word;
  AnswerLong(connection, reply);
}

ReplyHeader Worker::ListLocks(const RequestHeader& header, std::span<std::byte> value_out) const {
  ReplyHeader reply = ReplyTo(header, ReplyStatus::kOk);
  const size_t words = node_->lock_words.size();
  size_t index = static_cast<size_t>(std::min<uint64_t>(header.list.position, words));
  const size_t end = std::min(index + kWordsPerPage, words);
  for (; index < end && reply.value_bytes + sizeof(LockEntry) <= value_out.size(); ++index) {
    const uint64_t word = LoadWord(&node_->lock_words[index]);
    if (word == 0) continue;
    const LockEntry entry = EntryOf(index, word);
    std::memcpy(value_out.data() + reply.value_bytes, &entry, sizeof(entry));
    reply.value_bytes += sizeof(entry);
  }
  reply.list.next = index < words ? index : 0;
  return reply;
}

LockEntry Worker::EntryOf(size_t index, uint64_t word) const {
  LockEntry entry{};
  entry.lock_word = word;
  entry.index = static_cast<uint32_t>(index);
  entry.lease_ms = LeaseMsLeft(node_->leases->DeadlineNs({index, word}), now_.monotonic_ns);
  if (const auto holder = node_->connection_ids->HolderOf(LockWord(word).connection_id())) {
    entry.session_id = holder->session_id;
    std::copy(holder->peer.begin(), holder->peer.end(), entry.peer);
  }
  return entry;
}

void Worker::TellBrokenLocks() {
  const uint64_t broken = janitor_->locks_broken();
  const uint64_t expired = counters_.locks_expired.value();
  if (broken == broken_told_ && expired == expired_told_) return;
  if (!node_->log->broken_locks.Allow(now_.monotonic_ns)) return;
  LOG(INFO) << "since the last such line, " << broken - broken_told_
            << " locks were broken since their holders' connections are gone or by force, "
            << expired - expired_told_ << " since their leases were over";
  broken_told_ = broken;
  expired_told_ = expired;
}

}  // namespace gannet
