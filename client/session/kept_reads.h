#ifndef GANNET_CLIENT_SESSION_KEPT_READS_H_
#define GANNET_CLIENT_SESSION_KEPT_READS_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "client/session/in_flight_work.h"
#include "client/session/queued_read.h"

namespace gannet {

// The READs that are in flight on a connection which may break while its session goes on, so that
// they can be posted to another one. One owner thread.
class KeptReads {
 public:
  struct Read {
    QueuedRead read;
    std::vector<LocalPiece> pieces;  // of a READ into several; otherwise empty
  };

  // `capacity`: of the connection's InFlightWork.
  void Restart(uint32_t capacity) {
    reads_.assign(capacity, Read{});
    mask_ = capacity - 1;
  }
  // The next READ has this position among the works.
  void Keep(uint32_t position, const QueuedRead& read, std::span<const LocalPiece> pieces) {
    Read& kept = reads_[position & mask_];
    kept.read = read;
    kept.pieces.assign(pieces.begin(), pieces.end());
  }
  // Calls use(Read) for each READ that was not completed, oldest first, and forgets all.
  // REQUIRES: the connection is flushed.
  template <class F>
  void TakeUnfinished(const InFlightWork& works, F use) {
    works.ForEachInFlight([&](uint32_t position, InFlightWork::Work work) {
      if (work.is_read()) use(std::move(reads_[position & mask_]));
    });
    reads_.clear();
  }

 private:
  std::vector<Read> reads_;
  uint32_t mask_ = 0;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_KEPT_READS_H_
