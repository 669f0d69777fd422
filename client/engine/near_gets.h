#ifndef GANNET_CLIENT_ENGINE_NEAR_GETS_H_
#define GANNET_CLIENT_ENGINE_NEAR_GETS_H_

#include <cstdint>

#include "client/engine/hit_reports.h"
#include "client/engine/lookup_gets.h"
#include "client/engine/op_table.h"

namespace gannet {

// GETs of a client that has a near cache (near_cache.h).
//
//   fresh -> AnswerFresh: there is a copy that answers -> it is over
//         -> Start: READ, and perhaps copied
//
// One owner thread.
class NearGets {
 public:
  // `on`: the servers have near caches. All of these outlive it.
  NearGets(OpTable& ops, HitReports& reports, LookupGets& lookups, bool on)
      : on_(on), ops_(ops), reports_(reports), lookups_(lookups) {}

  bool on() const { return on_; }
  // Answers fresh GETs from copies. Reports them to the caller of Poll, and frees their slots, as
  // long as there is room for completions. What is left is to be started. Returns true if there is
  // nothing else to do, so that this Poll may leave out the sessions. REQUIRES: on().
  bool AnswerFresh();

  // Returns whether an operation is one of them, if its server has a near cache.
  static bool AreFor(const Op& op) {
    const bool gets = op.request.type == OpType::kGet || op.request.type == OpType::kGetInto;
    return gets && op.session().ready() && !op.misplaced;
  }
  // Begins to READ a GET that no copy answered. Returns false if it is to be READ as any other GET.
  // REQUIRES: the operation is fresh, AreFor(op), no write of its key is under way, and `server`
  // has a near cache.
  bool Start(EngineServer& server, Op& op);

 private:
  // How long sessions may be left out of Polls, unless a header is to be READ. Far less than any
  // time by which peers take each other for dead, and than the leases of primaries.
  static constexpr int64_t kPauseNsMax = 10 * kNsPerMs;
  static constexpr int64_t kNow = INT64_MIN / 2;

  bool MayPause();
  bool Holds(EngineServer& server);
  void Report(HitReports& reports, Op& op, ItemCopies::Copy& copy);
  bool Finish(EngineServer& server, Op& op, ItemCopies::Copy& copy);
  bool Keep(Op& op, const ItemCopies::Copy& copy, std::string_view* value);
  static void CountUse(EngineServer& server, ItemCopies::Copy& copy);
  void CountAnswers(EngineServer& server, ptrdiff_t answers);
  static void TellUses(EngineServer& server, ItemCopies::Copy& copy);

  const bool on_;
  OpTable& ops_;
  HitReports& reports_;
  LookupGets& lookups_;
  int64_t pause_end_ns_ = kNow;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_NEAR_GETS_H_
