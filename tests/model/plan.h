#ifndef GANNET_TESTS_MODEL_PLAN_H_
#define GANNET_TESTS_MODEL_PLAN_H_

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace gannet::model {

// The plan of a model's writer: what is left of the operation under way. A model has `Store`,
// `State`, `kStoresMax` and `kSameTruth`, as LookupModel does.

template <class Model>
void AddStore(typename Model::State* state, uint8_t group, uint8_t word, uint16_t value,
              uint16_t truth = Model::kSameTruth) {
  if (state->plan_size == Model::kStoresMax) std::abort();
  state->plan[state->plan_size++] = {word, group, value, truth};
}

// Removes store `i` from the plan and executes it. `reading`: a reader is under way, and may answer
// what K is from this store on.
template <class Model>
typename Model::State PerformStore(typename Model::State state, int i, bool reading) {
  const typename Model::Store store = state.plan[i];
  std::copy(state.plan.begin() + i + 1, state.plan.end(), state.plan.begin() + i);
  state.plan.back() = {};
  --state.plan_size;
  state.memory[store.word] = store.value;
  if (store.truth != Model::kSameTruth) {
    state.truth = store.truth;
    if (reading) state.seen |= 1 << store.truth;
  }
  return state;
}

}  // namespace gannet::model

#endif  // GANNET_TESTS_MODEL_PLAN_H_
