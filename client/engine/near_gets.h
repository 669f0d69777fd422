#ifndef GANNET_CLIENT_ENGINE_NEAR_GETS_H_
#define GANNET_CLIENT_ENGINE_NEAR_GETS_H_

#include "client/engine/hit_reports.h"
#include "client/engine/lookup_gets.h"
#include "client/engine/op_table.h"

namespace gannet {

// GETs of a client that has a near cache (near_cache.h). One owner thread.
class NearGets {
 public:
  // All of these outlive it.
  NearGets(OpTable& ops, HitReports& reports, LookupGets& lookups)
      : ops_(ops), reports_(reports), lookups_(lookups) {}

  // Returns whether a fresh operation is one of them, if its server has a near cache.
  static bool AreFor(const Op& op) {
    const bool gets = op.request.type == OpType::kGet || op.request.type == OpType::kGetInto;
    return gets && op.session().ready() && !op.misplaced;
  }
  // Answers a GET from a copy, or begins to READ it. Returns false if it is to be READ as any other
  // GET. REQUIRES: the operation is fresh, AreFor(op), no write of its key is under way, and
  // `server` has a near cache.
  bool Start(EngineServer& server, Op& op);

 private:
  bool Answer(EngineServer& server, Op& op, const ItemCopies::Copy& copy);
  bool Keep(Op& op, const ItemCopies::Copy& copy, std::string_view* value);

  OpTable& ops_;
  HitReports& reports_;
  LookupGets& lookups_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_NEAR_GETS_H_
