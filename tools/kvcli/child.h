#ifndef GANNET_TOOLS_KVCLI_CHILD_H_
#define GANNET_TOOLS_KVCLI_CHILD_H_

#include <span>
#include <string>

namespace gannet::kvcli {

enum ChildExitCode : int { kExitCannotRun = 126, kExitNoProgram = 127 };

// Runs a program, found along PATH, and waits for it. Returns what a shell would: its exit code,
// 128 + N if signal N killed it, 127 if there is no such program, 126 if it cannot be started.
//
// Meanwhile this process ignores SIGINT and SIGQUIT (the terminal sends them to both) and passes on
// SIGTERM and SIGHUP, so that it does not exit, and lose its lock, before the child. Only one
// thread may call it at a time.
int RunChild(std::span<const std::string> words);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_CHILD_H_
