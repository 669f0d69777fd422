#ifndef GANNET_COMMON_PROTOCOL_STORAGE_H_
#define GANNET_COMMON_PROTOCOL_STORAGE_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace gannet {

// What a kStorage request wants.
enum class StorageAsk : uint64_t {
  kTell = 0,
  // Begin a snapshot too. A session that may only read is refused.
  kSnapshot = 1,
};

// Where a server keeps its items beside its memory: the value of a kStorage reply. Snapshots are
// numbered from 1 since the server's start, whole or not. A client that asked for one asks again
// until that number has ended. Then it was whole if `whole` is not less; otherwise `why_not` says
// why it is none. New fields are appended, and a reader takes as many as it knows.
struct StorageReply {
  uint64_t disk_sync;          // 0 no disk, 1 none, 2 interval, 3 always
  uint64_t disk_behind_bytes;  // as in StatsReply
  uint64_t disk_behind_ms;
  uint64_t begun;  // the number of the last snapshot that was begun; 0 = none
  uint64_t ended;  // of the last one that has ended
  uint64_t whole;  // of the last one that was whole; 0 = none since the server started
  // The newest whole snapshot, which may be one of an earlier run. All 0 if there is none.
  uint64_t position;  // of the journal, when it was begun
  uint64_t items;
  uint64_t bytes;         // of its file
  uint64_t completed_ms;  // by the server's wall clock; 0 = in an earlier run
  // NUL padded, and cut if they are too long.
  char directory[256];    // of --data; empty: none
  char memory_file[256];  // empty: none
  char why_not[256];      // the last snapshot that failed did so
};
static_assert(sizeof(StorageReply) == 848 && std::is_trivially_copyable_v<StorageReply>);
static_assert(offsetof(StorageReply, position) == 48 && offsetof(StorageReply, directory) == 80);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_STORAGE_H_
