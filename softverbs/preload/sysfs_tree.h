#ifndef SOFTVERBS_PRELOAD_SYSFS_TREE_H_
#define SOFTVERBS_PRELOAD_SYSFS_TREE_H_

#include <string>
#include <string_view>

namespace softverbs::preload {

inline constexpr std::string_view kSysfsClass = "/sys/class/infiniband";

enum class Look {
  kAsBefore,  // at the tree as it was made
  kAgain      // at the host's addresses and devices first: the tree is made anew if they changed
};

// Returns the folder that stands for /sys/class/infiniband in this process, or an empty text if
// none can be made. It has the devices' folders, and a link to each of the kernel's own devices.
//
// 1. The first look makes it, in $XDG_RUNTIME_DIR or /tmp. A process that never looks
//    has none. A forked child makes its own.
// 2. It is removed at exit. A process that was killed leaves it behind, and so does one that
//    executes another program or calls _exit. The next process of the user that makes one
//    removes it then.
// 3. It says what the verbs say of the devices, their ports and their GIDs at the time of the look.
//
// Thread safe.
std::string SysfsTree(Look look);

}  // namespace softverbs::preload

#endif  // SOFTVERBS_PRELOAD_SYSFS_TREE_H_
