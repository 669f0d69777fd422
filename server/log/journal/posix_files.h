#ifndef GANNET_SERVER_LOG_JOURNAL_POSIX_FILES_H_
#define GANNET_SERVER_LOG_JOURNAL_POSIX_FILES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/log/journal/files.h"

namespace gannet {

// Opens a directory of the file system. If only the last component of its path is missing, makes
// it, with rights for nobody else. NotFound: there is none, and more is missing.
// FailedPrecondition: it belongs to another user, or others may write to it, so that its files
// could be anybody's (CheckDataDirectory); or another process has opened it.
absl::StatusOr<std::unique_ptr<Files>> OpenDirectory(const std::string& path);

// Opens a directory of anybody, whose files are only read: Create, Remove, Rename and what writes
// to a file fail. NotFound: there is none. FailedPrecondition: another process has opened it by
// OpenDirectory.
absl::StatusOr<std::unique_ptr<Files>> OpenDirectoryToRead(const std::string& path);

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_JOURNAL_POSIX_FILES_H_
