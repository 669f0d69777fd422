#ifndef GANNET_SERVER_MAIN_DISK_DATA_DIRECTORY_H_
#define GANNET_SERVER_MAIN_DISK_DATA_DIRECTORY_H_

#include <cstdint>
#include <type_traits>

#include "absl/status/statusor.h"
#include "server/log/journal/files.h"

namespace gannet {

// The file that tells a server's directory from any other, with the random number that all its
// other files carry too. docs/durability-formats.md has the same table.
struct DataHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint64_t journal_id;
  uint64_t checksum;  // XXH3-64 of the fields before, seed 0
};
static_assert(sizeof(DataHeader) == 32 && std::is_trivially_copyable_v<DataHeader>);

inline constexpr char kDataFileName[] = "gannet-data";
inline constexpr uint64_t kDataMagic = 0x4154414454454e47;  // "GNETDATA"
inline constexpr uint32_t kDataVersion = 1;

// Returns the number of a server's directory. Makes an empty directory one, with the number
// `of_new`. FailedPrecondition: it has files, but is no server's; or it is of another version.
// DataLoss: its header is damaged. The texts say what to do.
absl::StatusOr<uint64_t> NumberOfDirectory(Files* files, uint64_t of_new);
// The same for a directory that is only read. NotFound: it is no server's.
absl::StatusOr<uint64_t> ReadNumberOfDirectory(Files* files);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_DISK_DATA_DIRECTORY_H_
