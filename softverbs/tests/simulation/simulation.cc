#include "softverbs/tests/simulation/simulation.h"

namespace softverbs {

Simulation::Simulation(uint64_t seed, const std::string& plan) {
  EXPECT_EQ(softverbs_simulate(seed), 0);
  softverbs_set_event_log(
      [](void* self, const char* line) { static_cast<Simulation*>(self)->Note(line); }, this);
  if (plan.empty()) return;
  char error[512] = "";
  const std::string text = "seed=" + std::to_string(seed) + "," + plan;
  EXPECT_EQ(softverbs_set_faults(text.c_str(), error, sizeof(error)), 0) << error;
}

Simulation::~Simulation() {
  softverbs_set_event_log(nullptr, nullptr);
  softverbs_clear_faults();
}

void Simulation::RunUntilIdle() {
  // Far more than any test needs: only an endless loop in the device gets there.
  constexpr int kStepsMax = 10'000'000;
  int steps = 0;
  while (softverbs_step() != 0 && ++steps < kStepsMax) {
  }
  EXPECT_LT(steps, kStepsMax) << "the device never rests";
}

std::vector<ibv_wc> Drain(Simulation& simulation, Side& side) {
  simulation.RunUntilIdle();
  std::vector<ibv_wc> all;
  for (ibv_wc wc; ibv_poll_cq(side.cq.get(), 1, &wc) == 1;) all.push_back(wc);
  return all;
}

ibv_wc Only(Simulation& simulation, Side& side) {
  const std::vector<ibv_wc> all = Drain(simulation, side);
  EXPECT_EQ(all.size(), 1u);
  return all.empty() ? ibv_wc{.status = IBV_WC_GENERAL_ERR} : all.front();
}

std::string ToString(const ibv_wc& wc) {
  return "wr " + std::to_string(wc.wr_id) + " " + ibv_wc_status_str(wc.status);
}

}  // namespace softverbs
