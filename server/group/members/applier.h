#ifndef GANNET_SERVER_GROUP_MEMBERS_APPLIER_H_
#define GANNET_SERVER_GROUP_MEMBERS_APPLIER_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "server/group/members/group_context.h"
#include "server/group/members/joiner.h"
#include "server/log/changes/change.h"
#include "server/log/stream/long_value_parts.h"
#include "server/log/stream/ring_reader.h"
#include "server/log/stream/ring_record.h"
#include "server/memory/store/store.h"
#include "server/sessions/session/session_copies.h"

namespace gannet {

// Makes the records of a stream in a backup's store, in the order in which they are given. Puts
// long values together from their parts.
//
// Owner thread only.
class Applier {
 public:
  // `context` outlives this.
  explicit Applier(const GroupContext& context) : context_(context), store_(context.store) {}

  void Apply(const RingRecord& record);
  // The same for updates, each step for many of them, so that the store's memory is prefetched.
  void ApplyUpdates(const ProvenUpdates& updates);
  // Makes a change that an earlier run kept on its disk. ResourceExhausted: there is no room.
  absl::Status Restore(const Change& change);
  // Tells the joiner of each change before it is made; nullptr: nobody.
  void TellJoiner(Joiner* joiner) { joiner_ = joiner; }

  // The group's sessions, as far as records were applied.
  SessionCopies& sessions() { return sessions_; }
  // Not OK: a record could not be made, so the store is not a copy any more.
  const absl::Status& status() const { return status_; }
  // Higher than each version that was seen.
  uint64_t version_next() const { return version_next_; }
  void OnVersion(uint64_t next) { version_next_ = std::max(version_next_, next); }

 private:
  void Make(const Change& change);
  void ApplyOne(const std::byte* update);
  static constexpr size_t kUpdatesAtOnce = 32;
  using Guesses = std::array<Store::Guess, kUpdatesAtOnce>;
  // Makes some of the updates, for which there are guesses. `recorded` as in Store::ApplyUpdate.
  template <bool recorded>
  void MakeUpdates(ProvenUpdates::Iterator from, ProvenUpdates::Iterator to,
                   const Guesses& guesses);
  absl::Status MakeInStore(const Change& change);

  const GroupContext& context_;
  Store* const store_;
  SessionCopies sessions_;
  Joiner* joiner_ = nullptr;
  absl::Status status_;
  uint64_t version_next_ = 1;
  LongValueParts parts_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_APPLIER_H_
