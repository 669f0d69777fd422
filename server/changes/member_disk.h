#ifndef GANNET_SERVER_CHANGES_MEMBER_DISK_H_
#define GANNET_SERVER_CHANGES_MEMBER_DISK_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "server/changes/change.h"

namespace gannet {

// The disk of a group's member, as the group's rules see it. It keeps the changes of the store from
// Begin on. Each run of the process begins empty, and has a copy of its own; that of the former run
// stays until the new one is whole.
//
// Thread safety: behind from any thread. All others by the member's thread.
class MemberDisk {
 public:
  virtual ~MemberDisk() = default;

  // Returns true if writes should wait because the disk is behind. May give up the disk.
  virtual bool behind() = 0;

  // Returns the path at which a former run left all of the group's items, as they were at some
  // moment. Returns "" if no run left any.
  virtual std::string former_path() const = 0;
  // Returns an LSN of this history up to which the former run has all changes. It may have more.
  // Returns 0 if that is not known.
  virtual uint64_t FormerLsn(uint64_t history) const = 0;
  // Calls `make` with each item and change of the former run. REQUIRES: there is a former run, and
  // !begun().
  virtual absl::Status Restore(const std::function<absl::Status(const Change&)>& make) const = 0;

  virtual bool begun() const = 0;
  // Keeps all changes from now on. REQUIRES: the store has all of the group's items, and nobody
  // changes it at the moment.
  virtual void Begin() = 0;
  // This member is primary from now on: clients write, and the store has their writes only when
  // they are published. REQUIRES: as Begin.
  virtual void Lead() = 0;
  // The store has all changes up to this LSN of the group's stream.
  virtual void Note(uint64_t history, uint64_t lsn) = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_CHANGES_MEMBER_DISK_H_
