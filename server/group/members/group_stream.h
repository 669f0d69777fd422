#ifndef GANNET_SERVER_GROUP_MEMBERS_GROUP_STREAM_H_
#define GANNET_SERVER_GROUP_MEMBERS_GROUP_STREAM_H_

#include <atomic>
#include <cstdint>
#include <span>

#include "common/base/check.h"
#include "server/group/members/primary_stream.h"
#include "server/log/changes/change_stream.h"
#include "server/log/changes/member_disk.h"

namespace gannet {

// A group's place among the consumers of a server's changes. Before the server is primary it takes
// no note of them: they are those that it applies.
//
// Thread safe.
class GroupStream : public ChangeConsumer {
 public:
  // The primary takes no write while this one is behind. Before other threads use the stream.
  void UseDisk(MemberDisk* disk) {
    disk_ = disk;
    waits_for_disk_ = disk != nullptr && disk->always();
  }
  // Whether writes are acknowledged only when they are on this server's disk.
  bool waits_for_disk() const { return waits_for_disk_; }
  // From now on the changes go to a primary, which outlives the workers.
  void Lead(PrimaryStream* primary) { primary_.store(primary, std::memory_order_release); }

  bool Take(const Change& change, ChangePlace* place) override {
    PrimaryStream* const primary = At();
    return primary == nullptr || (!DiskIsBehind() && primary->Append(change, place->end));
  }
  bool TakeUndo(const Change& deletion, std::span<const SessionRecord> answers,
                ChangePlace* place) override {
    PrimaryStream* const primary = At();
    return primary == nullptr ||
           (!DiskIsBehind() && primary->AppendUndo(deletion, answers, place->end));
  }
  bool BeginUpdates(UpdateLane* lane) override {
    PrimaryStream* const primary = At();
    return primary != nullptr && !DiskIsBehind() && primary->BeginUpdates(lane);
  }
  void EndUpdates(UpdateLane* lane) override { At()->EndUpdates(lane); }
  bool Hears() const override { return At() != nullptr; }
  void TakeSession(const SessionRecord& record) override {
    if (PrimaryStream* const primary = At()) primary->AppendSession(record);
  }
  Takes takes() const override {
    const PrimaryStream* const primary = At();
    if (primary != nullptr && !primary->has_copies()) return Takes::kTooFewCopies;
    if (waits_for_disk_ && disk_->refuses()) return Takes::kNot;
    const bool takes = primary != nullptr && primary->takes() && !DiskIsBehind();
    return takes ? Takes::kNow : Takes::kLater;
  }
  uint64_t safe() const override {
    const PrimaryStream* const primary = At();
    return primary == nullptr ? 0 : primary->safe();
  }
  // As PrimaryStream has it. Read it after what it is to tell of was found published.
  uint64_t short_commits() const {
    const PrimaryStream* const primary = At();
    return primary == nullptr ? 0 : primary->short_commits();
  }
  // Ships what was appended, and looks for what is committed.
  void Pump() {
    if (PrimaryStream* const primary = At()) primary->Pump();
  }
  // How a worker sleeps until more is safe. See PrimaryStream. Returns -1 if there is no primary,
  // so that nothing will be.
  int BeginWait() {
    PrimaryStream* const primary = At();
    return primary == nullptr ? -1 : primary->BeginWait();
  }
  // REQUIRES: BeginWait returned a descriptor.
  void EndWait(bool slept) {
    PrimaryStream* const primary = At();
    GANNET_CHECK(primary != nullptr, "no worker waits");
    primary->EndWait(slept);
  }

 private:
  // Acquire: whoever finds the primary finds it whole.
  PrimaryStream* At() const { return primary_.load(std::memory_order_acquire); }
  bool DiskIsBehind() const {
    return disk_ != nullptr && (disk_->behind() || (waits_for_disk_ && disk_->refuses()));
  }

  MemberDisk* disk_ = nullptr;
  bool waits_for_disk_ = false;
  std::atomic<PrimaryStream*> primary_{nullptr};
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_GROUP_STREAM_H_
