#ifndef GANNET_TESTS_MODEL_RAIL_READ_MODEL_H_
#define GANNET_TESTS_MODEL_RAIL_READ_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::rail_read {

// READs that move to another connection (docs/decisions/2026-11-29-rails.md, "The first release").
// A client does two GETs, one after the other, each by one READ into the same buffer, over the
// session's first connection or over one that joined, whose rail is another one. The latter breaks
// at any time, and is drained alone. Its READ may still be executed, and its answer may land, until
// the queue pair is in the error state. What completed waits in the rail's completion queue until
// the client takes it. A drain that takes too long is given up: the queue pair is destroyed
// unreaped. Then the connection is made anew, if its rail comes back.
//
// What is to hold: a GET answers a value no older than the call; and it is answered, also if the
// rail never comes back.
struct RailReadRules {
  bool reaps_first = true;   // or a READ is posted again as soon as the drain begins
  bool reads_move = true;    // or they wait for their own rail
  bool new_ids = true;       // a connection that is made anew has not its predecessor's id
  bool destroy_ends = true;  // nothing lands through a queue pair that was destroyed
};

class RailReadModel {
 public:
  static constexpr uint8_t kFirst = 0, kJoined = 1, kConnections = 2, kQueueMax = 4;
  enum Call : uint8_t { kIdle, kReading, kToPostAgain };
  enum Link : uint8_t { kReady, kDraining, kDown };
  enum Flight : uint8_t { kNothing, kPosted, kHasOld, kHasNew };  // what its answer carries

  struct Completion {
    uint8_t id;  // of its connection
    uint8_t flushed;
  };
  struct Queue {  // of a rail: what the client has not taken
    std::array<Completion, kQueueMax> completions;
    uint8_t size;
  };
  struct State {
    Link joined;
    uint8_t joined_id;
    std::array<Flight, kConnections> flights;
    Flight stray;  // of a queue pair that was destroyed
    std::array<Queue, kConnections> queues;
    Call call;
    uint8_t on;     // over which connection it READs
    uint8_t value;  // of the key: it changes once
    uint8_t floor;  // what it was when the call began
    uint8_t buffer;
    uint8_t calls_left;
    uint8_t breaks_left;
    uint8_t returns_left;
    uint8_t stale;
  };

  explicit RailReadModel(const RailReadRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State& state) const;

 private:
  void Client(const State& state, const Emit& emit) const;
  void Joined(const State& state, const Emit& emit) const;
  static void Post(const State& state, uint8_t on, const Emit& emit);
  static void Flights(const State& state, const Emit& emit);
  static void Take(const State& state, uint8_t connection, const Emit& emit);

  const RailReadRules rules_;
};

}  // namespace gannet::model::rail_read

#endif  // GANNET_TESTS_MODEL_RAIL_READ_MODEL_H_
