// A tier's parts, made in the order in which a server starts. What goes wrong with its file is told
// together with the flag that named it.

#include "server/main/control/server_tier.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"

namespace gannet {
namespace {

// Values that are being read, or on their way to clients: for the longest, several at once.
constexpr uint64_t kReadMemoryBytes = 32 << 20;
static_assert(kReadMemoryBytes >= 4 * kTierReadBytesMax);

TierFileOptions OfFile(const TierOptions& options, bool keeps) {
  return {.directory = options.directory,
          .bytes = options.bytes,
          .segment_bytes = options.segment_bytes,
          .keeps = keeps,
          .pwrite = options.pwrite,
          .pread = options.pread};
}

// Says which flag an error is about. That a tier is too small, or its disk, is said by its bytes.
absl::Status WithFlag(const absl::Status& status, const TierOptions& options) {
  const bool of_bytes = absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status);
  const std::string flag = of_bytes ? absl::StrCat("--tier_bytes=", options.bytes)
                                    : absl::StrCat("--tier=", options.directory);
  return {status.code(), absl::StrCat(flag, ": ", status.message())};
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerTier>> ServerTier::Open(const TierOptions& options,
                                                             bool keeps) {
  absl::StatusOr<std::unique_ptr<TierFile>> file = TierFile::Open(OfFile(options, keeps));
  if (!file.ok()) return WithFlag(file.status(), options);
  LOG(INFO) << "a tier of " << (*file)->segments() * (*file)->segment_bytes() << " bytes in "
            << options.directory << ((*file)->direct() ? "" : ", through the system's page cache");
  return std::unique_ptr<ServerTier>(new ServerTier(*std::move(file), options.read_threads));
}

absl::StatusOr<TierExamination> ServerTier::Examine(const TierOptions& options, bool keeps) {
  absl::StatusOr<TierExamination> found = TierFile::Examine(OfFile(options, keeps));
  if (!found.ok()) return WithFlag(found.status(), options);
  return found;
}

absl::Status ServerTier::MakeReads(std::span<ibv_pd* const> pds, std::vector<uint32_t> laps,
                                   std::vector<TierReadsDone*> workers) {
  GANNET_ASSIGN_OR_RETURN(memory_, PrivateMemory::Create(kReadMemoryBytes));
  for (ibv_pd* const pd : pds) {
    GANNET_ASSIGN_OR_RETURN(memory_mrs_.emplace_back(),
                            RegisterMemory(pd, memory_.bytes(), RemoteAccess::kNone));
  }
  circle_.emplace(TierCircle::Options{.file = file_.get(),
                                      .tier = file_->tier(),
                                      .segment_bytes = file_->segment_bytes(),
                                      .segments = file_->segments(),
                                      .laps = std::move(laps)});
  reads_ = std::make_unique<TierReads>(TierReads::Options{.circle = &*circle_,
                                                          .memory = memory_.bytes(),
                                                          .threads = read_threads_,
                                                          .workers = std::move(workers)});
  return absl::OkStatus();
}

absl::Status ServerTier::Start(TierItems* items, WakeUp* wanted) {
  writer_.emplace(&*circle_, items);
  GANNET_ASSIGN_OR_RETURN(thread_, TierThread::Start(&*writer_, wanted));
  return absl::OkStatus();
}

void ServerTier::TellLog() {
  const TierWriter::Disk disk = thread_->disk();
  if (std::exchange(told_, disk) == disk) return;
  const std::string why(writer_->status().message());
  switch (disk) {
    case TierWriter::Disk::kWorks:
      LOG(INFO) << "the tier's disk works again";
      return;
    case TierWriter::Disk::kSlow:
      LOG(WARNING) << "the tier's disk is slow: a write takes more than a second. What should go "
                      "there is evicted meanwhile";
      return;
    case TierWriter::Disk::kFull:
      LOG(WARNING) << "the tier's disk is full: " << why << ". What should go there is evicted";
      return;
    case TierWriter::Disk::kFailed:
      LOG(ERROR) << "the tier's disk fails: " << why
                 << ". Nothing is written there any more, and what should go there is evicted";
      return;
  }
}

void ServerTier::FillStats(StatsReply* stats) const {
  static_assert(static_cast<int>(TierWriter::Disk::kFailed) == 3, "as the list of statistics says");
  stats->tier_disk = 1 + static_cast<uint64_t>(thread_->disk());
  stats->tier_bytes = file_->segments() * file_->segment_bytes();
  stats->tier_page_cache = file_->direct() ? 0 : 1;
  stats->tier_written = writer_->records_written();
  const TierReads::Counts counts = reads_->counts();
  stats->tier_reads = counts.reads;
  stats->tier_reads_joined = counts.joined;
  stats->tier_reads_failed = counts.failed;
  stats->tier_read_us = static_cast<uint64_t>(counts.took_ns / kNsPerUs);
}

void ServerTier::Stop() {
  thread_.reset();
  reads_.reset();
}

}  // namespace gannet
