#include "tests/server/memory/tier/bad_disk.h"

#include <algorithm>

#include "server/memory/tier/tier_format.h"

namespace gannet {
namespace {

bool IsWhole(uint64_t offset, std::span<const std::byte> bytes) {
  return offset % kTierBlockBytes == 0 && bytes.size() % kTierBlockBytes == 0 &&
         reinterpret_cast<uintptr_t>(bytes.data()) % kTierBlockBytes == 0;
}

}  // namespace

void BadDisk::Hold(bool* held, bool hold) {
  const std::lock_guard lock(mutex_);
  *held = hold;
  changed_.notify_all();
}

void BadDisk::AwaitHeld(int n) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return held_ >= n; });
}

void BadDisk::WaitWhile(const bool& held) {
  std::unique_lock lock(mutex_);
  if (!held) return;
  ++held_;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !held; });
  --held_;
}

std::vector<std::byte> BadDisk::Copy() {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

void BadDisk::Restore(const std::vector<std::byte>& bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ = bytes;
}

absl::Status BadDisk::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  WaitWhile(writes_held_);
  if (!IsWhole(offset, bytes)) return absl::InvalidArgumentError("not of whole blocks");
  const Write what = writes_;
  const size_t n = what == Write::kDone   ? bytes.size()
                   : what == Write::kLost ? 0
                                          : bytes.size() / 2;
  {
    const std::lock_guard lock(mutex_);
    if (offset + bytes.size() > bytes_.size()) return absl::InternalError("behind the end");
    std::copy_n(bytes.begin(), n, bytes_.begin() + static_cast<ptrdiff_t>(offset));
  }
  bytes_written_ += bytes.size();
  if (what == Write::kFails) return absl::InternalError("input/output error");
  if (what == Write::kNoSpace) return absl::ResourceExhaustedError("no space left");
  return absl::OkStatus();
}

absl::StatusOr<size_t> BadDisk::ReadAt(uint64_t offset, std::span<std::byte> bytes) {
  WaitWhile(reads_held_);
  if (!IsWhole(offset, bytes)) return absl::InvalidArgumentError("not of whole blocks");
  const Read what = reads_;
  if (what == Read::kFails) return absl::InternalError("input/output error");
  const std::lock_guard lock(mutex_);
  if (offset + bytes.size() > bytes_.size()) return absl::InternalError("behind the end");
  if (what == Read::kElsewhere && offset + bytes.size() + kTierBlockBytes <= bytes_.size()) {
    offset += kTierBlockBytes;
  }
  std::copy_n(bytes_.begin() + static_cast<ptrdiff_t>(offset), bytes.size(), bytes.begin());
  if (what == Read::kBits) {
    for (size_t i = 0; i < bytes.size(); i += 64) bytes[i] ^= std::byte{1};
  }
  return what == Read::kShort ? bytes.size() - kTierBlockBytes : bytes.size();
}

}  // namespace gannet
