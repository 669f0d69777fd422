#ifndef GANNET_TOOLS_KVCLI_CHILD_H_
#define GANNET_TOOLS_KVCLI_CHILD_H_

#include <span>
#include <string>

namespace gannet::kvcli {

// Runs a program, found along PATH, and waits for it. Returns what a shell would: its exit code,
// 128 + N when signal N killed it, 127 when there is no such program, 126 when it cannot be
// started.
//
// Meanwhile this process ignores SIGINT and SIGQUIT (the terminal sends them to both) and passes
// SIGTERM and SIGHUP on, so that it does not leave, and lose its lock, before the child. Only one
// thread may be in here.
int RunChild(std::span<const std::string> words);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_CHILD_H_
