#include "client/engine/op_phase.h"

#include <string>

namespace gannet {
namespace {

constexpr std::array<std::string_view, kOpPhases> kNames = {
    "kFree",          "kFresh",           "kHeldBack",      "kWaiting",        "kStarved",
    "kReadingWindow", "kReadingItem",     "kReadingCached", "kReadingWindows", "kLookingUp",
    "kReadingKnown",  "kConfirmingKnown", "kReadingValue",  "kConfirming",     "kReadingHead",
    "kOutOfDate",     "kLocking",         "kUnlocking",     "kPausing",        "kRequestQueued",
    "kRequestSent",   "kFinished",        "kReleased"};
static_assert(static_cast<size_t>(OpPhase::kReleased) + 1 == kOpPhases);

}  // namespace

std::string_view NameOf(OpPhase phase) { return kNames[static_cast<uint8_t>(phase)]; }

void CheckedPhase::RefuseTransition(OpPhase from, OpPhase to) {
  const std::string transition = std::string(NameOf(from)) + " -> " + std::string(NameOf(to));
  CheckFailed(__FILE__, __LINE__, transition.c_str(), "an operation skips a phase");
}

}  // namespace gannet
