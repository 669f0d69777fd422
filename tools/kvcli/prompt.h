#ifndef GANNET_TOOLS_KVCLI_PROMPT_H_
#define GANNET_TOOLS_KVCLI_PROMPT_H_

#include <string>

#include "tools/kvcli/pipeline.h"
#include "tools/kvcli/shell.h"

namespace gannet::kvcli {

// Commands from stdin, one a line, until its end or quit. Problems name the line. Returns the
// highest of the commands' exit codes: a script goes on after a failure, but does not hide it.
//
// Commands that need not wait for each other are under way together; see Pipeline. Whoever writes
// a line and waits for its answer gets it: nothing waits for a further line.
int RunScript(Shell& shell, Pipeline& pipeline);

// A prompt on the terminal, with history (kept in ~/.gannet_history, or the file that
// GANNET_HISTORY names; empty: not kept) and completion of commands, and of keys used before.
// Ctrl-C gives up the line that is written, or the wait for a lock; it ends neither the prompt nor
// the locks that it holds. Returns kExitDone.
int RunPrompt(Shell& shell, const std::string& server);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_PROMPT_H_
