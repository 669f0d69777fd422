#ifndef GANNET_SERVER_JOURNAL_POSIX_FILES_H_
#define GANNET_SERVER_JOURNAL_POSIX_FILES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/journal/files.h"

namespace gannet {

// Opens a directory of the file system. NotFound: there is none. FailedPrecondition: it belongs to
// another user, or others may write to it, so that its files could be anybody's; or another process
// has opened it so.
absl::StatusOr<std::unique_ptr<Files>> OpenDirectory(const std::string& path);

}  // namespace gannet

#endif  // GANNET_SERVER_JOURNAL_POSIX_FILES_H_
