#ifndef GANNET_CLIENT_ENGINE_KEY_ORDER_H_
#define GANNET_CLIENT_ENGINE_KEY_ORDER_H_

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "client/session/request_window.h"
#include "common/base/check.h"

namespace gannet {

// Keeps the operations of a pipeline from overtaking earlier writes of the same key. Knows which
// keys have writes under way, and which operations wait for them, as one chain for each key:
//
//   key -> write -> write -> read (waits) -> slow write -> write (waits) ...
//
// A server executes requests in the order in which they come, except for slow writes: it fetches
// their value first. So everything behind a slow write waits until that is over. Reads do not go
// through the server's CPU, so a read waits until all writes ahead of it are over. A write does not
// wait for reads. Keys are known by their hashes. Two keys of one hash wait for each other, which
// does no harm.
//
// 1. The first operation of each chain is a write that may go on.
// 2. A chain's first slow write may go on. Everything behind it waits, but for what was sent before
//    that write was put off, or held what is behind it. Ahead of it, or if there is none, only
//    reads wait.
// 3. An operation is in at most one chain, at most once. The table of keys has twice as many places
//    as there are operations. So neither ever overflows.
// 4. A write that a server puts off (PutOff) counts as slow from then on: what is behind it may not
//    be sent before it is sent again and done. The same goes for a write that was sent before its
//    partition moved (HoldBehind): it may have to be sent again, to another server.
//
// Allocates 40 to 48 bytes an operation when it is made, and in Rehash. One owner thread.
class KeyOrder {
 public:
  enum class Kind : uint8_t { kRead, kWrite, kSlowWrite };

  // Operations are numbered from 0 to `ops` - 1. `never_empty`: empty() always returns false, so
  // that nothing starts without being asked about.
  explicit KeyOrder(uint32_t ops, bool never_empty = false)
      : nodes_(ops),
        places_(std::bit_ceil(2 * ops), kInvalidOp),
        mask_(Size(places_) - 1),
        chains_min_(never_empty ? 1 : 0),
        chains_(chains_min_) {}

  // No write is under way.
  bool empty() const { return chains_ == 0; }
  // A write of any key is under way, or one of this key.
  bool HasWrites() const { return chains_ > chains_min_; }
  bool HasWrite(uint64_t key) const { return places_[FindPlace(key)] != kInvalidOp; }

  // Asks whether `op` may start. Returns true if it may; a write is then in its key's chain. If it
  // returns false, the operation waits in the chain. REQUIRES: it is in none.
  bool Enter(uint32_t op, uint64_t key, Kind kind) {
    const uint32_t place = FindPlace(key);
    const uint32_t first = places_[place];
    const bool slow = kind == Kind::kSlowWrite;
    if (first == kInvalidOp) {
      if (kind == Kind::kRead) return true;
      nodes_[op] = {key, op, op, slow, kind, false, Off::kNo};
      places_[place] = op;
      ++chains_;
      return true;
    }
    const bool waits = kind == Kind::kRead || nodes_[first].slow_writes > 0;
    const uint32_t last = nodes_[first].previous;
    nodes_[op] = {key, last, first, 0, kind, waits, Off::kNo};
    nodes_[last].next = nodes_[first].previous = op;
    nodes_[first].slow_writes += slow;
    return !waits;
  }

  // Removes `op`, which is over or does not want to wait any more. Calls start(op, bool stays) for
  // each operation that may start now. One that does not stay is in no chain any more. REQUIRES:
  // `op` is in a chain.
  template <class F>
  void Leave(uint32_t op, F start) {
    const Node node = nodes_[op];
    const uint32_t place = FindPlace(node.key);
    GANNET_CHECK(places_[place] != kInvalidOp, "the operation is in no chain");
    const bool was_first = places_[place] == op;
    const bool was_slow = node.kind == Kind::kSlowWrite;
    uint32_t first = places_[place];
    const uint32_t slow_writes = nodes_[first].slow_writes - was_slow;
    uint32_t next = Unlink(op);
    if (was_first) {
      next = first = StartReads(next, start);
      if (first == kInvalidOp) return Erase(place);
      places_[place] = first;
    }
    nodes_[first].slow_writes = slow_writes;
    const bool was_last = !was_first && next == first;
    if (!was_slow || node.waits || was_last) return;
    if (slow_writes == 0 || !IsAhead(first, next, [](const Node& ahead) { return ahead.slow(); })) {
      StartWrites(next, first, start);
    }
  }

  // A server told `op`, a write that may go on, to try again. `in_order`: and does not execute what
  // was sent behind it. Returns false if another write of its key is put off ahead of it: then `op`
  // waits for that. Otherwise everything behind `op` waits that was not sent: calls hold(op) for
  // each write there that may go on, which returns whether it waits now.
  template <class F>
  bool PutOff(uint32_t op, bool in_order, F hold) {
    Node& node = nodes_[op];
    const uint32_t first = places_[FindPlace(node.key)];
    if (IsAhead(first, op, [](const Node& ahead) { return ahead.slow(); })) {
      node.waits = true;
      return false;
    }
    nodes_[first].slow_writes += !node.slow();
    node.kind = Kind::kSlowWrite;
    // What was sent behind it was sent before that, and nothing since.
    if (node.off == Off::kNo) node.off = in_order ? Off::kInOrder : Off::kAlone;
    for (uint32_t behind = node.next; behind != first; behind = nodes_[behind].next) {
      Node& next = nodes_[behind];
      if (!next.waits && hold(behind)) next.waits = true;
    }
    return true;
  }

  // Returns whether no other write of its key is ahead of `op`. REQUIRES: `op` is a write in a
  // chain.
  bool IsFirst(uint32_t op) const { return places_[FindPlace(nodes_[op].key)] == op; }

  // From now on everything behind `op`, a write that was sent, waits until that is over, unless it
  // was sent. Calls hold(op) as PutOff does.
  template <class F>
  void HoldBehind(uint32_t op, F hold) {
    Node& node = nodes_[op];
    const uint32_t first = places_[FindPlace(node.key)];
    nodes_[first].slow_writes += !node.slow();
    node.kind = Kind::kSlowWrite;
    for (uint32_t behind = node.next; behind != first; behind = nodes_[behind].next) {
      Node& next = nodes_[behind];
      if (!next.waits && hold(behind)) next.waits = true;
    }
  }

  // Asks whether the server executes `op`, a write that was sent, only after another one that it
  // put off. Then `op` waits for that, and was not executed.
  bool WaitBehindPutOff(uint32_t op) {
    Node& node = nodes_[op];
    const uint32_t first = places_[FindPlace(node.key)];
    if (nodes_[first].slow_writes == 0 ||
        !IsAhead(first, op, [](const Node& ahead) { return ahead.off == Off::kInOrder; })) {
      return false;
    }
    return node.waits = true;
  }

  // Call it when the hashes of keys changed. key(op) returns the hash of `op`'s key now.
  template <class F>
  void Rehash(F key) {
    std::vector<uint32_t> firsts;
    for (uint32_t& place : places_) {
      if (place != kInvalidOp) firsts.push_back(std::exchange(place, kInvalidOp));
    }
    chains_ = chains_min_;
    for (const uint32_t first : firsts) AddChain(first, key(first));
  }

 private:
  // How a server put off a write for the first time: with all that is behind it, or alone.
  enum class Off : uint8_t { kNo, kInOrder, kAlone };
  // An operation in a chain. Chains are rings: behind the last comes the first.
  struct Node {
    uint64_t key;
    uint32_t previous;
    uint32_t next;
    uint32_t slow_writes;  // in the chain; only the first operation's counter is kept
    Kind kind;
    bool waits;
    Off off;

    bool slow() const { return kind == Kind::kSlowWrite; }
  };

  static uint32_t Size(const std::vector<uint32_t>& places) {
    return static_cast<uint32_t>(places.size());
  }
  uint32_t HomePlace(uint64_t key) const { return static_cast<uint32_t>(key >> 32) & mask_; }

  // Returns where the key's chain is, or would be.
  uint32_t FindPlace(uint64_t key) const {
    uint32_t place = HomePlace(key);
    while (places_[place] != kInvalidOp && nodes_[places_[place]].key != key)
      place = (place + 1) & mask_;
    return place;
  }

  // Returns whether is(node) for an operation from `first` up to `end`, without that.
  template <class F>
  bool IsAhead(uint32_t first, uint32_t end, F is) const {
    for (uint32_t op = first; op != end; op = nodes_[op].next) {
      if (is(nodes_[op])) return true;
    }
    return false;
  }

  // Returns the operation behind it in the ring, or kInvalidOp if it was alone.
  uint32_t Unlink(uint32_t op) {
    const Node node = nodes_[op];
    if (node.next == op) return kInvalidOp;
    nodes_[node.previous].next = node.next;
    nodes_[node.next].previous = node.previous;
    return node.next;
  }

  // Starts the reads at the beginning of the ring. Returns the first operation behind them, or
  // kInvalidOp if there is none.
  template <class F>
  uint32_t StartReads(uint32_t op, F start) {
    while (op != kInvalidOp && nodes_[op].kind == Kind::kRead) {
      const uint32_t read = op;
      op = Unlink(read);
      start(read, false);
    }
    return op;
  }

  // Starts the writes from `op` on, up to and including the first slow one.
  template <class F>
  void StartWrites(uint32_t op, uint32_t first, F start) {
    do {
      Node& node = nodes_[op];
      const bool slow = node.kind == Kind::kSlowWrite;
      if (node.waits && node.kind != Kind::kRead) {
        node.waits = false;
        start(op, true);
      }
      if (slow) return;
      op = node.next;
    } while (op != first);
  }

  // Adds a whole chain. If there is one of this hash already, the new one is put behind it, and
  // waiting operations of either wait for the writes of both.
  void AddChain(uint32_t first, uint64_t key) {
    uint32_t op = first;
    do {
      nodes_[op].key = key;
      op = nodes_[op].next;
    } while (op != first);
    uint32_t& place = places_[FindPlace(key)];
    if (place == kInvalidOp) {
      place = first;
      ++chains_;
      return;
    }
    const uint32_t last = nodes_[place].previous;
    nodes_[last].next = first;
    nodes_[nodes_[first].previous].next = place;
    std::swap(nodes_[place].previous, nodes_[first].previous);
    nodes_[place].slow_writes += nodes_[first].slow_writes;
  }

  // Empties a place, and moves the chains behind it that would not be found any more.
  void Erase(uint32_t place) {
    --chains_;
    uint32_t hole = place;
    for (uint32_t next = (hole + 1) & mask_; places_[next] != kInvalidOp;
         next = (next + 1) & mask_) {
      const uint32_t home = HomePlace(nodes_[places_[next]].key);
      // A chain may lie anywhere from its home on. It may move into the hole if its home is not
      // behind that.
      if (((next - home) & mask_) < ((next - hole) & mask_)) continue;
      places_[hole] = places_[next];
      hole = next;
    }
    places_[hole] = kInvalidOp;
  }

  std::vector<Node> nodes_;
  std::vector<uint32_t> places_;  // by hash: the first operation of a chain
  uint32_t mask_;
  uint32_t chains_min_;
  uint32_t chains_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_KEY_ORDER_H_
