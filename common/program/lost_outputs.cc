#include "common/program/lost_outputs.h"

#include <cstddef>
#include <iterator>

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

sigset_t SignalsOfLostOutputs() {
  sigset_t signals;
  sigemptyset(&signals);
  for (size_t i = 0; i < std::size(kSignals); ++i) {
    if (g_set[i]) sigaddset(&signals, kSignals[i]);
  }
  return signals;
}

}  // namespace gannet
