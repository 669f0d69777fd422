#ifndef GANNET_SERVER_LOG_CHANGES_CHANGE_SINK_H_
#define GANNET_SERVER_LOG_CHANGES_CHANGE_SINK_H_

#include <cstdint>
#include <optional>
#include <span>

#include "server/log/changes/change.h"
#include "server/log/changes/session_record.h"

namespace gannet {

class UpdateLane;

// Where a change is in the stream of all changes.
struct ChangePlace {
  uint64_t end = 0;      // the position behind it
  void* room = nullptr;  // where its bytes go; known to who copies them
};

// Takes changes in two steps, so that no value is copied or hashed under a lock that writes of
// other keys take: Reserve gives a change its place among the others, and Fill copies it there.
//
// Thread safety: any thread may call it.
class ChangeRecorder {
 public:
  virtual ~ChangeRecorder() = default;
  // Returns the place, or nullopt if the change cannot be recorded. Then it must not happen.
  // REQUIRES: the lock of the key, so that its changes come in their order.
  virtual std::optional<ChangePlace> Reserve(const Change& change) = 0;
  // The same for a deletion that undoes waiting writes. `answers` say so to their sessions. They
  // are recorded right before it, or not at all if it cannot be. It promises nothing to anybody, so
  // it may be recorded when other changes may not (docs/group.md, "Which wait may wait for which").
  virtual std::optional<ChangePlace> ReserveUndo(const Change& deletion,
                                                 std::span<const SessionRecord> answers) = 0;
  // REQUIRES: the lock of the key is held since Reserve. Nothing behind an unfilled change becomes
  // safe, so call it soon.
  virtual void Fill(const Change& change, const ChangePlace& place) = 0;
  // Begins to record updates, many under the locks that each would take. Returns false if none is
  // taken now. Otherwise the lane has begun, and whatever is appended to it is recorded by
  // EndUpdates. Nobody else records anything in between. So call that soon, and take no lock
  // meanwhile but by trying. The lane may have no memory yet: then give it some. REQUIRES: no lock
  // is held, or the lock of the key of the only update.
  virtual bool BeginUpdates(UpdateLane* lane) = 0;
  virtual void EndUpdates(UpdateLane* lane) = 0;
  // Tells who takes the changes of a session, between the last change and the next one.
  virtual void RecordSession(const SessionRecord&) {}
};

// Takes the stream of all changes of a store. The store gives it each change under the key's lock,
// after the change was decided and before anybody can see it. So the changes of one key come in the
// order in which they happen.
//
// Thread safety: any thread may call it.
class ChangeSink {
 public:
  virtual ~ChangeSink() = default;
  // Returns false if the change cannot be recorded. Then it must not happen.
  virtual bool Record(const Change& change) = 0;
  // Whether it takes updates now (update_lane.h). Then whoever asked may record some, soon.
  virtual bool TakesUpdates() const { return true; }
  // Records updates, in their order. It refuses none. REQUIRES: TakesUpdates was asked; the lane is
  // sealed; the locks of all their keys.
  virtual void RecordUpdates(UpdateLane* lane);  // as it is here: records each
  // Whether somebody takes note of changes now. If not, who makes many of them may Pass them, at
  // once, instead of Record each. REQUIRES: that does not change meanwhile.
  virtual bool Hears() const { return true; }
  // Passes changes whose records would have so many bytes (RecordBytes).
  virtual void Pass(uint64_t /*bytes*/) {}
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_CHANGES_CHANGE_SINK_H_
