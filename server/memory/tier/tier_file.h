#ifndef GANNET_SERVER_MEMORY_TIER_TIER_FILE_H_
#define GANNET_SERVER_MEMORY_TIER_TIER_FILE_H_

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/log/journal/posix_file.h"
#include "server/memory/tier/tier_format.h"

namespace gannet {

// Its name in the directory, if it has one.
inline constexpr char kTierFileName[] = "tier";

struct TierFileOptions {
  std::string directory;
  uint64_t bytes = 0;  // of all segments; what is left over is not used
  uint64_t segment_bytes = kTierSegmentBytes;
  // The file has a name, and its records stay for the next process: for a server with a memory
  // file. Otherwise it has none, and is gone with this process, however that ends.
  bool keeps = false;
  // What writes and reads. Tests have file systems that refuse, and disks that hang.
  PosixFile::Pwrite pwrite = ::pwrite;
  PosixFile::Pread pread = ::pread;
};

// What a start would find. See TierFile::Examine.
struct TierExamination {
  bool kept = false;        // a tier is there, whose values would be used
  uint64_t free_bytes = 0;  // of the file system, with those of a tier that would be made anew
  // Reads and writes pass the system's page cache. nullopt: this cannot be tried here.
  std::optional<bool> direct;
};

// The file of a tier, opened, locked, and as long as it will ever be. Its lock lies on the
// descriptor that does the I/O: while a process that was killed still has reads or writes under
// way, no other one can open the file.
//
// Thread safety: any thread may read and write. Memory and offsets are of whole blocks.
class TierFile : public PosixFile {
 public:
  // Opens the tier, or makes one if there is none, or one of another size.
  //
  // InvalidArgument: fewer than kTierSegmentsMin segments. NotFound: there is no such directory.
  // FailedPrecondition: the directory is in memory, or others may write to it; another process uses
  // the tier; the file is no tier's, or of another layout. ResourceExhausted: the file system has
  // less space. Any other error: the disk does not do what was tried.
  static absl::StatusOr<std::unique_ptr<TierFile>> Open(const TierFileOptions& options);

  // Looks at what Open would find, and changes nothing: what it writes to try the disk goes to a
  // file without a name. Returns Open's errors.
  static absl::StatusOr<TierExamination> Examine(const TierFileOptions& options);

  uint64_t tier() const { return header_.tier; }
  uint64_t segments() const { return header_.segments; }
  uint64_t segment_bytes() const { return header_.segment_bytes; }
  // Returns whether a former process made this tier, so that stubs may lead there.
  bool kept() const { return kept_; }
  // Returns whether reads and writes pass the system's page cache.
  bool direct() const { return direct_; }

  // A file system that cannot reserve space gives it when it is written. Then it is only looked at
  // whether there is so much. A file for which there is too little space becomes empty.
  absl::Status Reserve(uint64_t bytes) override;
  // Does nothing: a power cut takes all that leads here.
  absl::Status Sync() override { return absl::OkStatus(); }

 private:
  TierFile(const TierFileOptions& options, int fd, bool direct, std::string path)
      : PosixFile(fd, options.pwrite, options.pread), path_(std::move(path)), direct_(direct) {}

  static absl::StatusOr<std::unique_ptr<TierFile>> OpenIn(int directory,
                                                          const TierFileOptions& options);
  static absl::StatusOr<TierExamination> ExamineIn(int directory, const TierFileOptions& options);
  // Refuses a tier that another process uses.
  absl::Status Lock();
  // Reads the header. NotFound: there is none yet. FailedPrecondition: it is no tier's, or of
  // another layout.
  absl::Status ReadHeader(std::span<std::byte, kTierBlockBytes> block);
  bool SizedAs(const TierFileOptions& options) const;
  // Uses what is there, or makes a new tier.
  absl::Status Begin(const TierFileOptions& options);
  absl::Status Make(const TierFileOptions& options);
  // Writes and reads the header. So it shows whether the disk takes O_DIRECT, which some file
  // systems accept when a file is opened, and refuse at the first write.
  absl::Status WriteHeader(std::span<std::byte, kTierBlockBytes> block);
  absl::Status UseCache();
  absl::Status Failure(const char* what) const override;

  const std::string path_;  // for messages
  TierHeader header_{};
  bool direct_;
  bool kept_ = false;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MEMORY_TIER_TIER_FILE_H_
