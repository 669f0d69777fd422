#ifndef GANNET_TOOLS_KVCLI_ANSWERS_H_
#define GANNET_TOOLS_KVCLI_ANSWERS_H_

#include <string>

namespace gannet::kvcli {

// Sends what was printed to stdout on its way. Returns false if that, or anything before, could not
// be written. One thread.
bool FlushAnswers();

// Returns why FlushAnswers failed first: "No space left on device". Empty if it is not known.
std::string WhyNotWritten();

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_ANSWERS_H_
