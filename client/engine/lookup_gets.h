#ifndef GANNET_CLIENT_ENGINE_LOOKUP_GETS_H_
#define GANNET_CLIENT_ENGINE_LOOKUP_GETS_H_

#include <string_view>

#include "client/engine/hit_reports.h"
#include "client/engine/op_table.h"
#include "client/engine/value_reads.h"
#include "common/base/client_clock.h"

namespace gannet {

// GETs that are not ordinary: a Lookup says what to READ. Also the reads that need no value, and
// GETs of large items. Ends them with a hit or a miss, or queues a request if only the server can
// tell. One owner thread.
class LookupGets {
 public:
  // All of these outlive it.
  LookupGets(OpTable& ops, HitReports& reports, const ClientClock& clock)
      : ops_(ops), reports_(reports), clock_(clock), values_(ops) {}

  // lookup_gets.cc
  // These three begin. `cached`: where the item may be; empty if this is not known. REQUIRES: the
  // session takes READs (ClientSession::QueueRead).
  void Start(Op& op, Slot cached);
  void StartHeadRead(Op& op, Slot cached);  // Exists, and GetIfChanged
  void StartInto(Op& op);  // into the caller's memory. REQUIRES: no write of its key is under way
  // Begins behind a compare-and-swap: the first READ is queued behind it. Queues nothing if there
  // is no buffer for it.
  void StartBehindLock(Op& op);
  // Continues an ordinary GET.
  void GoOn(Op& op);
  // A READ is done that is not an ordinary GET's, or whose operation is over.
  void OnRead(Op& op);
  // Goes on with operations that wait for long buffers.
  void FeedStarved();
  bool has_starved() const { return values_.has_starved(); }
  // End an operation. The hit's value lies in the operation's buffers.
  void FinishHit(Op& op, ItemInfo info, std::string_view value);
  void FinishMiss(Op& op);
  // Copies the value that an operation found to where the caller wants it.
  void CopyToCallerMemory(Op& op);

 private:
  void PlanRead(Op& op);
  void OnOutOfDate(Op& op);
  Lookup::Step Step(Op& op);
  void Feed(Op& op);
  void Advance(Op& op, Lookup::Step step);
  void FinishLargeHit(Op& op);
  void NoteItem(const Op& op, std::string_view value);
  void EndWithHit(Op& op, const ItemInfo& info, std::string_view value);
  // These four: lookup_gets_heads.cc
  void PlanHeadRead(Op& op);
  void OnHeadRead(Op& op);
  void OnKnownConfirmed(Op& op);
  void ReportKnown(Op& op);

  OpTable& ops_;
  HitReports& reports_;
  const ClientClock& clock_;
  ValueReads values_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_LOOKUP_GETS_H_
