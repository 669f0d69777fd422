#ifndef GANNET_TESTS_TOOLS_KVCLI_KVCLI_COMMAND_H_
#define GANNET_TESTS_TOOLS_KVCLI_KVCLI_COMMAND_H_

#include <string>
#include <vector>

#include "tests/support/run_program.h"
#include "tests/support/server_process.h"

namespace gannet {

using Words = std::vector<std::string>;

// Returns the command that runs kvcli with this server on softverbs.
inline Words KvcliCommand(const ServerProcess& server, const Words& words) {
  Words all = {test_support::ProgramPath("kvcli"), "--server=" + server.endpoint(),
               "--device=soft"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

}  // namespace gannet

#endif  // GANNET_TESTS_TOOLS_KVCLI_KVCLI_COMMAND_H_
