#ifndef GANNET_SERVER_GROUP_REPLICA_OPENING_H_
#define GANNET_SERVER_GROUP_REPLICA_OPENING_H_

#include <cstdint>

#include "common/base/boot_time.h"
#include "server/group/replica/primary_lease.h"
#include "server/log/stream/ring_tail.h"
#include "server/log/stream/ring_writer.h"

namespace gannet {

// What a new primary does before it takes clients: it sends the tail that it took over again, with
// the LSNs that the records had, and waits until that is committed (docs/group.md, "Takeover").
//
//   opening.Send(&writer, committed)            // once all who are counted have a link
//   if (opening.IsOver(committed, lease, now))  // take clients
//
// Thread safety: one thread.
class Opening {
 public:
  // The stream of `tail`'s owner begins where the tail begins.
  explicit Opening(RingTail tail);

  // Appends as many records as the ring has room for. REQUIRES: each counted backup has a link. A
  // link begins with what is appended next, so one that came later would lack what is before.
  void Send(RingWriter* writer, uint64_t committed);
  // Whether clients may be taken: all of the tail is committed, and the lease was valid, so that
  // all who are in sync are connected. A client sends again what was not answered, and that may get
  // another LSN. So nobody may still keep a rest of a former stream.
  bool IsOver(uint64_t committed, const PrimaryLease& lease, BootTime now);

  uint64_t first_lsn() const { return first_lsn_; }
  uint64_t tail_end() const { return tail_end_; }

 private:
  RingTail tail_;  // what is not appended yet
  const uint64_t first_lsn_;
  const uint64_t tail_end_;
  bool over_ = false;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_REPLICA_OPENING_H_
