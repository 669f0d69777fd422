#ifndef GANNET_CLIENT_ENGINE_ORDINARY_GETS_H_
#define GANNET_CLIENT_ENGINE_ORDINARY_GETS_H_

#include "client/engine/hit_reports.h"
#include "client/engine/lookup_gets.h"
#include "client/engine/op_table.h"
#include "client/engine/shared_windows.h"
#include "client/session/session_owner.h"

namespace gannet {

// The ordinary GET, of which there are millions a second (ordinary_gets_inline.h). Decides only
// hits, and reports them at once. Everything else goes on in LookupGets.
//
// The base of Engine, and not a member: its path is compiled into what the engine does for its
// sessions, and one address for both leaves that code a register more. One owner thread.
class OrdinaryGets : public SessionOwner {
 protected:
  // `ops` and `lookups` may be made later, but before anything else is called. There are
  // `ops_count` operations.
  OrdinaryGets(OpTable& ops, uint32_t ops_count, LookupGets& lookups)
      : ops_table_(ops), lookups_(lookups), shared_windows_(ops_count) {}
  ~OrdinaryGets() override = default;

  // Where hits are reported.
  HitReports& hit_reports() { return reports_; }

  // Begins a GET of `ops`, which is the table of the constructor. REQUIRES: the session is ready,
  // nothing is busy with the operation, and no write of its key is under way.
  void StartGet(OpTable& ops, EngineServer& server, Op& op);
  // Begins a GET with which something may still be busy.
  void StartAnyGet(Op& op);
  // A READ is done, of any operation.
  void OnRead(OpTable& ops, EngineServer& server, Op& op);
  // Call it after all that begin together: READs the windows that they share.
  void ReadSharedWindows() {
    if (!shared_windows_.empty()) [[unlikely]]
      PostSharedWindows();
  }

 private:
  // ordinary_gets_inline.h
  bool ReadItem(EngineServer& server, Op& op, Slot slot, Op::Phase phase);
  void ReadWindow(OpTable& ops, EngineServer& server, Op& op);
  void OnWindow(EngineServer& server, Op& op);
  void OnItem(OpTable& ops, Op& op, bool cached);
  void Report(OpTable& ops, Op& op, const ItemInfo& info);
  // ordinary_gets.cc
  void OnSharedRead(EngineServer& server, Op& op);
  void OnExpiringItem(Op& op, bool cached);
  // ordinary_gets_shared.cc
  void ShareWindow(Op& op);
  void PostSharedWindows();
  void FeedSharers(Op& reader);

  OpTable& ops_table_;
  LookupGets& lookups_;
  HitReports reports_;            // of this Poll
  SharedWindows shared_windows_;  // of operations that are being started
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_ORDINARY_GETS_H_
