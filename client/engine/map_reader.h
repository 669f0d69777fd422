#ifndef GANNET_CLIENT_ENGINE_MAP_READER_H_
#define GANNET_CLIENT_ENGINE_MAP_READER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "client/session/request_window.h"
#include "common/base/clock.h"
#include "common/protocol/message.h"
#include "common/protocol/partition_map.h"

namespace gannet {

// Reads the map of a cluster (partition_map.h) for a client. Decides when to ask a server for a
// piece of it, and puts the pieces together. Which server is asked is its owner's choice.
//
// It asks as soon as a server is connected, and then again, as members come and go. At first it
// asks more often: a server that has just been started does not know all of them. While the client
// cannot do without a newer map, it asks every few milliseconds, and no further than the first
// piece, as long as that has the revision that is known.
//
// One owner thread.
class MapReader {
 public:
  static constexpr int64_t kNever = INT64_MAX;
  // From one map to the next: at first, and in the end.
  static constexpr int64_t kPeriodNs = kNsPerSecond;
  static constexpr int64_t kPeriodNsMax = 32 * kNsPerSecond;
  // The same while a newer one is wanted: at first, as long as a partition usually is closed, and
  // in the end.
  static constexpr int64_t kSoonNs = 5 * kNsPerMs;
  static constexpr int64_t kSoonNsAtFirst = 20 * kNsPerMs;
  static constexpr int64_t kAtFirstNs = kNsPerSecond;
  static constexpr int64_t kSoonNsMax = 100 * kNsPerMs;
  // After so long without an answer another server is asked.
  static constexpr int64_t kPatienceNs = 200 * kNsPerMs;

  // A server of the cluster was connected.
  void OnConnected(int64_t now_ns);
  // The connection to a server was lost, so it will not answer.
  void OnLost(uint32_t server, int64_t now_ns);
  // Whether the client cannot do without a newer map. Call it whenever that may have changed. If it
  // was so a moment ago, the pauses go on to grow.
  void WantSoon(bool soon, int64_t now_ns);
  // A newer map was read: the next pause is short.
  void OnNewer();
  // Of the map of this revision nothing more is wanted than members, which come and go without a
  // newer one. 0: there is no such map.
  void SetKnown(uint64_t revision) { known_ = revision; }

  // When to ask for a piece: not before that.
  int64_t due_ns() const;
  // Returns which server should not be asked now if there is another: it has not answered for long.
  // kInvalidOp: there is none.
  uint32_t silent_server() const { return asked_; }
  // Returns who has told the pieces so far, and should tell the next one. Pieces of two servers may
  // be of two maps. kInvalidOp: the next piece is the first.
  uint32_t teller() const { return position_ == 0 ? kInvalidOp : teller_; }
  // Server number `server` is asked. Returns where the piece begins. REQUIRES: it is due.
  uint64_t Ask(uint32_t server, int64_t now_ns);
  // A server answers. Returns true if the map is whole now, or the server has none: see Take.
  bool OnReply(uint32_t server, const ReplyView& reply, int64_t now_ns);
  // Returns the map once after OnReply returned true. nullopt: it is unchanged(); the server is in
  // no cluster; or the map changed between two pieces, and will be asked for again.
  std::optional<PartitionMap> Take();
  // Whether what was read last has the revision that is known, and was not read to its end.
  bool unchanged() const { return unchanged_; }
  // A map was read, or a server said that it has none.
  bool answered() const { return answered_; }
  // The owner's servers have other numbers now, and nobody is asked.
  void ForgetServers(int64_t now_ns);

 private:
  void AskAnew(int64_t now_ns);
  bool HasKnownRevision() const;
  bool End(int64_t now_ns);

  int64_t next_ns_ = kNever;  // when to begin with a map
  int64_t period_ns_ = kPeriodNs;
  bool soon_ = false;                // a newer map is wanted
  int64_t soon_since_ns_ = 0;        // since when, or since when the last newer one is there
  int64_t soon_at_ns_ = 0;           // then when to begin
  int64_t soon_ns_ = kSoonNs;        // the next pause while it is
  int64_t read_ns_ = INT64_MIN / 2;  // when the last answer was whole
  uint32_t asked_ = kInvalidOp;      // who has not answered yet
  int64_t asked_ns_ = 0;
  uint64_t position_ = 0;         // where the next piece begins
  uint32_t teller_ = kInvalidOp;  // who told the piece before
  std::string bytes_;             // the pieces so far
  bool regular_ = true;           // it is read to its end
  bool unchanged_ = false;
  uint64_t known_ = 0;  // a revision, see SetKnown
  bool answered_ = false;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_MAP_READER_H_
