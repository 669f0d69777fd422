#ifndef GANNET_SERVER_GROUP_MOVE_PARTITION_RECEIVER_H_
#define GANNET_SERVER_GROUP_MOVE_PARTITION_RECEIVER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/boot_time.h"
#include "common/base/server_time.h"
#include "server/group/members/group_context.h"
#include "server/group/members/member_task.h"
#include "server/group/move/move_batch.h"
#include "server/group/move/move_source.h"
#include "server/group/move/partition_dropper.h"
#include "server/group/move/partition_intake.h"
#include "server/group/replica/map_store.h"
#include "server/writes/writes.h"

namespace gannet {

// Brings partitions to the group whose primary it runs in, as operators wish (docs/partitions.md):
//
//   drops --nothing is left--> copies --walk over, nearly all of the stream--> closes
//     closes: the giver's leases are short --close, the map says so--> ends
//     ends: all is taken, committed --give, the map says so--> over
//
// A batch is all that is to come from one giver: one stream and one walk. All of it is closed
// together, for a moment, so clients wait once.
//
// 1. It begins with an empty partition, each time (rule 1).
// 2. Nothing else is decided while a transaction's result is unknown: it is sent again until a
//    newer map is seen, or until it has certainly lost (rule 9).
// 3. It asks to be the owner only once all that it took, and a version above all of the giver's, is
//    committed in its own group (rules 5 and 7), and only if the giver has ended what is closed now
//    (rule 4), and its own clock has reached what the giver's was then (rule 15). The transaction
//    compares the map and the register of the own group (rule 8).
// 4. If the link breaks before it has all, or the giver does not end what is closed, it opens that
//    again (rule 10), and begins again. So nobody waits while it copies. What
//    another primary of its group has left closed is opened, too.
//
// One thread, the member's.
class PartitionReceiver {
 public:
  // All outlive it. `sources` makes those that give to intake().
  PartitionReceiver(const GroupContext& context, Writes* writes, MoveSourceMaker* sources);
  ~PartitionReceiver();

  PartitionIntake* intake() { return &intake_; }
  // The partitions that are being brought, of which nobody else may drop anything.
  PartitionIntake::Partitions taking() const;

  // As MemberTask.
  void Poll(BootTime now, const GroupRegister& own);
  void Arm(BootTime now);
  void Woken();
  void AddFds(std::vector<int>* fds) const;
  BootTime next_at() const { return next_at_; }
  void Tell(MoveProgress* progress) const;

 private:
  enum class Step : uint8_t { kDrops, kCopies, kCloses, kEnds };

  void PollTxn(BootTime now);
  // REQUIRES: txn_.
  bool SawNewerMap() const;
  void Send(MapTxn txn);
  // Sends what a function of move_batch.h returned, unless that is an error.
  void Send(absl::StatusOr<MapTxn> txn);
  void PollSources(BootTime now);
  void Work(const MovesSeen& seen, const GroupRegister& own, BootTime now);
  void BeginBatch(const MovesSeen& seen, BootTime now);
  void EndBatch(std::string_view why, BootTime now);
  // Lets go of the batch. What is left of it begins again later.
  void BeginAgain(const absl::Status& why, BootTime now);
  void LeaveBatch();

  // Each is a step.
  void Drop(BootTime now);
  void Copy(BootTime now);
  bool IsSoonCopied(BootTime now) const;
  void Close(const MovesSeen& seen, const GroupRegister& own, BootTime now);
  void Give(const MovesSeen& seen, const GroupRegister& own, BootTime now);
  // Takes the end of what is closed. Returns whether all of it is taken.
  bool TakeEnd();
  bool IsLate(BootTime now) const;
  void TellClosing(BootTime now);
  std::string TimesText(BootTime now) const;
  void Soon(BootTime at) { next_at_ = std::min(next_at_, at); }

  const GroupContext& context_;
  Writes* const writes_;
  MoveSourceMaker* const sources_;
  PartitionIntake intake_;
  PartitionDropper dropper_;
  std::optional<MoveBatch> batch_;
  Step step_ = Step::kDrops;
  std::unique_ptr<MoveSource> source_;
  std::vector<std::unique_ptr<MoveSource>> retired_;
  // A transaction whose result is not known.
  std::optional<MapTxn> txn_;
  bool txn_under_way_ = false;
  BootTime txn_at_;  // none is sent before this
  bool dropping_ = false;
  uint64_t drop_after_ = 0;         // ticket: nothing is dropped before that is published
  BootTime look_at_;                // while it copies: at the register
  BootTime walk_at_;                // when the walk had begun
  BootTime told_at_;                // when it told the giver that it will close
  BootTime close_at_;               // nothing is closed before this
  BootTime closed_at_;              // when they were closed, as far as it knows
  std::optional<MoveEnded> ended_;  // what counts of what the giver told
  bool taken_ = false;              // all that is closed, and the giver's version
  uint64_t taken_ticket_ = 0;       // then it is committed when that is published
  ServerTime give_at_;              // and is given once the own clock has reached this
  int64_t newest_wish_ = 0;         // its mod_revision
  BootTime wished_at_;              // when it was seen first
  BootTime begin_at_;
  int64_t again_ns_ = 0;  // how long it waited before it began again
  BootTime next_at_;
  size_t wanted_ = 0;
  uint64_t moved_ = 0;
  std::string trouble_;

  // Of the batch, for people.
  BootTime begun_at_;
  BootTime copied_at_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MOVE_PARTITION_RECEIVER_H_
