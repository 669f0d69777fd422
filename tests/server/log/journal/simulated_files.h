#ifndef GANNET_TESTS_SERVER_LOG_JOURNAL_SIMULATED_FILES_H_
#define GANNET_TESTS_SERVER_LOG_JOURNAL_SIMULATED_FILES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/log/journal/files.h"

namespace gannet {

// A directory in memory that behaves as badly as a disk may. After a power cut, a file has what was
// synced, and of what was not synced any subset of sectors; one of them may be torn at any byte. Of
// the names, it has what SyncDirectory confirmed, and any number of the changes after that, in
// their order.
//
// Any single operation can be made to fail. Operations are numbered from 1.
class SimulatedFiles : public Files {
 public:
  static constexpr size_t kSectorBytes = 512;
  enum class Fault : uint8_t {
    kNone,
    kPowerCut,   // this operation and all later ones fail; a write may be done in part
    kNoSpace,    // ResourceExhausted, kNoSpaceFor operations long; a write may be done in part
    kIoError,    // once; a write may be done in part
    kSyncFails,  // the next sync fails, and drops what it should have synced, as Linux may
  };
  static constexpr uint64_t kNoSpaceFor = 4;

  explicit SimulatedFiles(uint64_t seed) : random_(seed) {}

  // The fault happens at this operation.
  void SetFault(Fault fault, uint64_t operation) {
    fault_ = fault;
    fault_at_ = operation;
  }
  uint64_t operations() const { return operations_; }
  // Returns whether the fault has happened.
  bool faulted() const { return fault_ != Fault::kNone && operations_ >= fault_at_; }

  // Returns false after a fault that cut the power.
  bool has_power() const { return power_; }
  // What the machine finds when the power is back. No fault is set. Files that were open must not
  // be used again.
  void CutPower();

  // For tests that damage what lies on the disk.
  std::vector<std::byte>* BytesOf(const std::string& name) { return &names_.at(name)->bytes; }

  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& name) override;
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name) override;
  absl::Status Remove(const std::string& name) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::StatusOr<std::vector<std::string>> List() override;
  absl::Status Find(const std::string& name) override {
    return names_.contains(name) ? absl::OkStatus() : absl::NotFoundError(name);
  }
  absl::Status SyncDirectory() override;
  std::string path() const override { return "/simulated"; }

 private:
  friend class SimulatedFile;
  struct Inode {
    std::vector<std::byte> bytes;
    std::vector<std::byte> synced;  // what a power cut leaves for certain
    std::set<uint64_t> dirty;       // sectors that differ
  };
  using Names = std::map<std::string, std::shared_ptr<Inode>>;

  // Counts an operation. Returns what happens to it.
  Fault Begin();
  absl::Status WriteAt(Inode* inode, uint64_t offset, std::span<const std::byte> bytes);
  static void Write(Inode* inode, uint64_t offset, std::span<const std::byte> bytes);
  absl::Status Sync(Inode* inode);
  void CutPower(Inode* inode);
  size_t Below(size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random_); }

  std::mt19937_64 random_;
  Names names_;
  std::vector<Names> unsynced_names_{Names()};  // the confirmed ones, and after each change
  uint64_t operations_ = 0;
  Fault fault_ = Fault::kNone;
  uint64_t fault_at_ = 0;
  bool power_ = true;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_LOG_JOURNAL_SIMULATED_FILES_H_
