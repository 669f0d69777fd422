#ifndef GANNET_TESTS_SERVER_DISK_HOOKED_FILES_H_
#define GANNET_TESTS_SERVER_DISK_HOOKED_FILES_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/journal/files.h"

namespace gannet {

// Files that tell of each sync before it happens, so that a test can do then what others do
// meanwhile.
class HookedFiles : public Files {
 public:
  HookedFiles(Files* files, std::function<void()> before_sync)
      : files_(files), before_sync_(std::move(before_sync)) {}

  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& name) override {
    return Hook(files_->Create(name));
  }
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name) override {
    return Hook(files_->Open(name));
  }
  absl::Status Remove(const std::string& name) override { return files_->Remove(name); }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    return files_->Rename(from, to);
  }
  absl::StatusOr<std::vector<std::string>> List() override { return files_->List(); }
  absl::Status SyncDirectory() override { return files_->SyncDirectory(); }
  std::string path() const override { return files_->path(); }

 private:
  class Hooked : public File {
   public:
    Hooked(std::unique_ptr<File> file, const std::function<void()>* before_sync)
        : file_(std::move(file)), before_sync_(before_sync) {}
    absl::Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
      return file_->WriteAt(offset, bytes);
    }
    absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> bytes) override {
      return file_->ReadAt(offset, bytes);
    }
    absl::Status Reserve(uint64_t bytes) override { return file_->Reserve(bytes); }
    absl::Status Truncate(uint64_t bytes) override { return file_->Truncate(bytes); }
    absl::StatusOr<uint64_t> Size() override { return file_->Size(); }
    absl::Status Sync() override {
      (*before_sync_)();
      return file_->Sync();
    }

   private:
    const std::unique_ptr<File> file_;
    const std::function<void()>* const before_sync_;
  };

  absl::StatusOr<std::unique_ptr<File>> Hook(absl::StatusOr<std::unique_ptr<File>> file) {
    if (!file.ok()) return file;
    return std::make_unique<Hooked>(*std::move(file), &before_sync_);
  }

  Files* const files_;
  const std::function<void()> before_sync_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_DISK_HOOKED_FILES_H_
