#ifndef GANNET_SERVER_LOG_JOURNAL_SEGMENT_H_
#define GANNET_SERVER_LOG_JOURNAL_SEGMENT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace gannet {

// The journal is one row of records, numbered by bytes from 0: its positions. It lies in files, the
// segments. A segment has a header of kSegmentHeaderBytes, and then the records from position
// `first` on, one behind the other. It ends where the next segment begins.
//
// A segment's space is taken before its first record is written. What is not written yet is zero.
// The header says how long the file was made. So if a file's end is cut off, a reader can tell that
// from the end of what was written.

struct SegmentHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint64_t journal_id;  // of the directory; another server's segments have another one
  uint64_t first;       // position of the first record
  uint64_t checksum;    // XXH3-64 of the fields before, seed 0
  // When the file's space is given back, these two fields are written again, and nothing else is.
  uint64_t file_bytes;           // the file is not shorter
  uint64_t file_bytes_checksum;  // XXH3-64 of the fields before, seed 0
};
static_assert(sizeof(SegmentHeader) == 56 && std::is_trivially_copyable_v<SegmentHeader>);

inline constexpr uint64_t kSegmentMagic = 0x4c4e524a54454e47;  // "GNETJRNL"
inline constexpr uint32_t kSegmentVersion = 1;
inline constexpr size_t kSegmentHeaderBytes = 64;  // the rest is zero

// The name of a segment that is not complete yet.
inline constexpr char kNewSegmentName[] = "journal.new";
std::string SegmentName(uint64_t first);
// Returns the position in a segment's name, or nullopt if it is another file's.
std::optional<uint64_t> FirstOfSegment(std::string_view name);

std::array<std::byte, kSegmentHeaderBytes> EncodeSegmentHeader(uint64_t journal_id, uint64_t first,
                                                               uint64_t file_bytes);

enum class SegmentProof : uint8_t {
  kOk,
  kDamaged,        // not a whole header
  kOtherVersion,   // a header of another version of this format
  kOtherJournal,   // a whole header of another journal
  kOtherPosition,  // a whole header of another segment
};
SegmentProof ProveSegment(std::span<const std::byte, kSegmentHeaderBytes> bytes,
                          uint64_t journal_id, uint64_t first);

// Returns how long the file is at least. Returns nullopt if it is not known: an earlier version of
// kvserver wrote the header, or a power cut stopped the writing of the two fields.
std::optional<uint64_t> FileBytesOf(std::span<const std::byte, kSegmentHeaderBytes> header);

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_JOURNAL_SEGMENT_H_
