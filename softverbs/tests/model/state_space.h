#ifndef SOFTVERBS_TESTS_MODEL_STATE_SPACE_H_
#define SOFTVERBS_TESTS_MODEL_STATE_SPACE_H_

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "softverbs/tests/model/fingerprints.h"
#include "softverbs/tests/support/sanitizer.h"

namespace softverbs::model {

// Sanitizers check the models' code, for which a smaller state space is enough.
inline constexpr bool kSanitized =
    test_support::kAddressSanitizer || test_support::kThreadSanitizer;

// A small explicit-state model checker. It visits every state that a model can reach, breadth
// first, and stops at the first state that breaks the model's property. If it finds no such state,
// there is none in the model. The model says what it leaves out.
//
// A Model has
//
//   struct State;                          trivially copyable, no padding (it is hashed by bytes)
//   std::vector<State> Initial() const;
//   using Emit = std::function<void(const char* label, const State&)>;
//   void Next(const State&, const Emit& emit) const;
//                                          calls emit(const char* label, const State&) for each
//                                          step that anyone could take next
//   const char* Broken(const State&) const;  nullptr, or the property that this state breaks
//   const char* BrokenAtRest(const State&) const;  the same for a state that has no next step
//   bool Settled(const State&) const;      optional: a state in which nothing waits any more. From
//                                          each state that can be reached, some way must lead to
//                                          one. Otherwise some wait for each other, in a circle
//
// It keeps only 64-bit fingerprints of visited states (as TLC does). With 10^7 states, the chance
// that two share a fingerprint, so that something is missed, is about 3e-6.
struct Exploration {
  uint64_t states = 0;
  uint64_t transitions = 0;
  bool complete = false;           // every reachable state was visited
  std::string broken;              // the property; empty when none was
  std::vector<std::string> trace;  // labels of a shortest way to break it
};

template <class Model>
class StateSpace {
 public:
  using State = typename Model::State;
  static_assert(std::is_trivially_copyable_v<State>);
  static_assert(std::has_unique_object_representations_v<State>);

  explicit StateSpace(const Model& model) : model_(model) {}

  // Gives up after `states_max` states; then `complete` is false.
  Exploration Explore(uint64_t states_max) {
    for (const State& state : model_.Initial()) Visit(state, kNoParent);
    while (!next_layer_.empty() && result_.broken.empty()) {
      std::vector<State> layer = std::exchange(next_layer_, {});
      for (const State& state : layer) {
        Expand(state);
        if (!result_.broken.empty()) break;
        if (parents_.size() > states_max) return Finish(false);
      }
    }
    if constexpr (kSettles) {
      if (result_.broken.empty()) FindCircle();
    }
    return Finish(result_.broken.empty());
  }

 private:
  static constexpr bool kSettles = requires(const Model& model, const State& state) {
    model.Settled(state);
  };
  static constexpr uint64_t kNoParent = 0;

  static uint64_t Fingerprint(const State& state) { return FingerprintOf(&state, sizeof(state)); }

  void Expand(const State& state) {
    const uint64_t parent = Fingerprint(state);
    bool at_rest = true;
    model_.Next(state, [&](const char*, const State& next) {
      at_rest = false;
      ++result_.transitions;
      if constexpr (kSettles) steps_.emplace_back(Fingerprint(next), parent);
      if (result_.broken.empty()) Visit(next, parent);
    });
    if (!at_rest) return;
    if (const char* property = model_.BrokenAtRest(state)) Record(property, parent);
  }

  void Visit(const State& state, uint64_t parent) {
    const uint64_t fingerprint = Fingerprint(state);
    if (!parents_.Insert(fingerprint, parent)) return;
    if constexpr (kSettles) {
      visited_.push_back(fingerprint);
      if (model_.Settled(state)) settled_.push_back(fingerprint);
    }
    if (const char* property = model_.Broken(state)) return Record(property, fingerprint);
    next_layer_.push_back(state);
  }

  void Record(const char* property, uint64_t fingerprint) {
    result_.broken = property;
    result_.trace = Trace(fingerprint);
  }

  // Goes back from all settled states. What it does not reach is in a circle.
  void FindCircle() {
    std::ranges::sort(steps_);
    FingerprintMap settles;
    for (const uint64_t fingerprint : settled_) settles.Insert(fingerprint, 0);
    while (!settled_.empty()) {
      const uint64_t to = settled_.back();
      settled_.pop_back();
      const std::pair<uint64_t, uint64_t> from(to, 0);
      for (auto step = std::ranges::lower_bound(steps_, from);
           step != steps_.end() && step->first == to; ++step) {
        if (settles.Insert(step->second, 0)) settled_.push_back(step->second);
      }
    }
    for (const uint64_t fingerprint : visited_) {
      if (!settles.Contains(fingerprint)) return Record("a wait that nothing ends", fingerprint);
    }
  }

  // Follows the path to `fingerprint` again from its initial state, to collect the labels of its
  // steps.
  std::vector<std::string> Trace(uint64_t fingerprint) const {
    std::vector<uint64_t> way;
    for (uint64_t f = fingerprint; f != kNoParent; f = parents_.At(f)) way.push_back(f);
    std::reverse(way.begin(), way.end());
    State state{};
    for (const State& initial : model_.Initial()) {
      if (Fingerprint(initial) == way.front()) state = initial;
    }
    std::vector<std::string> labels;
    for (size_t i = 1; i < way.size(); ++i) labels.push_back(Step(&state, way[i]));
    return labels;
  }

  // Takes the step that leads to `fingerprint`, and returns its label.
  std::string Step(State* state, uint64_t fingerprint) const {
    std::string taken;
    State after = *state;
    model_.Next(*state, [&](const char* label, const State& next) {
      if (!taken.empty() || Fingerprint(next) != fingerprint) return;
      taken = label;
      after = next;
    });
    *state = after;
    return taken;
  }

  Exploration Finish(bool complete) {
    result_.complete = complete;
    result_.states = parents_.size();
    return result_;
  }

  const Model& model_;
  std::vector<State> next_layer_;
  FingerprintMap parents_;
  Exploration result_;
  // Of a model that settles: its states in the order of their visit, those that are settled, and
  // all steps, as to and from.
  std::vector<uint64_t> visited_;
  std::vector<uint64_t> settled_;
  std::vector<std::pair<uint64_t, uint64_t>> steps_;
};

template <class Model>
Exploration Explore(const Model& model, uint64_t states_max) {
  return StateSpace<Model>(model).Explore(states_max);
}

}  // namespace softverbs::model

#endif  // SOFTVERBS_TESTS_MODEL_STATE_SPACE_H_
