#ifndef GANNET_TOOLS_BUILD_STAMP_BUILD_STAMP_H_
#define GANNET_TOOLS_BUILD_STAMP_BUILD_STAMP_H_

namespace gannet {

// Identify the build that a result belongs to. The strings live for ever.

// The number of the release, as CMakeLists.txt has it: "0.1.0".
const char* BuildVersion();
// The short git commit, with "-dirty" if the tree differed from it; "unknown" outside git.
const char* BuildCommit();
// Build type, sanitizers if any, and compiler: "RelWithDebInfo, GNU 12.2.0".
const char* BuildKind();

}  // namespace gannet

#endif  // GANNET_TOOLS_BUILD_STAMP_BUILD_STAMP_H_
