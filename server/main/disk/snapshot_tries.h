#ifndef GANNET_SERVER_MAIN_DISK_SNAPSHOT_TRIES_H_
#define GANNET_SERVER_MAIN_DISK_SNAPSHOT_TRIES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/mutex.h"
#include "common/protocol/storage.h"

namespace gannet {

// Copies a text into a field, cut to fit, with NULs behind it.
template <size_t kBytes>
void CopyText(std::string_view text, char (&field)[kBytes]) {
  for (size_t i = 0; i < kBytes; ++i) field[i] = i < text.size() && i + 1 < kBytes ? text[i] : '\0';
}

// What became of the snapshots since the start, for those who wait for one. They are numbered from
// 1, whole or not.
//
// Thread safety: all methods from any thread; the tries are one thread's, one after the other.
class SnapshotTries {
 public:
  struct Whole {
    uint64_t position = 0;  // of the journal
    uint64_t items = 0;
    uint64_t bytes = 0;
    uint64_t completed_ms = 0;  // 0: in an earlier run
  };

  // Asks for a snapshot. Returns its number. It begins after this call.
  uint64_t Ask() {
    MutexLock lock(mutex_);
    asked_ = true;
    return begun_ + 1;
  }
  bool asked() const {
    MutexLock lock(mutex_);
    return asked_;
  }

  // Takes note of a snapshot of an earlier run.
  void Found(const Whole& whole) {
    MutexLock lock(mutex_);
    newest_ = whole;
  }
  void Begin() {
    MutexLock lock(mutex_);
    asked_ = false;
    ++begun_;
  }
  void Complete(const Whole& whole) {
    MutexLock lock(mutex_);
    newest_ = whole;
    whole_ = ended_ = begun_;
  }
  void Fail(std::string_view why) {
    MutexLock lock(mutex_);
    why_not_ = std::string(why);
    ended_ = begun_;
  }

  void Fill(StorageReply* reply) const {
    MutexLock lock(mutex_);
    reply->begun = begun_;
    reply->ended = ended_;
    reply->whole = whole_;
    reply->position = newest_.position;
    reply->items = newest_.items;
    reply->bytes = newest_.bytes;
    reply->completed_ms = newest_.completed_ms;
    CopyText(why_not_, reply->why_not);
  }

 private:
  mutable Mutex mutex_;
  bool asked_ GANNET_GUARDED_BY(mutex_) = false;
  uint64_t begun_ GANNET_GUARDED_BY(mutex_) = 0;
  uint64_t ended_ GANNET_GUARDED_BY(mutex_) = 0;
  uint64_t whole_ GANNET_GUARDED_BY(mutex_) = 0;
  Whole newest_ GANNET_GUARDED_BY(mutex_);
  std::string why_not_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_DISK_SNAPSHOT_TRIES_H_
