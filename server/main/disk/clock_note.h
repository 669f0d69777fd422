#ifndef GANNET_SERVER_MAIN_DISK_CLOCK_NOTE_H_
#define GANNET_SERVER_MAIN_DISK_CLOCK_NOTE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "common/base/clock.h"
#include "common/base/server_time.h"
#include "server/log/journal/files.h"

namespace gannet {

// Notes beside a journal, every second, where the server's clock is, also while nothing is written.
// The next run's clock does not begin before that (NotedClock), so what had expired stays so if the
// machine's clock was set back. A file of its own, since earlier versions leave files alone that
// they do not know, and end a journal at a record that they do not know.
//
// The file has two entries, which are written in turns: a write that a power cut tears leaves the
// other one.
struct ClockEntry {
  uint64_t magic;
  uint64_t journal_id;
  uint64_t clock_ms;  // since the Unix epoch
  uint64_t checksum;  // XXH3-64 of the fields before, seed 0
};
static_assert(sizeof(ClockEntry) == 32 && std::is_trivially_copyable_v<ClockEntry>);

inline constexpr char kClockFileName[] = "clock";
inline constexpr uint64_t kClockMagic = 0x4b434c4354454e47;  // "GNETCLCK"
inline constexpr uint64_t kClockEntryStride = 512;           // each in a sector of its own

// Thread safety: one thread.
class ClockNote {
 public:
  static constexpr int64_t kEveryNs = kNsPerSecond;

  // `files` outlives it. `syncs`: whether a note is to survive a power cut.
  ClockNote(Files* files, uint64_t journal_id, bool syncs)
      : files_(files), journal_id_(journal_id), syncs_(syncs) {}

  // Notes the clock if that is due. A note that cannot be written is left out.
  void Poll(ServerTime clock, int64_t now_ns);
  void Write(ServerTime clock);

 private:
  absl::Status TryWrite(ServerTime clock);

  Files* const files_;
  const uint64_t journal_id_;
  const bool syncs_;
  std::unique_ptr<File> file_;
  uint64_t noted_ = 0;  // how many times
  int64_t next_ns_ = 0;
  bool told_ = false;
};

// Returns the last time that was noted in a server's directory; ServerTime(): none was.
ServerTime NotedClock(Files* files);

// Returns where the clock of a run has to begin that finds this note; ServerTime(): at the
// machine's clock. If that is behind the note, it was set back. Nobody knows then how much of the
// time to the next note had passed, so all of it counts.
constexpr ServerTime ClockBeginsAt(ServerTime noted, ServerTime machine) {
  return machine >= noted ? ServerTime() : noted + ClockNote::kEveryNs / kNsPerMs;
}

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_DISK_CLOCK_NOTE_H_
