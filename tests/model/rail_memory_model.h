#ifndef GANNET_TESTS_MODEL_RAIL_MEMORY_MODEL_H_
#define GANNET_TESTS_MODEL_RAIL_MEMORY_MODEL_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::rail_memory {

// What a dead rail may still write (docs/decisions/2026-11-29-rails.md): the answer of a READ into
// the client's buffer, and the bytes of a long value into their place. That is what the server
// READs for a PUT, into the region, or WRITEs for a GET, into the client's memory. A notice tells
// that they are there: the reply. The first rail dies at any time. What was posted on it may be
// executed later, or never. The second one lives. Whoever moves its end of a queue pair to the
// error state and reaps it knows that nothing comes through that end any more.
//
// What is to hold: a GET answers a value no older than the call; no bytes hit a place that has
// another owner; and a value that is taken has its bytes.
struct RailMemoryRules {
  bool client_reaps = true;  // before a READ is posted again into the same buffer
  bool owner_reaps = true;   // before a place that it gives up is free
  bool notice_on_rail =
      true;  // it goes behind the bytes, by their rail, or waits until they are there
};

class RailMemoryModel {
 public:
  enum Call : uint8_t { kIdle, kOnFirst, kOnSecond, kLanded };
  enum Answer : uint8_t { kNone, kUnderWay, kHasOld, kHasNew };  // of the READ on the first rail
  enum Place : uint8_t { kFree, kReserved, kTaken, kOthers };
  enum Bytes : uint8_t { kNotPosted, kOnItsWay, kThere };
  enum Notice : uint8_t { kNotSent, kBehindBytes, kByOther };

  struct State {
    uint8_t up;             // the first rail
    uint8_t client_reaped;  // its end there
    uint8_t owner_reaped;
    uint8_t value;   // of the key that is read: it changes once
    uint8_t floor;   // what it was when the call began
    uint8_t buffer;  // of the client
    uint8_t calls_left;
    Call call;
    Answer answer;
    Place place;  // in the region
    Bytes bytes;
    uint8_t bytes_known;  // who posted them has their completion
    Notice notice;
    uint8_t values_left;
    uint8_t wrong;
  };

  explicit RailMemoryModel(const RailMemoryRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  static void Rail(const State& state, const Emit& emit);
  void Get(const State& state, const Emit& emit) const;
  static void LateAnswer(const State& state, const Emit& emit);
  void Value(const State& state, const Emit& emit) const;
  void Notices(const State& state, const Emit& emit) const;

  const RailMemoryRules rules_;
};

}  // namespace gannet::model::rail_memory

#endif  // GANNET_TESTS_MODEL_RAIL_MEMORY_MODEL_H_
