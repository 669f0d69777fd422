#ifndef GANNET_SERVER_LOG_JOURNAL_READ_JOURNAL_H_
#define GANNET_SERVER_LOG_JOURNAL_READ_JOURNAL_H_

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/log/changes/record.h"
#include "server/log/journal/files.h"

namespace gannet {

struct ReadJournalOptions {
  Files* files = nullptr;
  uint64_t journal_id = 0;
  // The first record that is needed: where the snapshot that was loaded began.
  uint64_t from = 0;
  // Cuts off what lies behind the last whole record, which gives back its space. Off: changes
  // nothing on the disk.
  bool cut = true;
};

struct JournalEnd {
  uint64_t position = 0;  // behind the last record
  uint64_t changes = 0;   // given to `apply`
  // What was cut off, or would be. None of it was ever confirmed as being on disk.
  uint64_t torn_bytes = 0;
};

// Gives every change from position `from` on to `apply`, in their order. Ends at the first error
// that `apply` returns.
//
// A bad record in the last segment is where a power cut stopped the writing, and ends the journal.
// Errors: DataLoss, with the file and the offset, if anything else is bad or missing: a segment, a
// record of another segment, a record that was on disk for certain when a later one was made, or
// the end of the last segment's file. FailedPrecondition: a file is of another server, or of
// another version of the format.
absl::StatusOr<JournalEnd> ReadJournal(const ReadJournalOptions& options,
                                       absl::FunctionRef<absl::Status(const Change&)> apply);

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_JOURNAL_READ_JOURNAL_H_
