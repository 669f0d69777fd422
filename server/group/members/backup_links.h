#ifndef GANNET_SERVER_GROUP_MEMBERS_BACKUP_LINKS_H_
#define GANNET_SERVER_GROUP_MEMBERS_BACKUP_LINKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/auth/auth_file.h"
#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/protocol/replica.h"
#include "server/group/members/backup_link.h"
#include "server/group/members/group_context.h"
#include "server/group/members/joiner.h"
#include "server/group/members/line_log.h"
#include "server/group/members/link_dialer.h"
#include "server/group/replica/neighbours.h"

namespace gannet {

// A backup's links to one primary after the other: there is at most one, and a former one that is
// still being flushed.
//
//   none --Connect--> link --Fence, Drop, or Retire--> none
//
// If the primary has several rails, each link goes over the one behind the former one's.
//
// 1. No link begins before the former one is flushed.
// 2. A link that is lost stays here, with its ring, until it is retired or dropped.
//
// Owner thread only.
class BackupLinks {
 public:
  // `keys` as LinkDialer has them. All outlive this.
  BackupLinks(const GroupContext& context, AuthFile* keys, LineLog* log)
      : context_(context), log_(log), dialer_(context, keys) {}

  // Begins a link to `primary`, which is to be open within its lease. Does nothing while there is
  // one, while a former one is flushed, or soon after the last try.
  void Connect(const GroupMember& primary, int64_t lease_ns, BootTime now);
  void SayHello(uint64_t epoch, uint64_t history, uint64_t applied);
  // The same to the primary of a former link, which goes on there.
  void SayResume(uint64_t epoch, const RingReader::Begin& at);
  // To the primary that was said hello: all items are here.
  void SayReady();
  // Follows the stream of a welcome that came. Returns false if the link is lost by that.
  bool Accept(const ReplicaWelcome& welcome, BootTime now);
  // The primary lives.
  void Hear(BootTime now) { heard_ = now; }
  // The link cannot be used any more.
  void Lose() { link_->lost = true; }
  // The link is over, and nobody wants what its ring has. No other one begins before `again`.
  void Retire(BootTime again);
  // Lets the primary write no more. Returns whether it cannot, so that the ring stays as it is.
  bool Fence();
  // REQUIRES: Fence returned true.
  void Drop() {
    link_.reset();
    ++turn_;
  }

  void Poll(BootTime now);
  // Returns the next welcome or beacon that came. Once there is none, sees whether the link is
  // lost.
  std::optional<BackupLink::Message> Take();
  // As LinkDialer, from the primary of the link.
  absl::StatusOr<std::unique_ptr<Joiner>> BeginWalk(Joiner::Options options) const {
    return dialer_.BeginWalk(*link_->end, link_->rails, std::move(options));
  }

  // nullptr: there is none.
  BackupLink* link() const { return link_ ? link_->end.get() : nullptr; }
  // Whether there is a link that is not lost.
  bool usable() const { return link_ && !link_->lost; }
  bool IsUsableFor(const GroupMember& primary) const {
    return usable() && link_->primary == primary.incarnation;
  }
  // Whether the link is to be made anew over another rail of its primary: it is lost, or nothing
  // comes by it. Never if the primary has one rail, or refused to go on.
  bool IsDueForAnother(const GroupTimes& times, BootTime now) const {
    return link_ && link_->another && (link_->lost || now >= AnotherAt(times));
  }
  // When that is, if the primary stays silent.
  BootTime AnotherAt(const GroupTimes& times) const {
    return link_ && link_->another ? heard_ + times.rail_silence_ns() : BootTime::Never();
  }
  // Whether a former link is being flushed.
  bool flushes() const { return retired_ != nullptr; }
  // Of the primary that was sent the last hello; 0: none was.
  uint64_t epoch() const { return epoch_; }
  // When the last link began, or its primary was heard.
  BootTime heard() const { return heard_; }

 private:
  static constexpr int64_t kRetryNs = 50 * kNsPerMs;
  static constexpr int64_t kLookUpNs = kNsPerMs;  // a primary waits for survivors

  struct Link {
    std::unique_ptr<BackupLink> end;  // never null
    uint64_t primary = 0;             // its incarnation
    std::vector<std::string> rails;   // of the primary, if it has several
    bool another = false;             // one of them may carry on
    bool resumes = false;             // it was said that a former link goes on
    bool lost = false;                // it cannot be used any more
  };
  // Returns where to connect to, or nullopt if it is not known yet.
  std::optional<std::string> Choose(const GroupMember& primary, std::vector<std::string>* rails);

  // What is neither a welcome nor a beacon, or comes out of place.
  void OnOther(const BackupLink::Message& message);

  const GroupContext& context_;
  LineLog* const log_;
  LinkDialer dialer_;
  std::optional<Link> link_;
  std::unique_ptr<BackupLink> retired_;  // is being flushed
  uint64_t epoch_ = 0;
  SpokenVersions versions_;
  BootTime heard_;
  BootTime connect_at_;  // not before this
  // Of a primary with several rails: whose turn it is. The first one is another one for each
  // backup.
  uint64_t turn_of_ = 0;  // the primary's incarnation
  uint32_t turn_ = 0;
  uint64_t refused_by_ = 0;  // a primary that knows no former link to go on with: its incarnation
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_BACKUP_LINKS_H_
