#include "tests/server/log/journal/simulated_files.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet {
namespace {

absl::Status ErrorOf(SimulatedFiles::Fault fault) {
  switch (fault) {
    case SimulatedFiles::Fault::kNone:
    case SimulatedFiles::Fault::kSyncFails:
      return absl::OkStatus();
    case SimulatedFiles::Fault::kNoSpace:
      return absl::ResourceExhaustedError("no space left (simulated)");
    case SimulatedFiles::Fault::kPowerCut:
    case SimulatedFiles::Fault::kIoError:
      return absl::InternalError("input/output error (simulated)");
  }
  return absl::OkStatus();
}

}  // namespace

class SimulatedFile : public File {
 public:
  SimulatedFile(SimulatedFiles* files, std::shared_ptr<SimulatedFiles::Inode> inode)
      : files_(files), inode_(std::move(inode)) {}

  absl::Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
    return files_->WriteAt(inode_.get(), offset, bytes);
  }
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> bytes) override {
    if (absl::Status status = ErrorOf(files_->Begin()); !status.ok()) return status;
    const size_t size = inode_->bytes.size();
    const size_t n = offset >= size ? 0 : std::min<size_t>(bytes.size(), size - offset);
    std::copy_n(inode_->bytes.begin() + static_cast<ptrdiff_t>(offset), n, bytes.begin());
    return n;
  }
  absl::Status Reserve(uint64_t bytes) override {
    if (absl::Status status = ErrorOf(files_->Begin()); !status.ok()) return status;
    if (inode_->bytes.size() < bytes) inode_->bytes.resize(bytes);
    return absl::OkStatus();
  }
  absl::Status Truncate(uint64_t bytes) override {
    if (absl::Status status = ErrorOf(files_->Begin()); !status.ok()) return status;
    inode_->bytes.resize(bytes);
    return absl::OkStatus();
  }
  absl::StatusOr<uint64_t> Size() override {
    if (absl::Status status = ErrorOf(files_->Begin()); !status.ok()) return status;
    return inode_->bytes.size();
  }
  absl::Status Sync() override { return files_->Sync(inode_.get()); }

 private:
  SimulatedFiles* const files_;
  const std::shared_ptr<SimulatedFiles::Inode> inode_;
};

SimulatedFiles::Fault SimulatedFiles::Begin() {
  ++operations_;
  if (!power_) return Fault::kPowerCut;
  if (!faulted()) return Fault::kNone;
  switch (fault_) {
    case Fault::kPowerCut:
      power_ = false;
      return fault_;
    case Fault::kNoSpace:
      return operations_ < fault_at_ + kNoSpaceFor ? fault_ : Fault::kNone;
    case Fault::kIoError:
      return operations_ == fault_at_ ? fault_ : Fault::kNone;
    default:
      return Fault::kNone;
  }
}

void SimulatedFiles::Write(Inode* inode, uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const uint64_t end = offset + bytes.size();
  if (inode->bytes.size() < end) inode->bytes.resize(end);
  std::copy(bytes.begin(), bytes.end(), inode->bytes.begin() + static_cast<ptrdiff_t>(offset));
  for (uint64_t sector = offset / kSectorBytes; sector * kSectorBytes < end; ++sector) {
    inode->dirty.insert(sector);
  }
}

absl::Status SimulatedFiles::WriteAt(Inode* inode, uint64_t offset,
                                     std::span<const std::byte> bytes) {
  const bool had_power = power_;
  const absl::Status status = ErrorOf(Begin());
  if (status.ok()) {
    Write(inode, offset, bytes);
  } else if (had_power && !bytes.empty()) {
    Write(inode, offset, bytes.first(Below(bytes.size())));
  }
  return status;
}

absl::Status SimulatedFiles::Sync(Inode* inode) {
  if (absl::Status status = ErrorOf(Begin()); !status.ok()) return status;
  if (fault_ == Fault::kSyncFails && faulted()) {
    fault_ = Fault::kNone;
    // A later sync finds nothing to write, and succeeds.
    inode->dirty.clear();
    return absl::InternalError("sync failed (simulated)");
  }
  inode->synced.resize(inode->bytes.size());
  for (const uint64_t sector : inode->dirty) {
    const size_t from = sector * kSectorBytes;
    if (from >= inode->bytes.size()) continue;
    const size_t n = std::min(kSectorBytes, inode->bytes.size() - from);
    std::memcpy(inode->synced.data() + from, inode->bytes.data() + from, n);
  }
  inode->dirty.clear();
  return absl::OkStatus();
}

void SimulatedFiles::CutPower(Inode* inode) {
  // The new length may be known, or not.
  std::vector<std::byte> left = inode->synced;
  if (Below(2) == 0) left.resize(inode->bytes.size());
  for (const uint64_t sector : inode->dirty) {
    const size_t from = sector * kSectorBytes;
    if (from >= left.size() || from >= inode->bytes.size()) continue;
    const size_t n = std::min({kSectorBytes, left.size() - from, inode->bytes.size() - from});
    const size_t fate = Below(4);  // lost, torn, or written
    if (fate > 0)
      std::memcpy(left.data() + from, inode->bytes.data() + from, fate == 1 ? Below(n) : n);
  }
  inode->bytes = inode->synced = std::move(left);
  inode->dirty.clear();
}

void SimulatedFiles::CutPower() {
  Names names = unsynced_names_[Below(unsynced_names_.size())];
  std::set<Inode*> seen;
  for (auto& [name, inode] : names) {
    if (seen.insert(inode.get()).second) CutPower(inode.get());
  }
  names_ = names;
  unsynced_names_ = {names_};
  fault_ = Fault::kNone;
  power_ = true;
}

absl::StatusOr<std::unique_ptr<File>> SimulatedFiles::Create(const std::string& name) {
  if (absl::Status status = ErrorOf(Begin()); !status.ok()) return status;
  if (names_.contains(name)) return absl::AlreadyExistsError(name);
  const auto inode = std::make_shared<Inode>();
  names_[name] = inode;
  unsynced_names_.push_back(names_);
  return std::make_unique<SimulatedFile>(this, inode);
}

absl::StatusOr<std::unique_ptr<File>> SimulatedFiles::Open(const std::string& name) {
  if (absl::Status status = ErrorOf(Begin()); !status.ok()) return status;
  const auto found = names_.find(name);
  if (found == names_.end()) return absl::NotFoundError(name);
  return std::make_unique<SimulatedFile>(this, found->second);
}

absl::Status SimulatedFiles::Remove(const std::string& name) {
  if (absl::Status status = ErrorOf(Begin()); !status.ok()) return status;
  if (names_.erase(name) == 0) return absl::NotFoundError(name);
  unsynced_names_.push_back(names_);
  return absl::OkStatus();
}

absl::Status SimulatedFiles::Rename(const std::string& from, const std::string& to) {
  if (absl::Status status = ErrorOf(Begin()); !status.ok()) return status;
  const auto found = names_.find(from);
  if (found == names_.end()) return absl::NotFoundError(from);
  names_[to] = found->second;
  names_.erase(from);
  unsynced_names_.push_back(names_);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> SimulatedFiles::List() {
  if (absl::Status status = ErrorOf(Begin()); !status.ok()) return status;
  std::vector<std::string> names;
  for (const auto& [name, inode] : names_) names.push_back(name);
  return names;
}

absl::Status SimulatedFiles::SyncDirectory() {
  if (absl::Status status = ErrorOf(Begin()); !status.ok()) return status;
  if (fault_ == Fault::kSyncFails && faulted()) {
    fault_ = Fault::kNone;
    return absl::InternalError("sync failed (simulated)");
  }
  unsynced_names_ = {names_};
  return absl::OkStatus();
}

}  // namespace gannet
