#ifndef GANNET_TOOLS_KVCLI_PROMPT_H_
#define GANNET_TOOLS_KVCLI_PROMPT_H_

#include <string>

#include "tools/kvcli/pipeline.h"
#include "tools/kvcli/shell.h"

namespace gannet::kvcli {

// Runs commands from stdin, one per line, until its end or quit. Errors name the line. Returns the
// highest of the commands' exit codes: a script goes on after a failure, but does not hide it.
//
// Commands that need not wait for each other run concurrently; see Pipeline. A program that writes
// a line and waits for its answer gets it: no answer waits for a further line.
int RunScript(Shell& shell, Pipeline& pipeline);

// Runs a prompt on the terminal, with history (kept in ~/.gannet_history or the file that
// GANNET_HISTORY names; not kept if that is empty) and completion of commands, options, files, and
// keys used before. Ctrl-C cancels the line or the wait for a lock. It does not end the prompt, nor
// the locks that it holds. Returns kExitDone.
int RunPrompt(Shell& shell, const std::string& server);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_PROMPT_H_
