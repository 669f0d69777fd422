#ifndef GANNET_SERVER_LOG_JOURNAL_WAITING_RECORDS_H_
#define GANNET_SERVER_LOG_JOURNAL_WAITING_RECORDS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "common/base/mutex.h"
#include "server/log/changes/change_sink.h"
#include "server/log/changes/update_lane.h"

namespace gannet {

// A journal's records that were appended and are not written yet, in chunks of memory. Threads take
// places for their records one after another, under a lock. They fill them at the same time,
// outside of it. So a chunk is written only when all of its bytes are filled.
//
// Thread safety: Gather, First, Pop and IsWorthAWrite from one thread at a time, the one that
// writes; all others from any.
class WaitingRecords {
 public:
  // What Reserve and Takes refuse for. `now_ns` is the caller's clock, as everywhere here.
  struct Limits {
    size_t bytes_max = 0;          // in memory. One record may exceed it
    int64_t unsynced_ns_max = 0;   // since the oldest came that is not synced; 0: any time
    int64_t unwritten_ns_max = 0;  // the same of what is not written
    bool refuses_for_age = true;   // if not, only IsOld tells of the two
  };

  // The first record has this position.
  WaitingRecords(uint64_t journal_id, uint64_t position, const Limits& limits)
      : journal_id_(journal_id), limits_(limits), appended_(position) {}

  // Takes room for a record of RecordBytes bytes, or refuses it. Fill makes the record there. What
  // is reserved must be filled soon: nothing behind it is written before.
  std::optional<ChangePlace> Reserve(size_t record_bytes, int64_t now_ns);
  // `synced` is the journal's position of that name. A record tells it.
  void Fill(const Change& change, const ChangePlace& place, uint64_t synced);
  // Appends the updates of a lane, which is sealed and not empty, and refuses none. Only copies
  // them: First makes their records. Returns the position behind them.
  uint64_t AppendUpdates(const UpdateLane& lane, int64_t now_ns);

  // Returns whether Reserve takes a record now.
  bool Takes(int64_t now_ns) const;
  // The same, if it is no reason that something has been unwritten for less than so long.
  bool TakesIfWrittenWithin(int64_t unwritten_ns, int64_t now_ns) const;
  bool IsOld(int64_t now_ns) const { return IsOld(now_ns, limits_.unwritten_ns_max); }
  // Reserve refuses all from now on, or no longer.
  void SetRefusesAll(bool refuses_all);

  // Lets First return what came until now, if nothing is left of what came before.
  void Gather();
  // What is to be written next.
  struct Filled {
    std::span<const std::byte> bytes;
    int64_t since_ns = 0;  // when the oldest of it came
  };
  // Returns nullopt if nothing is left, or if somebody still fills its first chunk.
  std::optional<Filled> First(uint64_t synced);
  // What First returned is written.
  void Pop();
  // Returns whether there is something to write in a moment: somebody was filling a chunk when
  // First was called, or so much came meanwhile that it is worth a write.
  bool IsWorthAWrite() const;

  // Everything is synced but what waits here, and what was written since a time; 0: nothing was.
  void NoteSynced(int64_t written_since_ns);

  // The position behind the last record.
  uint64_t appended() const { return appended_.load(std::memory_order_relaxed); }
  // When the oldest record came that is not synced; 0 if there is none.
  int64_t unsynced_since_ns() const { return unsynced_since_ns_.load(std::memory_order_relaxed); }
  // The same for what is not written.
  int64_t unwritten_since_ns() const { return unwritten_since_ns_.load(std::memory_order_relaxed); }

 private:
  // Updates in the room for their records, which are longer than their bodies: the bodies are at
  // its end. So the records can be made there one after another.
  struct Updates {
    size_t at = 0;  // in the chunk
    size_t record_bytes = 0;
    size_t body_bytes = 0;
  };
  // Room for records in a row. Threads reserve a part of it one after another, under mutex_, and
  // fill their parts at the same time.
  struct Chunk {
    uint64_t first = 0;    // position
    int64_t since_ns = 0;  // when its first part was reserved
    size_t capacity = 0;
    std::unique_ptr<std::byte[]> bytes;
    // These grow under mutex_, until who writes takes the chunk.
    size_t reserved = 0;
    std::vector<Updates> updates;   // without records yet
    std::atomic<size_t> filled{0};  // bytes, not in order; all are there once it is `reserved`
  };

  bool IsOld(int64_t now_ns, int64_t unwritten_ns_max) const;
  bool Takes(int64_t now_ns, int64_t unwritten_ns_max) const GANNET_REQUIRES(mutex_);
  ChangePlace Enter(size_t record_bytes, int64_t now_ns) GANNET_REQUIRES(mutex_);
  // Adds a chunk that has room for so many bytes.
  void AddChunk(size_t bytes, int64_t now_ns) GANNET_REQUIRES(mutex_);
  void MakeRecords(Chunk* chunk, uint64_t synced) const;
  // Returns since when the oldest of what waits has waited; 0 if nothing does.
  int64_t WaitingSince() const GANNET_REQUIRES(mutex_);

  const uint64_t journal_id_;
  const Limits limits_;

  mutable Mutex mutex_;
  std::deque<std::unique_ptr<Chunk>> coming_ GANNET_GUARDED_BY(mutex_);
  size_t bytes_ GANNET_GUARDED_BY(mutex_) = 0;              // of coming_ and leaving_
  int64_t leaving_since_ns_ GANNET_GUARDED_BY(mutex_) = 0;  // of leaving_'s first; 0: it is empty
  std::unique_ptr<Chunk> spare_ GANNET_GUARDED_BY(mutex_);  // for the next AddChunk
  bool refuses_all_ GANNET_GUARDED_BY(mutex_) = false;
  std::atomic<uint64_t> appended_;              // changed under mutex_
  std::atomic<int64_t> unsynced_since_ns_{0};   // changed under mutex_
  std::atomic<int64_t> unwritten_since_ns_{0};  // changed under mutex_

  // Who writes. They came before those in coming_.
  std::deque<std::unique_ptr<Chunk>> leaving_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_JOURNAL_WAITING_RECORDS_H_
