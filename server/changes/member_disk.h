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

  // Whether writes should wait, since the disk has much to do. May give the disk up.
  virtual bool behind() = 0;

  // Returns where a former run left all of the group's items, as they were at some moment; "" if
  // none did.
  virtual std::string former_path() const = 0;
  // Returns up to which LSN of this history the former run has everything at least; 0: unknown.
  virtual uint64_t FormerLsn(uint64_t history) const = 0;
  // Gives `make` the items and changes of the former run. REQUIRES: there is one, and not begun.
  virtual absl::Status Restore(const std::function<absl::Status(const Change&)>& make) const = 0;

  virtual bool begun() const = 0;
  // The store has all of the group's items. Changes from now on are kept. REQUIRES: nobody changes
  // the store at the moment.
  virtual void Begin() = 0;
  // Clients write from now on, and their writes are in the store only when they are published.
  // REQUIRES: as Begin.
  virtual void Lead() = 0;
  // All up to this LSN of the group's stream is in the store.
  virtual void Note(uint64_t history, uint64_t lsn) = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_CHANGES_MEMBER_DISK_H_
