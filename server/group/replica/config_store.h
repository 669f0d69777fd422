#ifndef GANNET_SERVER_GROUP_REPLICA_CONFIG_STORE_H_
#define GANNET_SERVER_GROUP_REPLICA_CONFIG_STORE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "server/group/replica/register.h"

namespace gannet {

// A member's way to its group's register. It carries one request at a time, and decides nothing.
// Nothing here blocks: Poll brings the answer later.
//
//   store->Txn(known.revision, wanted);
//   ...
//   if (const auto answer = store->Poll()) ...
//
// Thread safety: one thread.
class ConfigStore {
 public:
  enum class Result : uint8_t {
    kRead,
    kWon,  // the register took what was wanted
    // The register will not take it: it had another revision, or the sender or the primary that was
    // wanted is not its node's newest process any more.
    kLost,
    // Nothing is known. A transaction may have won, and **it may still win later**. Only a changed
    // revision proves that it will not.
    kUnknown,
  };
  struct Answer {
    Result result = Result::kUnknown;
    // The register when the request was executed, with what it has changed. Of an unknown result it
    // says nothing.
    GroupRegister now;
  };

  // How the register that this member knows stands in etcd (docs/group-recovery.md, "A register
  // that is lost").
  enum class Standing : uint8_t {
    kThere,  // etcd has it, or what became of it, as far as is known
    // A member in sync cannot tell the register from one that was restored, since it has heard
    // nothing of it after etcd's loss. Change it, and be it to the same.
    kDoubted,
    kLost,       // etcd has none that can have become of it. Nothing can be changed
    kUnfounded,  // the same, and nobody has founded the group. The register may be adopted
  };

  virtual ~ConfigStore() = default;

  // Both begin a request. One that is still under way is abandoned: nobody is told its result,
  // which is as good as unknown.
  virtual void Read() = 0;
  // Sets the register to `wanted` if its revision is `revision`.
  virtual void Txn(uint64_t revision, const GroupConfiguration& wanted) = 0;
  // The same, with another history of the group's items, and only if `others` are their nodes'
  // newest processes, too. The default reads.
  virtual void BeginAgain(uint64_t /*revision*/, const GroupConfiguration& /*wanted*/,
                          uint64_t /*history*/, const std::vector<GroupMember>& /*others*/) {
    Read();
  }
  // Begins a request, as those above. Writes the register that was lost again, if nobody has
  // founded the group meanwhile. REQUIRES: `known` is what the register said when it was lost, and
  // nobody can have led the group since. The default reads.
  virtual void Adopt(const GroupConfiguration& /*known*/) { Read(); }
  // Returns the request's answer, once. Each request that is not abandoned
  // gets one, within a time that the store limits.
  virtual std::optional<Answer> Poll() = 0;
  // Returns the newest register that this member has seen, if any. It may be out of date.
  virtual std::optional<GroupRegister> Seen() const = 0;
  // Whether Seen has one with a higher revision than this. Whoever asks at each turn asks this, as
  // a copy costs a lot.
  virtual bool SeesNewer(uint64_t revision) const {
    const std::optional<GroupRegister> seen = Seen();
    return seen && seen->revision > revision;
  }
  virtual Standing standing() const { return Standing::kThere; }
  // Readable when Poll or Seen may have something new. -1: call them from time to time.
  virtual int fd() const { return -1; }
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_CONFIG_STORE_H_
