#ifndef GANNET_TOOLS_KVCLI_ANSWERS_H_
#define GANNET_TOOLS_KVCLI_ANSWERS_H_

#include <string>

namespace gannet::kvcli {

// Sends what was printed to stdout on its way. Returns false if that, or anything before, could not
// be written. One thread.
bool FlushAnswers();

// Returns why FlushAnswers failed first: "No space left on device". Empty if it is not known.
std::string WhyNotWritten();
// Returns whether it failed because stdout is a pipe that nobody reads any more.
bool ReaderIsGone();

// Returns whether all that was printed so far could be written or still waits. Who prints without
// an end looks.
bool AnswersAreRead();

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_ANSWERS_H_
