#ifndef GANNET_TOOLS_KVCLI_RUN_VERBS_H_
#define GANNET_TOOLS_KVCLI_RUN_VERBS_H_

#include "tools/kvcli/command.h"
#include "tools/kvcli/invocation.h"
#include "tools/kvcli/shell.h"

namespace gannet::kvcli {

// The verbs that go to servers. Each executes a command, shows its answer, and returns an ExitCode,
// or the exit code of a command under a lock. A verb that has two names looks at the command's.
int RunPut(Shell& shell, const Command& command);
int RunGet(Shell& shell, const Command& command);
int RunMultiGet(Shell& shell, const Command& command);
int RunExists(Shell& shell, const Command& command);
int RunTtl(Shell& shell, const Command& command);
int RunDelete(Shell& shell, const Command& command);
int RunMultiPut(Shell& shell, const Command& command);
int RunAppend(Shell& shell, const Command& command);
int RunCount(Shell& shell, const Command& command);
int RunTouch(Shell& shell, const Command& command);
int RunGetAndTouch(Shell& shell, const Command& command);
int RunFlush(Shell& shell, const Command& command);
int RunLock(Shell& shell, const Command& command);
int RunUnlock(Shell& shell, const Command& command);
int RunLocks(Shell& shell, const Command& command);
int RunSnapshot(Shell& shell, const Command& command);
int RunStats(Shell& shell, const Command& command);
int RunInfo(Shell& shell, const Command& command);
int RunPing(Shell& shell, const Command& command);
int RunClients(Shell& shell, const Command& command);
int RunSlowLog(Shell& shell, const Command& command);
int RunScan(Shell& shell, const Command& command);
int RunBigKeys(Shell& shell, const Command& command);
int RunHotKeys(Shell& shell, const Command& command);
int RunMemory(Shell& shell, const Command& command);
int RunWatch(Shell& shell, const Command& command);
int RunTop(Shell& shell, const Command& command);
int RunLatency(Shell& shell, const Command& command);
int RunClusterAction(Shell& shell, const Command& command);
int RunGenKey(Shell& shell, const Command& command);
int RunHelp(Shell& shell, const Command& command);
int RunQuit(Shell& shell, const Command& command);

// The verbs of a command line that need no client, or choose a device for themselves.
int RunGenKeyAlone(const Command& command, const Invocation& invocation, char** argv);
int RunClusterAlone(const Command& command, const Invocation& invocation, char** argv);
int RunUpgradeCheck(const Command& command, const Invocation& invocation, char** argv);
int RunDoctor(const Command& command, const Invocation& invocation, char** argv);
int RunDiscover(const Command& command, const Invocation& invocation, char** argv);

// What a command line of verbs that run alone, and main, need.
absl::Status ChooseDevice(const Invocation& invocation, bool says, char** argv);
// Says on stderr what is wrong, and with --json on stdout, too, where a program looks for the
// answer. Returns `code`.
int Fail(int code, const absl::Status& status, bool json);
gannet::Options ClientOptions(const Invocation& invocation);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_RUN_VERBS_H_
