// Reads lock words and notes leases. A lease counts from when the request is executed, and at the
// client from when it was sent, so a client never believes longer than the server.

#include "server/rpc/lock_words.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "common/layout/lock_word.h"
#include "glog/logging.h"
#include "server/rpc/dispatcher.h"

namespace gannet {
namespace {

// Keeps a Poll short: so many words take about 20 us.
constexpr size_t kWordsPerPage = 65536;
// About 70 years, so that a deadline in nanoseconds does not overflow.
constexpr uint64_t kLeaseMsMost = 1ull << 41;

BootTime LeaseEnd(uint64_t lease_ms, BootTime now) {
  if (lease_ms == 0) return BootTime::Never();
  return now + static_cast<int64_t>(std::min(lease_ms, kLeaseMsMost)) * kNsPerMs;
}

uint32_t LeaseMsLeft(BootTime deadline, BootTime now) {
  if (deadline == BootTime::Never()) return 0;
  // At least 1, because 0 means that there is no lease.
  const int64_t left_ms = std::max<int64_t>((deadline - now) / kNsPerMs, 1);
  return static_cast<uint32_t>(std::min<int64_t>(left_ms, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

bool LockWords::HasRoomForLease(const RequestHeader& header, size_t index) const {
  return header.lock.lease_ms == 0 ||
         context_.server.leases.HasRoom({index, header.lock.lock_word}, context_.now.boot);
}

// A NIC takes locks without the server, so it is only known by which map a lock was taken at the
// latest.
void LockWords::NoteMap(uint64_t revision) {
  std::unordered_map<size_t, Held> held;
  for (size_t index = 0; index < context_.server.lock_words.size(); ++index) {
    const uint64_t word = WordAt(index);
    if (word == 0) continue;
    const auto known = held_.find(index);
    const bool stayed = known != held_.end() && known->second.word == word;
    held[index] = stayed ? known->second : Held{word, map_revision_};
  }
  held_ = std::move(held);
  map_revision_ = revision;
}

// The partitions may be of a newer map than this worker has noted. Then the lock may be older.
bool LockWords::HasMoved(uint32_t partition, size_t index, uint64_t word) const {
  if (context_.server.standing == nullptr) return false;
  const ServedPartitions& partitions = context_.server.standing->partitions();
  const auto held = held_.find(index);
  const bool noted = held != held_.end() && held->second.word == word;
  const uint64_t taken_by = noted ? held->second.map_revision : map_revision_;
  return !partitions.ServesPartition(partition) || partitions.ChangedAt(partition) > taken_by;
}

// The lease counts from now, and at the client from when it sent the request. So the client never
// believes that it holds the lock longer than the server does.
bool LockWords::SetLease(const RequestHeader& header, size_t index) {
  const BootTime end = LeaseEnd(header.lock.lease_ms, context_.now.boot);
  if (!context_.server.leases.Set(context_.index, {index, header.lock.lock_word}, end))
    return false;
  context_.timers.RunBy(end);
  return true;
}

ReplyHeader LockWords::Extend(const RequestHeader& header, size_t index) {
  ReplyHeader reply = ReplyTo(header, ReplyStatus::kOk);
  reply.lock.lock_word = WordAt(index);
  if (reply.lock.lock_word != header.lock.lock_word) {
    reply.status = static_cast<uint8_t>(ReplyStatus::kLockLost);
  } else if (!context_.server.leases.HasRoom({index, header.lock.lock_word}, context_.now.boot) ||
             !SetLease(header, index)) {
    // There is no room, or the lock is being broken right now. In that case a retry finds it lost.
    reply.status = static_cast<uint8_t>(ReplyStatus::kTryAgain);
  }
  return reply;
}

void LockWords::BreakExpired() {
  while (const auto lease = context_.server.leases.TakeDue(context_.index, context_.now.boot)) {
    const auto done = [this, lease = *lease](bool ok, uint64_t old) {
      context_.server.leases.Drop(lease);
      if (ok && old == lease.word) context_.counters.locks_expired.Add(1);
    };
    if (WordAt(lease->index) != lease->word) {
      context_.server.leases.Drop(*lease);  // released long ago
    } else if (!context_.cas->Start(lease->index, lease->word, 0, done)) {
      // No place is free. If nothing is in flight either, compare-and-swaps no longer work.
      if (context_.cas->in_flight() == 0) return context_.server.leases.Drop(*lease);
      return context_.server.leases.PutBack(*lease);
    }
  }
}

ReplyHeader LockWords::List(const RequestHeader& header, std::span<std::byte> value_out) const {
  ReplyHeader reply = ReplyTo(header, ReplyStatus::kOk);
  const size_t words = context_.server.lock_words.size();
  size_t index = static_cast<size_t>(std::min<uint64_t>(header.list.position, words));
  const size_t end = std::min(index + kWordsPerPage, words);
  for (; index < end && reply.value_bytes + sizeof(LockEntry) <= value_out.size(); ++index) {
    const uint64_t word = WordAt(index);
    if (word == 0) continue;
    const LockEntry entry = EntryOf(index, word);
    std::memcpy(value_out.data() + reply.value_bytes, &entry, sizeof(entry));
    reply.value_bytes += sizeof(entry);
  }
  reply.list.next = index < words ? index : 0;
  return reply;
}

LockEntry LockWords::EntryOf(size_t index, uint64_t word) const {
  LockEntry entry{};
  entry.lock_word = word;
  entry.index = static_cast<uint32_t>(index);
  entry.lease_ms = LeaseMsLeft(context_.server.leases.Deadline({index, word}), context_.now.boot);
  if (const auto holder = context_.server.connection_ids.HolderOf(LockWord(word).connection_id())) {
    entry.session_id = holder->session_id;
    std::copy(holder->peer.begin(), holder->peer.end(), entry.peer);
  }
  return entry;
}

void LockWords::TellBroken() {
  const uint64_t broken = janitor_.locks_broken();
  const uint64_t expired = context_.counters.locks_expired.value();
  if (broken == broken_told_ && expired == expired_told_) return;
  if (!context_.server.log.broken_locks.Allow(context_.now.boot)) return;
  LOG(INFO) << "since the last such line, " << broken - broken_told_
            << " locks were broken since their holders' connections are gone or by force, "
            << expired - expired_told_ << " since their leases were over";
  broken_told_ = broken;
  expired_told_ = expired;
}

}  // namespace gannet
