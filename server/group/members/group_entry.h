#ifndef GANNET_SERVER_GROUP_MEMBERS_GROUP_ENTRY_H_
#define GANNET_SERVER_GROUP_MEMBERS_GROUP_ENTRY_H_

#include <cstdint>
#include <string>

#include "common/base/boot_time.h"
#include "server/group/members/group_context.h"
#include "server/group/members/line_log.h"
#include "server/group/replica/register.h"

namespace gannet {

// What a process asks the register until it is in sync: which primary it joins, or to be primary
// itself, of a group that nobody has founded, or whose members are all gone
// (docs/group-recovery.md).
//
//   AskIfDue, as long as there is no link
//   Poll, until it returns true; then TryToLead, or connect to the primary of known()
//
// From when it is in sync, only Takeover asks the register.
//
// Owner thread only.
class GroupEntry {
 public:
  // Both outlive this.
  GroupEntry(const GroupContext& context, LineLog* log);

  // Takes what the register says. Returns whether it was read while there was no link, so that
  // known() says whether this process is in sync.
  bool Poll();
  // There is a link. Who joins may become one of those in sync while it has one, and an answer to
  // what was asked before does not say so.
  void OnLink();
  // Reads the register, unless something is asked already.
  void AskIfDue(BootTime now);
  // Nothing is read before `at`.
  void Rest(BootTime at) { ask_at_ = at; }
  // Asks to be primary, or says what keeps this process from that. Returns false if it is to join
  // the primary that the register names. REQUIRES: Poll has just returned true.
  bool TryToLead(BootTime now);

  // What the register said last.
  const GroupRegister& known() const { return known_; }

 private:
  enum class Asked : uint8_t { kNothing, kNow, kBeforeALink };
  // What it takes to begin the group again with the items of an earlier run.
  struct Search {
    BootTime alone_since;        // no primary answers since; none: it was not asked yet
    uint64_t history = 0;        // the same in all tries, as each of them may still win
    uint64_t claimed_epoch = 0;  // for which the earlier run was claimed
    bool claim_failed = false;
  };

  void Found();
  // Asks to be primary with the items of an earlier run, if all who were in sync are gone, and that
  // run is the one to begin with. Returns whether it asks.
  bool TryToBeginAgain(BootTime now);

  const GroupContext& context_;
  LineLog* const log_;
  const std::string kept_at_;  // where an earlier run kept items; empty: there are none
  GroupRegister known_;
  Asked asked_ = Asked::kNothing;
  BootTime ask_at_;
  Search search_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_GROUP_ENTRY_H_
