#ifndef GANNET_SERVER_GROUP_MOVE_GIVER_SOURCE_H_
#define GANNET_SERVER_GROUP_MOVE_GIVER_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/auth/auth_file.h"
#include "common/base/boot_time.h"
#include "common/base/server_time.h"
#include "server/group/members/backup_link.h"
#include "server/group/members/group_context.h"
#include "server/group/members/joiner.h"
#include "server/group/members/link_dialer.h"
#include "server/group/move/copy_pace.h"
#include "server/group/move/move_source.h"
#include "server/group/move/partition_intake.h"
#include "server/group/replica/group_times.h"
#include "server/log/stream/long_value_parts.h"
#include "server/log/stream/ring_reader.h"

namespace gannet {

// The primary of a giver's group, over a link like a backup's (BackupLink):
//
//   name is looked up --> link --hello, welcome--> stream --all before it is published--> walk
//
// The stream brings what is committed at the giver. Each record of the intake's partitions goes to
// the intake, in their order, and the walk's filter hears of it at that moment.
//
// One thread.
class GiverSource final : public MoveSource {
 public:
  // `endpoint`: of the primary of the group `giver`. `keys`: as Backup's. All that is pointed to
  // outlives the source.
  GiverSource(const GroupContext& context, AuthFile* keys, PartitionIntake* intake,
              const std::string& giver, const std::string& endpoint, BootTime now);
  ~GiverSource() override;

  void Poll(BootTime now) override;
  const absl::Status& status() const override { return status_; }
  bool copied() const override { return copied_; }
  double walked() const override;
  uint64_t behind() const override;
  bool HasUpTo(uint64_t lsn) const override;
  void TellClosing() override;
  int64_t lease_ns() const override;
  void StopAt(uint64_t lsn) override { stop_at_ = lsn; }
  const std::optional<MoveEnded>& ended() const override { return ended_; }
  ServerTime clock_behind_end() const override { return clock_behind_end_; }
  void BeginEnd() override;
  bool over() const override { return ending_ && (link_ == nullptr || link_->fenced()); }

  void Arm(BootTime now) override;
  void Woken() override;
  void AddFds(std::vector<int>* fds) const override;
  BootTime next_at() const override { return next_at_; }

 private:
  // A change that the intake could not take yet.
  struct Late {
    Change change;
    std::string key;
    std::string value;
  };

  int64_t PatienceNs() const;
  void Fail(absl::Status why);
  void Connect(BootTime now);
  void SendHello();
  void OnMessage(const BackupLink::Message& message);
  void OnWelcome(const ReplicaWelcome& welcome);
  void OnBeacon(const Beacon& beacon);
  void TakeStream();
  void OnRecord(const RingRecord& record);
  void OnChange(const Change& change);
  // Returns false if it must be tried again later.
  bool Give(const Change& change);
  void Walk(BootTime now);

  const GroupContext& context_;  // of the own group
  PartitionIntake* const intake_;
  LinkDialer::Call call_;
  GroupTimes times_;
  LinkDialer dialer_;
  std::unique_ptr<BackupLink> link_;
  std::optional<RingReader> reader_;
  LongValueParts parts_;
  std::deque<Late> late_;
  std::unique_ptr<Joiner> joiner_;
  CopyPace pace_;           // of the walk
  bool pauses_ = false;     // the walk
  uint64_t committed_ = 0;  // LSN, that the giver told
  uint64_t stop_at_ = UINT64_MAX;
  bool copied_ = false;
  bool ending_ = false;
  ServerTime asked_at_;  // the own clock, before the hello was sent
  std::optional<MoveEnded> ended_;
  ServerTime clock_behind_end_;
  absl::Status status_;
  BootTime heard_;
  BootTime next_at_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MOVE_GIVER_SOURCE_H_
