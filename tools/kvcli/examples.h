#ifndef GANNET_TOOLS_KVCLI_EXAMPLES_H_
#define GANNET_TOOLS_KVCLI_EXAMPLES_H_

#include "tools/kvcli/command.h"

namespace gannet::kvcli {

// Returns lines that show how a command is used, for its help. Empty if its usage says it all.
const char* ExamplesOf(Verb verb);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_EXAMPLES_H_
