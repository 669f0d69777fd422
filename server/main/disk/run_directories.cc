// Makes, finds and removes the directories of runs. One that cannot be a member's is refused, and
// nothing is removed before a newer run is whole.

#include "server/main/disk/run_directories.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/log/journal/posix_files.h"
#include "server/main/disk/data_directory.h"
#include "server/main/disk/snapshot.h"

namespace gannet {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kRunPrefix = "run-";
constexpr size_t kRunDigits = 6;
// Says what the directory is. So a server alone refuses it, to which it would seem empty.
constexpr char kMarkName[] = "gannet-member";
constexpr mode_t kOnlyOwner = S_IRWXU;

std::string NameOfRun(uint64_t number) {
  char name[32];
  std::snprintf(name, sizeof(name), "run-%0*llu", static_cast<int>(kRunDigits),
                static_cast<unsigned long long>(number));
  return name;
}

std::optional<uint64_t> NumberOfRun(std::string_view name) {
  if (!name.starts_with(kRunPrefix)) return std::nullopt;
  uint64_t number = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kRunPrefix.size(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end || NameOfRun(number) != name) {
    return std::nullopt;
  }
  return number;
}

struct Run {
  uint64_t number = 0;
  std::string path;
  bool whole = false;
};

// Returns the runs in a directory, the oldest one first.
std::vector<Run> RunsIn(const std::string& path) {
  std::vector<Run> runs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path, error)) {
    const std::optional<uint64_t> number = NumberOfRun(entry.path().filename().string());
    if (!number) continue;
    Run run = {.number = *number, .path = absl::StrCat(path, "/", NameOfRun(*number))};
    for (const auto& file : fs::directory_iterator(run.path, error)) {
      run.whole |= PositionOfSnapshot(file.path().filename().string()).has_value();
    }
    runs.push_back(std::move(run));
  }
  std::ranges::sort(runs, {}, &Run::number);
  return runs;
}

absl::Status RemoveRun(const std::string& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (!error) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot remove ", path, ": ", error.message()));
}

// Makes an empty directory one of a member. Refuses any other that is not one yet.
absl::Status Mark(Files* directory) {
  GANNET_ASSIGN_OR_RETURN(const std::vector<std::string> names, directory->List());
  if (std::ranges::find(names, kMarkName) != names.end()) return absl::OkStatus();
  if (std::ranges::find(names, kDataFileName) != names.end()) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory->path(),
                     " has the items of a server that is in no group: give a member of a group an "
                     "empty directory"));
  }
  if (!names.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(directory->path(), " has files (", names.front(),
                     "), and is no directory of a member of a ", "group: give an empty one"));
  }
  GANNET_RETURN_IF_ERROR(directory->Create(kMarkName).status());
  return directory->SyncDirectory();
}

}  // namespace

absl::StatusOr<std::unique_ptr<RunDirectories>> RunDirectories::Open(const std::string& path) {
  std::unique_ptr<RunDirectories> runs(new RunDirectories());
  GANNET_ASSIGN_OR_RETURN(runs->directory_, OpenDirectory(path));
  GANNET_RETURN_IF_ERROR(Mark(runs->directory_.get()));
  const std::vector<Run> there = RunsIn(path);
  uint64_t next = 1;
  for (auto run = there.rbegin(); run != there.rend(); ++run) {
    next = std::max(next, run->number + 1);
    if (run->whole && runs->former_ == nullptr) {
      GANNET_ASSIGN_OR_RETURN(runs->former_, OpenDirectory(run->path));
    } else {
      GANNET_RETURN_IF_ERROR(RemoveRun(run->path));
    }
  }
  const std::string own = absl::StrCat(path, "/", NameOfRun(next));
  if (mkdir(own.c_str(), kOnlyOwner) != 0) {
    return absl::InternalError(absl::StrCat("cannot make ", own, ": ", std::strerror(errno)));
  }
  GANNET_RETURN_IF_ERROR(runs->directory_->SyncDirectory());
  GANNET_ASSIGN_OR_RETURN(runs->own_, OpenDirectory(own));
  return runs;
}

absl::Status RunDirectories::RemoveFormer() {
  if (former_ == nullptr) return absl::OkStatus();
  const std::string path = former_->path();
  former_.reset();
  GANNET_RETURN_IF_ERROR(RemoveRun(path));
  return directory_->SyncDirectory();
}

std::string NewestRunIn(const std::string& path) {
  const std::vector<Run> runs = RunsIn(path);
  const auto newest =
      std::find_if(runs.rbegin(), runs.rend(), [](const Run& run) { return run.whole; });
  return newest == runs.rend() ? path : newest->path;
}

}  // namespace gannet
