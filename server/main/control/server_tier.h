#ifndef GANNET_SERVER_MAIN_CONTROL_SERVER_TIER_H_
#define GANNET_SERVER_MAIN_CONTROL_SERVER_TIER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/wake_up.h"
#include "common/protocol/stats_reply.h"
#include "common/rdma/memory.h"
#include "server/memory/tier/tier_circle.h"
#include "server/memory/tier/tier_file.h"
#include "server/memory/tier/tier_items.h"
#include "server/memory/tier/tier_reads.h"
#include "server/memory/tier/tier_thread.h"
#include "server/memory/tier/tier_writer.h"

namespace gannet {

// Of the disk, at least.
inline constexpr uint64_t kTierBytesMin = kTierSegmentsMin * kTierSegmentBytes;

// What --tier says (docs/decisions/2026-11-29-tier.md).
struct TierOptions {
  std::string directory;  // empty: there is no tier
  uint64_t bytes = 0;
  uint64_t segment_bytes = kTierSegmentBytes;
  uint32_t read_threads = TierReads::Options().threads;
  // Tests have disks that fail, and disks that hang.
  PosixFile::Pwrite pwrite = ::pwrite;
  PosixFile::Pread pread = ::pread;
};

// A disk behind a server's memory: its file, the memory that values are read into, and the threads
// that write and read.
//
//   auto tier = ServerTier::Open(options, keeps);  // before a memory file is changed
//   tier->MakeReads(pds, laps, workers);           // before the workers run
//   tier->Start(items, wanted);                    // it writes
//   tier->Stop();                                  // when no worker runs any more
//
// Thread safety: FillStats and what reads() gives from any thread, the others from the one that has
// the server.
class ServerTier {
 public:
  // Opens and locks the file. `keeps`: the server has a memory file, which may have stubs. The
  // errors are those of TierFile::Open, and say which flag they are about.
  static absl::StatusOr<std::unique_ptr<ServerTier>> Open(const TierOptions& options, bool keeps);
  // Looks at what Open would find, and changes nothing. Returns Open's errors.
  static absl::StatusOr<TierExamination> Examine(const TierOptions& options, bool keeps);
  ~ServerTier() { Stop(); }
  ServerTier(const ServerTier&) = delete;
  ServerTier& operator=(const ServerTier&) = delete;

  // Of the file.
  uint64_t tier() const { return file_->tier(); }
  uint64_t segment_bytes() const { return file_->segment_bytes(); }
  uint64_t segments() const { return file_->segments(); }
  bool kept() const { return file_->kept(); }

  // Makes the circle, and starts the threads that read. `pds` are the domains of the server's
  // rails. `laps` is that of TierCircle's options. `workers` outlive Stop. ResourceExhausted: so
  // much memory may not be locked.
  absl::Status MakeReads(std::span<ibv_pd* const> pds, std::vector<uint32_t> laps,
                         std::vector<TierReadsDone*> workers);
  TierReads& reads() { return *reads_; }
  // Of the memory that values are read into, on the rail of this number.
  uint32_t lkey(size_t rail) const { return memory_mrs_[rail]->lkey; }

  // Starts the thread that writes what `items` have. `wanted` asks it to look. Both outlive Stop.
  // ResourceExhausted: no file descriptor. REQUIRES: MakeReads.
  absl::Status Start(TierItems* items, WakeUp* wanted);
  // Logs what changed of the disk since the last call. REQUIRES: Start.
  void TellLog();
  // From any thread. REQUIRES: Start.
  TierWriter::Disk disk() const { return thread_->disk(); }
  // Fills in the figures of the disk. From any thread.
  void FillStats(StatsReply* stats) const;

  // Ends the threads, behind what they are doing. REQUIRES: no worker runs.
  void Stop();

 private:
  ServerTier(std::unique_ptr<TierFile> file, uint32_t read_threads)
      : file_(std::move(file)), read_threads_(read_threads) {}

  // In the order of dependency.
  const std::unique_ptr<TierFile> file_;
  const uint32_t read_threads_;
  std::optional<TierCircle> circle_;
  PrivateMemory memory_;
  std::vector<Handle<ibv_mr>> memory_mrs_;  // by rail
  std::unique_ptr<TierReads> reads_;
  std::optional<TierWriter> writer_;
  TierWriter::Disk told_ = TierWriter::Disk::kWorks;  // by TellLog
  std::unique_ptr<TierThread> thread_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_SERVER_TIER_H_
