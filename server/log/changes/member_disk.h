#ifndef GANNET_SERVER_LOG_CHANGES_MEMBER_DISK_H_
#define GANNET_SERVER_LOG_CHANGES_MEMBER_DISK_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "server/log/changes/change.h"
#include "server/log/changes/kept_run.h"

namespace gannet {

// The disk of a group's member, as the group's rules see it. It keeps the changes of the store from
// Begin on. Each run of the process begins empty, and has a copy of its own; that of the former run
// stays until the new one is whole.
//
// Thread safety: behind, refuses and always from any thread. All others by the member's thread.
class MemberDisk {
 public:
  virtual ~MemberDisk() = default;

  // Whether a primary's writes are acknowledged only when they are on this disk.
  virtual bool always() const { return false; }
  // Whether writes should wait, since the disk has much to do. May give the disk up.
  virtual bool behind() = 0;
  // Whether a primary may take no write: those wait for the disk, which was given up.
  virtual bool refuses() const { return false; }

  // Returns where a former run left all of the group's items, as they were at some moment; "" if
  // none did.
  virtual std::string former_path() const = 0;
  // Returns up to which LSN of this history the former run has everything at least; 0: unknown.
  virtual uint64_t FormerLsn(uint64_t history) const = 0;
  // Returns of which history the former run has items; 0: it has none, or that is not known.
  virtual uint64_t former_history() const { return 0; }
  // Returns what the former run has of this history; nullopt: nothing, or it is not known.
  virtual std::optional<KeptRun> Former(uint64_t /*history*/) const { return std::nullopt; }
  // Gives `make` the items and changes of the former run. REQUIRES: there is one, and not begun.
  virtual absl::Status Restore(absl::FunctionRef<absl::Status(const Change&)> make) const = 0;
  // The former run, which has items of `history`, counts as one of this process, too, if the
  // register says that this process has begun the group again, with the next history and this
  // epoch. Reads all of the run before, and blocks. DataLoss and others: what is there cannot be
  // read. REQUIRES: as Restore.
  virtual absl::Status Claim(uint64_t /*history*/, uint64_t /*next_history*/, uint64_t /*epoch*/) {
    return absl::UnimplementedError("it keeps no claims");
  }

  virtual bool begun() const = 0;
  // The store has all of the group's items. Changes from now on are kept. `restored`: the epoch
  // that this process leads with the items of the former run, or of an empty group; 0: it leads
  // none yet. REQUIRES: nobody changes the store at the moment.
  virtual void Begin(uint64_t history, uint64_t restored) = 0;
  // Whether the former run is not needed any more: this one would do instead.
  virtual bool whole() const { return true; }
  // Clients write from now on, and their writes are in the store only when they are published.
  // REQUIRES: as Begin.
  virtual void Lead() = 0;
  // A primary of this epoch wants to take clients. Returns whether it may: with `always`, once all
  // that is in the store is on the disk, and so is a note of the epoch. Call it until it returns
  // true.
  virtual bool MayOpen(uint64_t /*epoch*/) { return true; }
  // All up to this LSN of the group's stream is in the store.
  virtual void Note(uint64_t history, uint64_t lsn) = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_CHANGES_MEMBER_DISK_H_
