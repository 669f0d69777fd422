#ifndef GANNET_TESTS_MODEL_MOVE_MODEL_H_
#define GANNET_TESTS_MODEL_MOVE_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::move {

// A partition with one key moves between two groups (docs/partitions.md). The receiving group's
// primary joins the giving one, asks the register to close the partition, and asks it to name its
// own group as the owner. Each group is a primary and what survives it: a new primary has what was
// committed, and perhaps the rest. A deposed giver goes on talking to the receiver. Everybody may
// learn of the map late. A transaction may be executed late, or never, and its sender is not told.
//
// One client writes, one request after the other, or the second one without waiting (a pipeline).
// Each must take effect once, and in their order. What it sends to a group arrives in the order of
// the requests' numbers, and refusals come back in that order. Another client READs. It has a map,
// a lease of each group, and a place that it remembers.
//
// What is to hold: no answered write is lost or done twice; no two change places; no READ is out of
// date; versions grow; the key is never served by two groups, and in the end by one.
//
// The model leaves out how leases are timed (lease_model.h: a lease is there or over), how a group
// replicates (replication_model.h), and how the walk finds an item (join_model.h).
struct MoveRules {
  bool streams_before_walk = true;     // the stream is opened before the walk begins
  bool begins_empty = true;            // the receiver first drops what an earlier try left
  bool giver_refuses = true;           // requests for a closed partition
  bool ends_under_lease = true;        // the giver ends a partition only if its lease is valid then
  bool committed_first = true;         // all is committed before the giver tells of the end
  bool names_close = true;             // an end counts for one close; false: for any
  bool reads_map_at_takeover = true;   // a new primary reads the map before it serves
  bool counter_goes_along = true;      // the receiver's versions go on from the giver's
  bool receiver_commits_first = true;  // it has committed all before it asks to be the owner
  bool waits_for_leases = true;        // of older maps, before the receiver asks to be the owner
  bool leases_by_revision = true;      // none for a client whose map has the partition still open
  bool compares_map = true;            // the transaction that names the owner fails on another map
  bool compares_epoch = true;          // it also fails if its sender is primary no more
  bool waits_for_result = true;        // of that transaction; false: serves as if it had won
  bool asks_again = true;              // if that result is unknown
  bool keeps_until_settled = true;     // until then; false: begins anew as if it had lost
  bool receiver_waits_for_map = true;  // false: serves once it has everything
  bool asks_giver_first = true;        // a client sends again where it sent first
  bool answers_before_refusals = true;  // a giver gives a remembered answer, whoever the owner is
  bool compares_changed = true;   // by that a client tells two maps apart; false: by the owner
  bool drops_reads = true;        // a client asks again what it READ by an older map
  bool drops_places = true;       // a client forgets the places of what moved
  bool refuses_behind = true;     // a group that refused a write refuses what follows it, too
  bool compares_numbers = false;  // a group refuses what was sent by a map of another change
  bool holds_unsent = true;       // a client sends nothing behind a write of an older map
  bool holds_refused = true;      // what was refused behind another one waits for that one's answer
  bool holds_lost = true;         // and so does what was lost behind it
  bool first_says_told = true;    // only a write that is behind none tells that the client was told
};

struct MoveScenario {
  enum Operation : uint8_t { kIncrement, kDelete };
  std::array<Operation, 2> operations = {kIncrement, kIncrement};
  uint8_t requests = 2;
  bool pipelined = false;  // the second one is sent without waiting for the first one's answer
  uint8_t closes = 1;
  uint8_t aborts = 0;  // of a move whose partition is closed
  uint8_t others = 0;  // changes of the map that are not about the partition
  uint8_t breaks = 0;  // of the writer's connection
  uint8_t reads = 0;   // that are believed
  std::array<uint8_t, 2> fail_overs = {0, 0};  // of the first owner's group, of the other one
};

class MoveModel {
 public:
  static constexpr int kGroups = 2;
  static constexpr int kRequestsMax = 2;
  static constexpr uint8_t kRevisionsMax = 8;
  static constexpr uint8_t kNobody = 0xff;
  enum class Link : uint8_t { kNone, kBegun, kOpen, kToDeposed };
  enum class Request : uint8_t { kIdle, kUnderWay, kExecuted, kRefused, kLost };

  // The map in the register, at one revision.
  struct Map {
    uint8_t owner;
    uint8_t closed;   // the revision at which it was closed; 0: it is open
    uint8_t changed;  // the revision at which it was closed, opened, or got another owner
  };
  struct Item {
    uint8_t present;
    uint8_t version;                            // also of the deletion, if it is absent
    std::array<uint8_t, kRequestsMax> effects;  // how often each request is in it

    bool operator==(const Item&) const = default;
  };
  // What a member of a group has.
  struct Copy {
    Item item;
    uint8_t counter;  // the last version that it gave
    uint8_t answers;  // requests whose answers its sessions remember, a bit each

    bool operator==(const Copy&) const = default;
  };
  struct Group {
    Copy now;  // the primary's
    Copy committed;
    uint8_t knows;    // the map's revision
    uint8_t ended;    // the newest close by which this primary has ended the partition
    uint8_t last;     // its counter then
    uint8_t refuses;  // what the client sends, until it says that it was told
    uint8_t epoch;
    uint8_t fail_overs_left;
  };
  // The receiver's memory of its move.
  struct Join {
    Link link;
    uint8_t since;    // S, as the giver's counter
    uint8_t brought;  // the stream brought the key
    uint8_t walked;
    uint8_t ended;        // the close up to which it has everything
    uint8_t deposed;      // the close that the deposed giver had ended, and all before is committed
    uint8_t leases_over;  // the close for which no older lease is left
    uint8_t sent;         // its transaction compares this revision; 0: it sent none
  };
  struct Transaction {
    uint8_t sent;  // 0: there is none
    uint8_t group;
    uint8_t revision;
    uint8_t epoch;
  };
  struct Sent {
    uint8_t bound;  // the group that it was sent to, and that has not refused it
    Request phase;
    uint8_t refused;  // it was, and its client was told
    uint8_t told;     // it says so
    uint8_t number;   // compares_numbers: the change of the map that it was sent by
  };
  struct Writer {
    uint8_t revision;
    std::array<Sent, kRequestsMax> requests;
    uint8_t overtaken;  // the second request has a lower number than the first, which was sent anew
    uint8_t held;       // the second waits until the first is over
    uint8_t breaks_left;
  };
  struct Reader {
    uint8_t revision;
    std::array<uint8_t, kGroups> leases;  // the map's revision when it was granted; 0: it is over
    uint8_t place;                        // the group whose memory it remembers to have the key
    uint8_t reading;                      // the group whose memory it READ
    uint8_t seen;                         // requests that are in what it READ, a bit each
    uint8_t floor;                        // requests that had been answered when it READ
    uint8_t left;
  };
  struct State {
    std::array<Map, kRevisionsMax> maps;
    uint8_t revision;
    std::array<Group, kGroups> groups;
    Join join;
    Transaction transaction;
    Writer writer;
    Reader reader;
    uint8_t answered;     // requests, a bit each
    uint8_t version_max;  // of answered writes
    uint8_t closes_left;
    uint8_t aborts_left;
    uint8_t others_left;
    uint8_t wrong;
  };

  MoveModel(const MoveRules& rules, const MoveScenario& scenario)
      : rules_(rules), scenario_(scenario) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State& state) const;

 private:
  enum Wrong : uint8_t { kNothing, kOutOfDate, kVersionBack, kOvertaken };
  // move_model.cc
  void MapSteps(const State& state, const Emit& emit) const;
  void FailOver(const State& state, uint8_t g, const Emit& emit) const;
  void ReaderSteps(const State& state, const Emit& emit) const;
  State ReaderLearns(State state, uint8_t revision) const;
  bool Same(const Map& a, const Map& b) const;
  bool Grants(const State& state, uint8_t g) const;
  bool Serves(const State& state, uint8_t g) const;
  // move_model_writer.cc
  void WriterSteps(const State& state, const Emit& emit) const;
  void RequestSteps(const State& state, uint8_t i, const Emit& emit) const;
  void BreakSteps(const State& state, const Emit& emit) const;
  bool MaySend(const State& state, uint8_t i) const;
  State WriterLearns(State state, uint8_t revision) const;
  State SendAnew(State state, uint8_t i) const;
  State Refused(State state, uint8_t i) const;
  State Answered(State state, uint8_t i) const;
  State Execute(State state, uint8_t i) const;
  void LoseRequests(State* state, uint8_t g) const;
  // move_model_receiver.cc
  void ReceiverSteps(const State& state, const Emit& emit) const;
  void BeginStep(const State& state, uint8_t receiver, const Emit& emit) const;
  void LinkSteps(const State& state, uint8_t receiver, const Emit& emit) const;
  void HandOverSteps(const State& state, uint8_t receiver, const Emit& emit) const;
  void TransactionSteps(const State& state, const Emit& emit) const;

  static const Map& KnownTo(const State& state, uint8_t g) {
    return state.maps[state.groups[g].knows];
  }
  // Another partition changes.
  static void ChangeNothing(State* state);
  static void Change(State* state, uint8_t owner, bool closed);

  const MoveRules rules_;
  const MoveScenario scenario_;
};

}  // namespace gannet::model::move

#endif  // GANNET_TESTS_MODEL_MOVE_MODEL_H_
