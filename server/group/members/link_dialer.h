#ifndef GANNET_SERVER_GROUP_MEMBERS_LINK_DIALER_H_
#define GANNET_SERVER_GROUP_MEMBERS_LINK_DIALER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/auth/auth_file.h"
#include "common/base/boot_time.h"
#include "server/group/members/backup_link.h"
#include "server/group/members/group_context.h"
#include "server/group/members/joiner.h"
#include "server/group/members/primary_address.h"

namespace gannet {

// How a member of a group begins to follow a primary: that of its own group as a backup, or that of
// another one as a receiver of partitions. It looks up the primary's name, begins a link to it, and
// the walk through its items.
//
// Owner thread only.
class LinkDialer {
 public:
  // `keys`: the first one with "replica" proves who this is; nullptr: none. Both outlive the dialer
  // and what it began.
  LinkDialer(const GroupContext& context, AuthFile* keys);

  struct Call {
    std::string endpoint;     // of the primary: "HOST:PORT"
    uint64_t token = 0;       // random, not 0
    uint64_t ring_bytes = 0;  // as the primary's
    BootTime deadline;        // until the link is open
  };
  // Begins a link, or returns nullptr while its name is looked up: then call it again. The errors
  // are those of BackupLink::Start.
  absl::StatusOr<std::unique_ptr<BackupLink>> Dial(const Call& call);
  // Fills in where the items are, by which key to fetch them, and what the context has.
  // `rails`: all addresses of whom the link goes to, if there are several.
  absl::StatusOr<std::unique_ptr<Joiner>> BeginWalk(const BackupLink& link,
                                                    std::span<const std::string> rails,
                                                    Joiner::Options options) const;

 private:
  // Without those that are there twice.
  std::vector<Device> Devices() const;

  const GroupContext& context_;
  AuthFile* const keys_;
  PrimaryAddress address_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_LINK_DIALER_H_
