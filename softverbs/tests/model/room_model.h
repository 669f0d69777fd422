#ifndef SOFTVERBS_TESTS_MODEL_ROOM_MODEL_H_
#define SOFTVERBS_TESTS_MODEL_ROOM_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace softverbs::model::room {

// Who wakes whom between two processes that sleep on softverbs (softverbs/nic/packet_engine.h). A
// ring of packets leads each way, and holds less than a message: 3 units, of which a packet with
// data takes 2, and a request without data or an acknowledgement takes 1. In each process an
// application posts its requests, and then sleeps until they are complete. An engine sleeps until
// it is rung. It executes packets, answers them, and serves the queue pair that waits for room.
// Both send, and share the queue pair's lock and the link's.
//
// What is to hold: when nobody can take a step, all requests are complete and their applications
// know it.
//
// doorbell_model.h has what the model leaves out: the threads that drive one engine.
struct RoomRules {
  bool noted_before_asking = true;     // that somebody may wait is noted before the peer is asked
  bool looks_after_asking = true;      // whoever asked for room looks for it once more
  bool asks_before_sleep = true;       // an engine that found too little room asks once more
  bool frees_before_it_looks = true;   // room is freed, and then the consumer looks who asked
  bool rings_for_room = true;          // and not only for packets
  bool looks_after_publishing = true;  // an engine that published its sleep looks at everything
  bool polls_after_arming = true;      // an application looks once more, too
};

enum class Kind : uint8_t { kWrite, kRead };  // data goes with the request, or with the answer

struct RoomScenario {
  struct Application {
    uint8_t requests = 0;
    Kind kind = Kind::kWrite;
  };
  std::array<Application, 2> applications;
  uint8_t packets = 3;  // with data, of a message
};

class RoomModel {
 public:
  enum class App : uint8_t { kPost, kSending, kWord, kRing, kArm, kPoll, kWait, kDone };
  enum class Engine : uint8_t {
    kAsleep,
    kTake,      // looks at its ring, and executes a packet
    kSending,   // what follows from that, with the queue pair's lock
    kRelease,   // gives the packet's room back
    kStarving,  // looks whether the peer asked for room
    kWord,      // it did: reads the peer's sleep word
    kRing,
    kResume,  // looks whether somebody waits for room
    kAsk,     // there is none: asks for it
    kAgain,   // and looks once more
    kServe,   // there is room
    kTurn,
  };
  // The steps of a thread that sends what its queue pair has to send.
  enum class Send : uint8_t { kReserve, kAsk, kAgain, kNote, kWord, kRing };
  enum class Thread : uint8_t { kNobody, kApp, kEngine };
  enum Record : uint8_t { kNone, kData, kLastData, kAck, kReadRequest, kResponse, kLastResponse };
  static constexpr uint8_t kUnits = 3;
  static constexpr uint8_t kMostUnits = 2;  // of a record

  struct End {
    // The ring to the peer. This end writes the records, and the peer removes them.
    std::array<Record, kUnits> records;
    uint8_t starving;
    // The link.
    Thread tx_lock;
    uint8_t waiting;  // the queue pair is noted
    uint8_t hint;     // somebody may be noted
    uint8_t rung;     // this end rang for the sleep word that the peer has now
    // The queue pair.
    Thread qp_lock;
    uint8_t to_send;  // packets of requests
    uint8_t acks;     // to send
    uint8_t responses;
    // The engine.
    Engine engine;
    Send engine_send;
    Engine engine_after;  // what follows kSending
    uint8_t asleep;       // its sleep word
    uint8_t message;      // it was rung
    uint8_t handled;
    uint8_t worked;
    uint8_t saw_starving;
    // The application.
    App app;
    Send app_send;
    uint8_t sent;  // it owes a ring
    uint8_t left;  // requests to post
    uint8_t incomplete;
    uint8_t armed;
    uint8_t event;
    uint8_t completions;
  };
  struct State {
    std::array<End, 2> ends;
  };

  RoomModel(const RoomRules& rules, const RoomScenario& scenario)
      : rules_(rules), scenario_(scenario) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State&) const { return nullptr; }
  const char* BrokenAtRest(const State& state) const;

 private:
  void AppSteps(const State& state, size_t end, const Emit& emit) const;
  void AppWaits(const State& state, size_t end, const Emit& emit) const;
  void EngineSteps(const State& state, size_t end, const Emit& emit) const;
  void EngineRings(const State& state, size_t end, const Emit& emit) const;
  void EngineServes(const State& state, size_t end, const Emit& emit) const;
  void EngineTurns(const State& state, size_t end, const Emit& emit) const;
  void SendSteps(const State& state, size_t end, Thread thread, const Emit& emit) const;
  void Execute(End* end, Record record) const;
  Record NextRecord(const End& end, size_t at) const;
  // Puts the next record into the ring. REQUIRES: there is one, and it fits.
  void Publish(End* end, size_t at) const;

  const RoomRules rules_;
  const RoomScenario scenario_;
};

}  // namespace softverbs::model::room

#endif  // SOFTVERBS_TESTS_MODEL_ROOM_MODEL_H_
