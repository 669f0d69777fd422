#ifndef GANNET_TESTS_SERVER_LOG_JOURNAL_HOOKED_FILES_H_
#define GANNET_TESTS_SERVER_LOG_JOURNAL_HOOKED_FILES_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "server/log/journal/files.h"

namespace gannet {

// Files that tell of each sync before it happens, also of the directory. So a test can do then what
// others do meanwhile. A sync is as slow as the test likes.
//
// Thread safety: any thread, also if the files below are for one only.
class HookedFiles : public Files {
 public:
  HookedFiles(Files* files, std::function<void()> before_sync)
      : files_(files), before_sync_(std::move(before_sync)) {}

  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& name) override {
    MutexLock lock(mutex_);
    return Hook(files_->Create(name));
  }
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name) override {
    MutexLock lock(mutex_);
    return Hook(files_->Open(name));
  }
  absl::Status Remove(const std::string& name) override {
    MutexLock lock(mutex_);
    return files_->Remove(name);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    MutexLock lock(mutex_);
    return files_->Rename(from, to);
  }
  absl::StatusOr<std::vector<std::string>> List() override {
    MutexLock lock(mutex_);
    return files_->List();
  }
  absl::Status Find(const std::string& name) override {
    MutexLock lock(mutex_);
    return files_->Find(name);
  }
  absl::Status SyncDirectory() override {
    before_sync_();
    MutexLock lock(mutex_);
    return files_->SyncDirectory();
  }
  std::string path() const override { return files_->path(); }

 private:
  class Hooked : public File {
   public:
    Hooked(std::unique_ptr<File> file, HookedFiles* all) : file_(std::move(file)), all_(all) {}
    absl::Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) override {
      MutexLock lock(all_->mutex_);
      return file_->WriteAt(offset, bytes);
    }
    absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> bytes) override {
      MutexLock lock(all_->mutex_);
      return file_->ReadAt(offset, bytes);
    }
    absl::Status Reserve(uint64_t bytes) override {
      MutexLock lock(all_->mutex_);
      return file_->Reserve(bytes);
    }
    absl::Status Truncate(uint64_t bytes) override {
      MutexLock lock(all_->mutex_);
      return file_->Truncate(bytes);
    }
    absl::StatusOr<uint64_t> Size() override {
      MutexLock lock(all_->mutex_);
      return file_->Size();
    }
    absl::Status Sync() override {
      all_->before_sync_();
      MutexLock lock(all_->mutex_);
      return file_->Sync();
    }

   private:
    const std::unique_ptr<File> file_;
    HookedFiles* const all_;
  };

  absl::StatusOr<std::unique_ptr<File>> Hook(absl::StatusOr<std::unique_ptr<File>> file) {
    if (!file.ok()) return file;
    return std::make_unique<Hooked>(*std::move(file), this);
  }

  Files* const files_;
  const std::function<void()> before_sync_;
  Mutex mutex_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_LOG_JOURNAL_HOOKED_FILES_H_
