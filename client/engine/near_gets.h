#ifndef GANNET_CLIENT_ENGINE_NEAR_GETS_H_
#define GANNET_CLIENT_ENGINE_NEAR_GETS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "client/engine/hit_reports.h"
#include "client/engine/lookup_gets.h"
#include "client/engine/op_table.h"

namespace gannet {

// GETs of a client that has a near cache (near_cache.h).
//
//   no operation -> FindNow: there is a copy that answers now -> it is over
//   fresh        -> AnswerFresh: there is a copy that answers -> it is over
//                -> Start: READ, and perhaps copied
//
// A copy answers at a time that was read after the GET began: the next Poll's, or the caller's. No
// GET overtakes a write of its key that was begun before it.
//
// One owner thread.
class NearGets {
 public:
  // `on`: the servers have near caches. All of these outlive it.
  NearGets(OpTable& ops, HitReports& reports, LookupGets& lookups, bool on)
      : on_(on), ops_(ops), reports_(reports), lookups_(lookups) {}

  bool on() const { return on_; }
  // Returns the copy that answers a GET that began before `now_ns`, which is then counted; nullptr
  // if there is none. Also nullptr if it is time for a Poll. REQUIRES: on().
  ItemCopies::Copy* FindNow(EngineServer& server, KeyHash hash, std::string_view key,
                            int64_t now_ns) {
    if (now_ns >= pause_end_ns_ || !ops_.fresh().empty() || !Holds(server, now_ns)) [[unlikely]]
      return nullptr;
    ItemCopies::Copy* const copy = server.near_cache->Find(*server.session, hash, key, now_ns);
    if (copy == nullptr || IsWritten(hash)) [[unlikely]]
      return nullptr;
    CountUse(server, *copy);
    CountAnswersIn(server, sizeof(Completion), now_ns);
    return copy;
  }
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

  // Returns whether a write of a key of this hash is under way.
  bool IsWritten(KeyHash hash) const { return ops_.order().HasWrites() && HasWrite(hash); }
  [[gnu::noinline]] bool HasWrite(KeyHash hash) const {
    return ops_.order().HasWrite(hash.value());
  }
  bool MayPause();
  // Returns whether copies answer now. The session is then busy for a while, though its server
  // hears nothing.
  static bool Holds(EngineServer& server, int64_t now_ns) {
    ClientSession& session = *server.session;
    if (!session.ready() || !server.near_cache->Holds(session, now_ns)) return false;
    session.lease().OnAnsweredAlone(now_ns);
    return true;
  }
  void Report(HitReports& reports, Op& op, ItemCopies::Copy& copy);
  bool Finish(EngineServer& server, Op& op, ItemCopies::Copy& copy);
  bool Keep(Op& op, const ItemCopies::Copy& copy, std::string_view* value);
  static void CountUse(EngineServer& server, ItemCopies::Copy& copy) {
    if (++copy.uses == ItemCopies::kUsesPerTouch) [[unlikely]]
      TellUses(server, copy);
  }
  // GETs whose completions have so many bytes were answered.
  void CountAnswersIn(EngineServer& server, ptrdiff_t bytes, int64_t now_ns) {
    static_assert(sizeof(Completion) == UsageLog::kBytesOfHit);
    server.session->news().usage().HitsIn(bytes);
    LookForEnd(server, bytes, now_ns);
  }
  void LookForEnd(EngineServer& server, ptrdiff_t bytes, int64_t now_ns) {
    if (server.near_cache->OnAnswersIn(*server.session, bytes, now_ns)) [[unlikely]]
      pause_end_ns_ = kNow;
  }
  static void TellUses(EngineServer& server, ItemCopies::Copy& copy);

  const bool on_;
  OpTable& ops_;
  HitReports& reports_;
  LookupGets& lookups_;
  int64_t pause_end_ns_ = kNow;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_NEAR_GETS_H_
