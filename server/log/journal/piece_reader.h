#ifndef GANNET_SERVER_LOG_JOURNAL_PIECE_READER_H_
#define GANNET_SERVER_LOG_JOURNAL_PIECE_READER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "server/log/journal/files.h"

namespace gannet {

// Reads a file in large pieces, and gives any range of it that is asked for in ascending order.
class PieceReader {
 public:
  PieceReader(File* file, uint64_t file_bytes)
      : file_(file), piece_(std::min<uint64_t>(kPieceBytes, file_bytes)) {}

  // Returns up to `bytes` bytes from `offset` on; fewer only at the end of the file. Valid until
  // the next call.
  absl::StatusOr<std::span<const std::byte>> At(uint64_t offset, size_t bytes) {
    if (offset < begin_ || offset + bytes > begin_ + filled_) {
      buffer_.resize(std::max(piece_, bytes));
      GANNET_ASSIGN_OR_RETURN(filled_, file_->ReadAt(offset, buffer_));
      begin_ = offset;
    }
    const size_t at = std::min<uint64_t>(offset - begin_, filled_);
    return std::span<const std::byte>(buffer_).subspan(at, std::min(bytes, filled_ - at));
  }

 private:
  static constexpr size_t kPieceBytes = 4 << 20;

  File* const file_;
  const size_t piece_;
  std::vector<std::byte> buffer_;
  uint64_t begin_ = 0;
  size_t filled_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_JOURNAL_PIECE_READER_H_
