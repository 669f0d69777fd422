// Finds by their magics which parts a memory file or a directory has, and of which versions. Of a
// memory file only the headers are read, as it may have terabytes.

#include "server/main/control/upgrade_check.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/layout/superblock.h"
#include "server/log/journal/segment.h"
#include "server/main/disk/data_directory.h"
#include "server/main/disk/snapshot.h"
#include "server/memory/recovery/recovery_area.h"
#include "server/memory/tier/tier_file.h"
#include "server/memory/tier/tier_format.h"

namespace gannet {
namespace {

using Json = nlohmann::ordered_json;

// One part that has a version of its own.
struct Part {
  std::string what;
  uint64_t has;
  uint64_t takes;  // this kvserver
};

absl::Status Not(std::string_view why) { return absl::FailedPreconditionError(std::string(why)); }

std::string OtherVersion(const Part& part) {
  return absl::StrCat(part.what, " has version ", part.has, ", and this kvserver takes version ",
                      part.takes);
}

// Reads the beginning of a file; less than asked for if it is shorter.
absl::StatusOr<std::vector<std::byte>> ReadStart(const std::filesystem::path& path, size_t bytes) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path.string()));
  std::vector<std::byte> start(bytes);
  file.read(reinterpret_cast<char*>(start.data()), static_cast<std::streamsize>(bytes));
  start.resize(static_cast<size_t>(file.gcount()));
  return start;
}

// The headers of all files begin so.
struct FileStart {
  uint64_t magic;
  uint32_t version;
};
std::optional<FileStart> StartOf(std::span<const std::byte> bytes) {
  FileStart start{};
  if (bytes.size() < offsetof(FileStart, version) + sizeof(start.version)) return std::nullopt;
  std::memcpy(&start.magic, bytes.data(), sizeof(start.magic));
  std::memcpy(&start.version, bytes.data() + offsetof(FileStart, version), sizeof(start.version));
  return start;
}

// Adds the part that a file is, if its magic is right.
absl::Status AddFile(const std::filesystem::path& path, uint64_t magic, uint32_t takes,
                     std::vector<Part>* parts) {
  GANNET_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, ReadStart(path, sizeof(FileStart)));
  const std::optional<FileStart> start = StartOf(bytes);
  if (!start || start->magic != magic) {
    return Not(absl::StrCat(path.string(), " is damaged, or none of kvserver's"));
  }
  parts->push_back({path.filename().string(), start->version, takes});
  return absl::OkStatus();
}

// The directory of --data, or of --tier.
absl::Status LookAtDirectory(const std::string& path, std::vector<Part>* parts) {
  const std::filesystem::path folder(path);
  if (std::filesystem::exists(folder / kTierFileName)) {
    return AddFile(folder / kTierFileName, kTierMagic, kTierLayout, parts);
  }
  if (!std::filesystem::exists(folder / kDataFileName)) {
    return Not(absl::StrCat(path, " is no directory of kvserver: it has no ", kDataFileName,
                            ", and no ", kTierFileName));
  }
  GANNET_RETURN_IF_ERROR(AddFile(folder / kDataFileName, kDataMagic, kDataVersion, parts));
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    absl::Status status;
    if (FirstOfSegment(name)) {
      status = AddFile(entry.path(), kSegmentMagic, kSegmentVersion, parts);
    } else if (PositionOfSnapshot(name)) {
      status = AddFile(entry.path(), kSnapshotMagic, kSnapshotVersion, parts);
    }
    // A running server removes segments that it does not need any more.
    if (!status.ok() && !absl::IsNotFound(status)) return status;
  }
  if (error) return Not(absl::StrCat("cannot read ", path, ": ", error.message()));
  std::ranges::sort(*parts, {}, &Part::what);
  return absl::OkStatus();
}

absl::Status LookAtMemoryFile(const std::string& path, std::vector<Part>* parts) {
  GANNET_ASSIGN_OR_RETURN(const std::vector<std::byte> start, ReadStart(path, kIntentsOffset));
  if (start.size() < kIntentsOffset) return Not("it is too short for a memory file");
  const RecoveryHeader header = LoadRecoveryHeader(start);
  if (header.magic != kRecoveryMagic) return Not("it is no memory file");
  std::optional<FileStart> superblock = StartOf(start);
  if (superblock->magic != kSuperblockMagic) {  // a server was killed while it wrote the first one
    superblock = StartOf(std::span(start).subspan(kSuperblockCopyOffset));
  }
  const bool stubs = header.format == kRecoveryFormatWithStubs;
  parts->push_back(
      {"memory file", header.format, stubs ? kRecoveryFormatWithStubs : kRecoveryFormat});
  if (superblock->magic == kSuperblockMagic) {
    parts->push_back({"layout", superblock->version, kLayoutVersion});
  }
  return absl::OkStatus();
}

// Maps the file, of which only the headers are read: it may have terabytes.
absl::Status CheckHeaders(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return Not(std::strerror(errno));
  std::error_code error;
  const size_t bytes = std::filesystem::file_size(path, error);
  void* const address = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  if (address == MAP_FAILED) return Not(std::strerror(errno));
  const auto has_items =
      RecoveryArea::HasItems(std::span(static_cast<const std::byte*>(address), bytes));
  munmap(address, bytes);
  return has_items.ok() ? absl::OkStatus() : Not(std::string(has_items.status().message()));
}

void Print(const std::string& path, std::span<const Part> parts, const absl::Status& verdict,
           bool json) {
  if (json) {
    Json object = {{"path", path}, {"takes_over", verdict.ok()}, {"parts", Json::array()}};
    for (const Part& part : parts) {
      object["parts"].push_back(
          {{"name", part.what}, {"version", part.has}, {"takes", part.takes}});
    }
    object["why_not"] = verdict.ok() ? Json(nullptr) : Json(std::string(verdict.message()));
    std::fputs((object.dump() + "\n").c_str(), stdout);
    return;
  }
  std::string text;
  for (const Part& part : parts) {
    absl::StrAppend(&text, part.what, " version ", part.has, ", this kvserver takes ", part.takes,
                    "\n");
  }
  if (verdict.ok()) absl::StrAppend(&text, "this kvserver takes over ", path, "\n");
  std::fputs(text.c_str(), stdout);
}

absl::Status Judge(const std::string& path, std::vector<Part>* parts) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return Not(absl::StrCat("there is no ", path));
  if (std::filesystem::is_directory(path)) {
    GANNET_RETURN_IF_ERROR(LookAtDirectory(path, parts));
  } else {
    GANNET_RETURN_IF_ERROR(LookAtMemoryFile(path, parts));
  }
  for (const Part& part : *parts) {
    if (part.has != part.takes) return Not(OtherVersion(part));
  }
  if (std::filesystem::is_directory(path)) return absl::OkStatus();
  return CheckHeaders(path);
}

}  // namespace

absl::Status UpgradeCheck(const std::string& path, bool json) {
  std::vector<Part> parts;
  const absl::Status verdict = Judge(path, &parts);
  Print(path, parts, verdict, json);
  if (verdict.ok()) return verdict;
  return Not(absl::StrCat("cannot take over ", path, ": ", std::string(verdict.message())));
}

}  // namespace gannet
