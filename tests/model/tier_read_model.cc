#include "tests/model/tier_read_model.h"

namespace gannet::model::tier_read {

std::vector<TierReadModel::State> TierReadModel::Initial() const {
  State state{};
  for (Reader& get : state.gets) get.got = kNothing;
  state.holder = kNobody;
  state.buffer = kNothing;
  state.neighbour = kItem;
  return {state};
}

void TierReadModel::Next(const State& state, const Emit& emit) const {
  for (uint8_t g = 0; g < kGets; ++g) {
    Steps(state, g, emit);
    DiskAndNic(state, g, emit);
  }
  if (scenario_.kills && !state.killed) Kill(state, emit);
}

void TierReadModel::Give(State* state, uint8_t g) const {
  const Reader& get = state->gets[g];
  if (state->holder != g) return;
  if ((get.disk && rules_.waits_for_disk) || (get.nic && rules_.waits_for_nic)) return;
  state->holder = kNobody;
}

void TierReadModel::Steps(const State& state, uint8_t g, const Emit& emit) const {
  if (state.killed) return;
  State next = state;
  Reader& get = next.gets[g];
  if (get.phase == Get::kDone) return;
  if (get.phase == Get::kWaits && state.holder == kNobody) {
    next.holder = g;
    get.phase = Get::kReads;
    get.disk = 1;
    emit("a GET reads the disk", next);
    next = state;
  }
  // The checksum covers position and key.
  const bool proved = (!get.disk && state.buffer == g) || !rules_.proves_before_write;
  if (get.phase == Get::kReads && proved) {
    get.phase = Get::kProved;
    emit("the server proves the record", next);
    next = state;
  }
  if (get.phase == Get::kProved) {
    get.phase = Get::kDone;
    get.nic = 1;
    Give(&next, g);
    emit("the server posts the WRITE", next);
    next = state;
  }
  get.phase = Get::kDone;
  Give(&next, g);
  emit("a GET is given up", next);
}

void TierReadModel::DiskAndNic(const State& state, uint8_t g, const Emit& emit) const {
  State next = state;
  Reader& get = next.gets[g];
  if (get.disk) {
    get.disk = 0;
    next.buffer = g;
    if (!rules_.own_buffers && !scenario_.blocks_fit) next.neighbour = g;
    if (get.phase == Get::kDone) Give(&next, g);
    emit("a read completes", next);
    next = state;
  }
  if (!get.nic) return;
  get.nic = 0;
  get.got = state.buffer;
  Give(&next, g);
  emit("a WRITE completes", next);
}

// The next process has an item where the buffer was, if that is in the region.
void TierReadModel::Kill(const State& state, const Emit& emit) const {
  State next = state;
  next.killed = 1;
  next.holder = kNobody;
  next.buffer = kItem;
  for (Reader& get : next.gets) {
    get.phase = Get::kDone;
    get.nic = 0;  // its queue pair ends with the process
    if (rules_.own_buffers) get.disk = 0;
  }
  emit("a kill, and another process takes over", next);
}

const char* TierReadModel::Broken(const State& state) const {
  for (uint8_t g = 0; g < kGets; ++g) {
    const uint8_t got = state.gets[g].got;
    if (got != g && got != kNothing) return "a client gets another key's value";
  }
  if (state.neighbour != kItem) return "a read overwrites the next item";
  if (state.killed && state.buffer != kItem) return "a former process's read overwrites an item";
  return nullptr;
}

const char* TierReadModel::BrokenAtRest(const State& state) const {
  return state.holder == kNobody ? nullptr : "a buffer that nobody gives back";
}

}  // namespace gannet::model::tier_read
