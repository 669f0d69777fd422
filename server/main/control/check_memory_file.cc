// kvserver --check: maps the file, locked against a server, and prints what Examine
// (server/memory/recovery/examination.h) finds in it. It changes nothing.

#include "server/main/control/check_memory_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/memory/recovery/examination.h"

namespace gannet {
namespace {

absl::Status Wrong(const std::string& path, std::string_view what,
                   absl::StatusCode code = absl::StatusCode::kFailedPrecondition) {
  return absl::Status(code, absl::StrCat("--check: ", path, ": ", std::string(what)));
}

// A file that is mapped for reading, and locked against a server.
class MappedFile {
 public:
  static absl::StatusOr<std::unique_ptr<MappedFile>> Open(const std::string& path) {
    std::unique_ptr<MappedFile> file(new MappedFile);
    file->fd_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file->fd_ < 0) return Wrong(path, std::strerror(errno));
    if (flock(file->fd_, LOCK_SH | LOCK_NB) != 0) {
      return Wrong(path, "a server serves from it: stop that first, or check a copy of the file");
    }
    struct stat status {};
    if (fstat(file->fd_, &status) != 0) return Wrong(path, std::strerror(errno));
    if (status.st_size == 0) return Wrong(path, "it is empty");
    const auto bytes = static_cast<size_t>(status.st_size);
    void* const address = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file->fd_, 0);
    if (address == MAP_FAILED) return Wrong(path, std::strerror(errno));
    file->bytes_ = {static_cast<std::byte*>(address), bytes};
    return file;
  }
  ~MappedFile() {
    if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
    if (fd_ >= 0) close(fd_);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<std::byte> bytes() const { return bytes_; }

 private:
  MappedFile() = default;

  int fd_ = -1;
  std::span<std::byte> bytes_;
};

}  // namespace

std::string RenderReport(std::span<const ReportLine> lines, bool json) {
  if (json) {
    nlohmann::ordered_json object;
    for (const auto& [name, value] : lines) object[std::string(name)] = value;
    return object.dump() + "\n";
  }
  std::string text;
  for (const auto& [name, value] : lines) absl::StrAppend(&text, name, " ", value, "\n");
  return text;
}

absl::Status CheckMemoryFile(const std::string& path, bool json) {
  GANNET_ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  const absl::StatusOr<Examination> found = Examine(file->bytes());
  if (!found.ok()) {
    return Wrong(path, std::string(found.status().message()), found.status().code());
  }
  const SurveyCounts& counts = found->counts;
  const ReportLine lines[] = {{"region_bytes", found->region_bytes},
                              {"reserved_bytes", found->reserved_bytes},
                              {"index_bytes", found->index_bytes},
                              {"item_bytes", found->item_bytes},
                              {"unused_bytes", found->unused_bytes},
                              {"slots_total", found->slots_total},
                              {"slots_empty", found->slots_empty},
                              {"items", counts.items},
                              {"large_items", counts.large_items},
                              {"stubs", counts.stubs},
                              {"stopped_in_order", found->stopped_in_order ? 1u : 0u},
                              {"writes_under_way", found->intents},
                              {"rolled_back", counts.rolled_back},
                              {"slots_unfinished", counts.unfinished},
                              {"slots_left_over", counts.leftovers},
                              {"torn", counts.torn},
                              {"misplaced", counts.misplaced},
                              {"overlapping", counts.overlapping}};
  std::fputs(RenderReport(lines, json).c_str(), stdout);
  if (counts.dropped() == 0) return absl::OkStatus();
  return Wrong(path, absl::StrCat(counts.dropped(), " items are damaged: a start drops them"),
               absl::StatusCode::kDataLoss);
}

}  // namespace gannet
