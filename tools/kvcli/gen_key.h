#ifndef GANNET_TOOLS_KVCLI_GEN_KEY_H_
#define GANNET_TOOLS_KVCLI_GEN_KEY_H_

#include <string>

#include "tools/kvcli/command.h"

namespace gannet::kvcli {

// Returns what genkey prints: a new line of an auth file, or an object of JSON with its parts.
// REQUIRES: the verb is kGenKey.
std::string KeyText(const Command& command, bool json);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_GEN_KEY_H_
