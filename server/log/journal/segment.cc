#include "server/log/journal/segment.h"

#include <charconv>
#include <cstdio>
#include <cstring>

#include "common/base/hash.h"

namespace gannet {
namespace {

constexpr std::string_view kPrefix = "journal-";
constexpr size_t kDigits = 16;

uint64_t Checksum(const SegmentHeader& header) {
  return Xxh3(&header, offsetof(SegmentHeader, checksum), /*seed=*/0);
}

uint64_t FileBytesChecksum(const SegmentHeader& header) {
  return Xxh3(&header, offsetof(SegmentHeader, file_bytes_checksum), /*seed=*/0);
}

}  // namespace

std::string SegmentName(uint64_t first) {
  char digits[kDigits + 1];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(first));
  return std::string(kPrefix) + digits;
}

std::optional<uint64_t> FirstOfSegment(std::string_view name) {
  if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kDigits) return std::nullopt;
  uint64_t first = 0;
  const char* const end = name.data() + name.size();
  const auto parsed = std::from_chars(name.data() + kPrefix.size(), end, first, /*base=*/16);
  if (parsed.ec != std::errc() || parsed.ptr != end || SegmentName(first) != name) {
    return std::nullopt;
  }
  return first;
}

std::array<std::byte, kSegmentHeaderBytes> EncodeSegmentHeader(uint64_t journal_id, uint64_t first,
                                                               uint64_t file_bytes) {
  SegmentHeader header{.magic = kSegmentMagic,
                       .version = kSegmentVersion,
                       .header_bytes = kSegmentHeaderBytes,
                       .journal_id = journal_id,
                       .first = first,
                       .checksum = 0,
                       .file_bytes = file_bytes,
                       .file_bytes_checksum = 0};
  header.checksum = Checksum(header);
  header.file_bytes_checksum = FileBytesChecksum(header);
  std::array<std::byte, kSegmentHeaderBytes> bytes{};
  std::memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

SegmentProof ProveSegment(std::span<const std::byte, kSegmentHeaderBytes> bytes,
                          uint64_t journal_id, uint64_t first) {
  SegmentHeader header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.magic != kSegmentMagic || header.checksum != Checksum(header)) {
    return SegmentProof::kDamaged;
  }
  if (header.version != kSegmentVersion || header.header_bytes != kSegmentHeaderBytes) {
    return SegmentProof::kOtherVersion;
  }
  if (header.journal_id != journal_id) return SegmentProof::kOtherJournal;
  if (header.first != first) return SegmentProof::kOtherPosition;
  return SegmentProof::kOk;
}

std::optional<uint64_t> FileBytesOf(std::span<const std::byte, kSegmentHeaderBytes> header) {
  SegmentHeader fields;
  std::memcpy(&fields, header.data(), sizeof(fields));
  if (fields.file_bytes_checksum != FileBytesChecksum(fields)) return std::nullopt;
  return fields.file_bytes;
}

}  // namespace gannet
