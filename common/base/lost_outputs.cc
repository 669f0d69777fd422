#include "common/base/lost_outputs.h"

#include <cstddef>
#include <iterator>
#include <utility>

namespace gannet {
namespace {

constexpr int kSignals[] = {SIGPIPE, SIGXFSZ};
bool g_set[std::size(kSignals)] = {};

}  // namespace

void SurviveLostOutputs() {
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (std::signal(kSignals[i], SIG_IGN) == SIG_DFL) g_set[i] = true;
  }
}

bool EndSurvivingLostOutputs() {
  bool any = false;
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (!std::exchange(g_set[i], false)) continue;
    std::signal(kSignals[i], SIG_DFL);
    any = true;
  }
  return any;
}

sigset_t SignalsOfLostOutputs() {
  sigset_t signals;
  sigemptyset(&signals);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (g_set[i]) sigaddset(&signals, kSignals[i]);
  }
  return signals;
}

}  // namespace gannet
