#include "server/main/disk/data_directory.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"

namespace gannet {
namespace {

constexpr char kNewDataFileName[] = "gannet-data.new";

uint64_t Checksum(const DataHeader& header) {
  return Xxh3(&header, offsetof(DataHeader, checksum), /*seed=*/0);
}

absl::StatusOr<uint64_t> MakeNumber(Files* files, uint64_t number) {
  DataHeader header{.magic = kDataMagic,
                    .version = kDataVersion,
                    .header_bytes = sizeof(DataHeader),
                    .journal_id = number,
                    .checksum = 0};
  header.checksum = Checksum(header);
  // An earlier try may have left it.
  files->Remove(kNewDataFileName).IgnoreError();
  GANNET_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files->Create(kNewDataFileName));
  GANNET_RETURN_IF_ERROR(file->WriteAt(0, std::as_bytes(std::span(&header, 1))));
  GANNET_RETURN_IF_ERROR(file->Sync());
  GANNET_RETURN_IF_ERROR(files->Rename(kNewDataFileName, kDataFileName));
  GANNET_RETURN_IF_ERROR(files->SyncDirectory());
  return header.journal_id;
}

}  // namespace

absl::StatusOr<uint64_t> ReadNumberOfDirectory(Files* files) {
  GANNET_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files->Open(kDataFileName));
  DataHeader header{};
  GANNET_ASSIGN_OR_RETURN(const size_t bytes,
                          file->ReadAt(0, std::as_writable_bytes(std::span(&header, 1))));
  const std::string path = absl::StrCat(files->path(), "/", kDataFileName);
  if (bytes != sizeof(header) || header.magic != kDataMagic ||
      header.checksum != Checksum(header)) {
    return absl::DataLossError(absl::StrCat(
        path,
        " is damaged: bring it back from a copy of the directory, or start with an empty "
        "directory and --restore_from=",
        files->path()));
  }
  if (header.version != kDataVersion || header.header_bytes != sizeof(header)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " was written by another version of kvserver, for data version ",
                     header.version, "; this one has ", kDataVersion));
  }
  return header.journal_id;
}

absl::StatusOr<uint64_t> NumberOfDirectory(Files* files, uint64_t of_new) {
  const absl::StatusOr<uint64_t> number = ReadNumberOfDirectory(files);
  if (!absl::IsNotFound(number.status())) return number;
  GANNET_ASSIGN_OR_RETURN(const std::vector<std::string> names, files->List());
  for (const std::string& name : names) {
    if (name == kNewDataFileName) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(files->path(), " has files (", name, ") but no ", kDataFileName,
                     ", so it is no directory of kvserver: give an empty one"));
  }
  return MakeNumber(files, of_new);
}

}  // namespace gannet
