#ifndef GANNET_SERVER_GROUP_MOVE_MOVE_SOURCE_H_
#define GANNET_SERVER_GROUP_MOVE_MOVE_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/base/server_time.h"
#include "common/protocol/replica.h"

namespace gannet {

// Where a receiver has partitions from: the giver's primary, by its stream and a walk through its
// memory. Whatever it finds of them, it gives to an intake.
//
// One thread. Nothing blocks.
class MoveSource {
 public:
  static constexpr int64_t kShortNs = kNsPerSecond;

  // REQUIRES: over(), or the process ends.
  virtual ~MoveSource() = default;

  virtual void Poll(BootTime now) = 0;
  // Why it cannot be used any more. OK: it can.
  virtual const absl::Status& status() const = 0;
  // Whether the walk is over.
  virtual bool copied() const = 0;
  // The share of the giver's memory that was walked through.
  virtual double walked() const = 0;
  // The bytes of the giver's stream that are committed and were not taken yet, as far as is known.
  virtual uint64_t behind() const = 0;
  // Whether all records up to this LSN were taken.
  virtual bool HasUpTo(uint64_t lsn) const = 0;
  // Tells the giver that its partitions will be closed soon. It tells clients of short leases for
  // kShortNs from then on. REQUIRES: walked() > 0.
  virtual void TellClosing() = 0;
  // Returns how long leases are that the giver tells of otherwise. REQUIRES: walked() > 0.
  virtual int64_t lease_ns() const = 0;
  // Takes no record that ends behind this LSN until it is told another one. When partitions have
  // another owner, the giver deletes what it has of them, and its stream says so.
  virtual void StopAt(uint64_t lsn) = 0;
  // The newest that the giver told.
  virtual const std::optional<MoveEnded>& ended() const = 0;
  // The giver's clock, by which its items expire, as it told it behind ended(). None: not yet.
  virtual ServerTime clock_behind_end() const = 0;

  // Begins to end. It is polled until it is over.
  virtual void BeginEnd() = 0;
  virtual bool over() const = 0;

  // To sleep: as MemberTask.
  virtual void Arm(BootTime now) = 0;
  virtual void Woken() = 0;
  virtual void AddFds(std::vector<int>* fds) const = 0;
  virtual BootTime next_at() const = 0;
};

// Who makes a receiver's sources.
class MoveSourceMaker {
 public:
  // `endpoint`: of the primary of the group. The source gives what it finds to the receiver's
  // intake.
  virtual std::unique_ptr<MoveSource> MakeSource(const std::string& group,
                                                 const std::string& endpoint, BootTime now) = 0;

 protected:
  ~MoveSourceMaker() = default;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MOVE_MOVE_SOURCE_H_
