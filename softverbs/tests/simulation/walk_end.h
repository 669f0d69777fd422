#ifndef SOFTVERBS_TESTS_SIMULATION_WALK_END_H_
#define SOFTVERBS_TESTS_SIMULATION_WALK_END_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "softverbs/tests/simulation/shared_receives.h"
#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {

// One end of a connection, with an oracle of what the device owes it. Only the other end works on
// this end's area, so the order of the other's requests alone decides what the area must contain.
//
// 1. Send completions come in the order of the posts: successes, with what was fetched, and then at
//    most one failure. The failed request and all behind it, signaled or not, have a completion.
// 2. Nothing fails unless something disturbed the connection.
// 3. Messages take receives in the order in which both were posted.
// 4. Once all is quiet, everything signaled is complete, and the area equals the model's. In the
//    model, requests of a broken connection that did not succeed are applied up to some point.
// 5. At most max_rd_atomic of its READs and atomics are in flight (the walk checks it at each
//    step).
// 6. With shared receives (whose own rules are in shared_receives.h), the end's messages take ever
//    later ones, and exactly a broken end reports that it took its last.
class WalkEnd {
 public:
  static constexpr size_t kArea = 8192;
  static constexpr size_t kSlot = 4096;
  static constexpr uint32_t kDepth = 16;

  struct Options {
    uint32_t number = 0;
    MemoryKind kind = MemoryKind::kPrivate;
    ibv_pd* pd = nullptr;
    ibv_cq* cq = nullptr;
    SharedReceives* shared = nullptr;  // null: receives of its own
    bool signal_all = false;
  };

  WalkEnd(ibv_context* context, const Options& options, std::function<uint64_t(uint64_t)> below);

  void Connect(WalkEnd& peer);
  uint32_t number() const { return options_.number; }
  ibv_qp* qp() const { return side_.qp.get(); }
  bool broken() const { return broken_; }
  uint32_t reads_in_flight_max() const { return connect_.max_rd_atomic; }

  // Notes, for both ends, that something happened after which requests may fail.
  void Disturb() { disturbed_ = peer_->disturbed_ = true; }

  void PostReceive();
  void PostSend();
  void PostWrite();
  void PostRead();
  void PostAtomic();
  // Posts a request with a key that does not exist, which breaks the connection.
  void PostWrongKey();
  void ToError();
  void Reregister();

  void TakeCompletion(const ibv_wc& wc);
  // The same for a shared receive.
  void TakeSharedReceive(const ibv_wc& wc);
  void TakeLastReceiveEvent();
  // How many messages are on their way to shared receives.
  uint64_t SharedReceivesOwed() const;
  // Makes sure that every message sent by the peer finds a receive.
  void FeedReceives();
  // REQUIRES: nothing is left to happen, and everything was polled.
  void CheckQuiet();
  // REQUIRES: CheckQuiet of both ends was called.
  void CheckArea();

  static constexpr uint64_t kReceiveBit = 1u << 31;
  static uint64_t EndOf(uint64_t wr_id) { return wr_id >> 32; }

 private:
  struct Request {
    ibv_wr_opcode opcode;
    bool signalled;
    std::vector<uint8_t> data;  // written or sent
    size_t at = 0;              // in the peer's area
    size_t size = 0;
    uint64_t operand = 0, swap = 0;
    size_t slot = 0;
  };

  uint64_t Id(uint64_t sequence, bool receive) const {
    return uint64_t{options_.number} << 32 | (receive ? kReceiveBit : 0) | sequence;
  }
  size_t SlotOffset(size_t slot) const { return kArea + slot * kSlot; }
  ibv_send_wr Begin(Request& request);
  void Post(ibv_send_wr wr, Request request, size_t length);
  bool Full() const { return posted_ - freed_ >= kDepth; }
  std::vector<uint8_t> RandomBytes(size_t size);
  void TakeReceive(const ibv_wc& wc);
  void TakeMessage(const ibv_wc& wc, const uint8_t* buffer);
  void TakeSend(const ibv_wc& wc);
  void Succeed(Request& request);
  // Applies a request to the peer's model. Returns what it fetches.
  static std::vector<uint8_t> Apply(const Request& request, std::vector<uint8_t>& area);
  bool AreaIsExplained();

  const Options options_;
  std::function<uint64_t(uint64_t)> below_;
  Side side_;
  ConnectOptions connect_;
  WalkEnd* peer_ = nullptr;

  bool disturbed_ = false;
  bool broken_ = false;              // a request failed, or the queue pair was moved
  std::vector<uint8_t> model_;       // of this end's area
  std::deque<Request> requests_;     // posted and not known to be complete
  uint64_t posted_ = 0, freed_ = 0;  // send requests; their number is their sequence
  uint64_t completed_ = 0;           // the sequence of requests_.front()
  std::vector<Request> unapplied_;   // that did not succeed, in order

  std::deque<uint64_t> receives_;  // posted
  uint64_t receives_posted_ = 0;
  uint64_t receives_taken_ = 0;
  std::vector<std::vector<uint8_t>> sent_;  // messages, in order
  uint64_t sends_succeeded_ = 0;
  uint64_t received_ = 0;     // of the peer's sent_
  uint64_t shared_next_ = 0;  // the first shared receive that its next message may take
  uint64_t last_receive_events_ = 0;
};

}  // namespace softverbs

#endif  // SOFTVERBS_TESTS_SIMULATION_WALK_END_H_
