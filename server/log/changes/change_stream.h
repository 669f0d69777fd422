#ifndef GANNET_SERVER_LOG_CHANGES_CHANGE_STREAM_H_
#define GANNET_SERVER_LOG_CHANGES_CHANGE_STREAM_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/base/word_mutex.h"
#include "server/log/changes/change_sink.h"

namespace gannet {

// Somebody who takes all changes of a store: a journal, a backup, one who watches.
class ChangeConsumer {
 public:
  virtual ~ChangeConsumer() = default;
  // Takes the next change, which ends at place->end. Returns false if it cannot; then the change
  // does not happen. Called by any thread, but by one at a time, and under the stream's lock. Only
  // the stream's first consumer may return false. One consumer of a stream, a journal, may also
  // just take room for the change here, note it in place->room, and copy it in Fill.
  virtual bool Take(const Change& change, ChangePlace* place) = 0;
  // Takes a deletion that undoes waiting writes, and before it the answers that tell their sessions
  // (ChangeRecorder::ReserveUndo). Returns false if it cannot. Then it has taken nothing.
  virtual bool TakeUndo(const Change& deletion, std::span<const SessionRecord> answers,
                        ChangePlace* place) {
    for (const SessionRecord& answer : answers) TakeSession(answer);
    return Take(deletion, place);
  }
  // The second step, if some consumer took room. Called by any thread, also by several at once, and
  // in any order.
  virtual void Fill(const Change&, const ChangePlace&) {}
  // Begins updates. Returns false if it takes none now, which only the first consumer may.
  // Otherwise it takes, in EndUpdates, all that the lane has then. It may give the lane memory,
  // from which it takes them without a copy. Called as Take is, and the lock is held until
  // EndUpdates.
  virtual bool BeginUpdates(UpdateLane* /*lane*/) { return takes() == Takes::kNow; }
  virtual void EndUpdates(UpdateLane* lane);  // as it is here: takes and fills each
  // Whether Take does anything now. Called by any thread.
  virtual bool Hears() const { return true; }
  // Takes a record of a session, which lies between the change before and the next one, and has no
  // position of its own. Called as Take is. For consumers that keep sessions; others ignore it.
  virtual void TakeSession(const SessionRecord&) {}
  // Whether it takes changes now. Of the first consumer only. Called by any thread.
  enum class Takes : uint8_t {
    kNow,
    kLater,         // it is behind, and catches up by itself
    kNot,           // until a person mends something
    kTooFewCopies,  // until more members of a group are in sync
  };
  virtual Takes takes() const { return Takes::kNow; }
  // Its watermark: what ends there or before has come where this consumer brings it, for good.
  // Called by any thread.
  virtual uint64_t safe() const { return UINT64_MAX; }
};

// The stream of all changes of a store, in one order, with any number of consumers.
//
//   end = stream.Append(change);                // under the key's lock: Reserve, then Fill
//   if (stream.safe() >= end) publish it;       // when every required consumer has it
//
// Positions are those of a journal: a change takes as many as its record has bytes (record.h). So
// whoever keeps the records keeps the positions, too.
//
// Thread safety: any thread. But Add and Remove while no other thread uses the stream.
class ChangeStream : public ChangeSink, public ChangeRecorder {
 public:
  enum class Need : uint8_t {
    kHears,     // of each change
    kRequired,  // changes of clients are published when it has them
  };

  // Continues at a position. REQUIRES: there is no consumer.
  void BeginAt(uint64_t position);
  // Consumers hear of a change in the order in which they were added. One outlives the stream, or
  // removes itself.
  void Add(ChangeConsumer* consumer, Need need);
  void Remove(ChangeConsumer* consumer);

  // Gives the change to all consumers. Returns the position behind it, or nullopt if the first
  // consumer refuses it. REQUIRES: the lock of the key, so that its changes come in their order.
  std::optional<uint64_t> Append(const Change& change) {
    ChangePlace place;
    if (!Take(change, &place)) return std::nullopt;
    Fill(change, place);
    return place.end;
  }
  bool Record(const Change& change) override { return Append(change).has_value(); }
  bool TakesUpdates() const override { return takes() == ChangeConsumer::Takes::kNow; }
  // REQUIRES: no consumer is required.
  void RecordUpdates(UpdateLane* lane) override;
  bool Hears() const override;
  void Pass(uint64_t bytes) override;
  // The two steps of Append.
  std::optional<ChangePlace> Reserve(const Change& change) override;
  std::optional<ChangePlace> ReserveUndo(const Change& deletion,
                                         std::span<const SessionRecord> answers) override;
  void Fill(const Change& change, const ChangePlace& place) override;
  GANNET_UNCHECKED_LOCKS bool BeginUpdates(UpdateLane* lane) override;
  GANNET_UNCHECKED_LOCKS void EndUpdates(UpdateLane* lane) override;

  // Gives a session's record to all consumers. Nobody waits for it alone: if a change behind it is
  // safe, so is the record.
  void RecordSession(const SessionRecord& record) override;

  // The position behind the last change.
  uint64_t end() const { return end_.load(std::memory_order_relaxed); }
  // Whether changes are taken now.
  ChangeConsumer::Takes takes() const {
    return consumers_.empty() ? ChangeConsumer::Takes::kNow : consumers_.front()->takes();
  }
  // What ends there or before may be published: every required consumer has it.
  uint64_t safe() const;

 private:
  bool Take(const Change& change, ChangePlace* place);
  // Gives a change to all consumers by give(consumer, its place).
  template <class Give>
  bool GiveTo(const Change& change, ChangePlace* place, const Give& give);

  WordMutex mutex_;  // of Reserve and RecordSession
  std::atomic<uint64_t> end_{0};
  std::vector<ChangeConsumer*> consumers_;
  std::vector<const ChangeConsumer*> required_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_CHANGES_CHANGE_STREAM_H_
