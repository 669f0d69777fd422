#ifndef SOFTVERBS_PRELOAD_SHOWN_PATH_H_
#define SOFTVERBS_PRELOAD_SHOWN_PATH_H_

#include <limits.h>

namespace softverbs::preload {

// Returns whether a path is /sys/class/infiniband (also by "." or ".." at its end), or the device's
// folder there, or below it. Only these are shown. Other devices' entries are left to the kernel.
bool IsShown(const char* path);

// Returns whether a pattern of glob begins with /sys/class/infiniband.
bool MayShow(const char* pattern);

// The path that the C library is given in place of a program's: the same one in the tree of
// sysfs_tree.h if it is shown. Otherwise the program's own. Keeps errno.
class ShownPath {
 public:
  explicit ShownPath(const char* path) : path_(path) {
    if (IsShown(path)) LeadIntoTree();
  }
  ShownPath(const ShownPath&) = delete;
  ShownPath& operator=(const ShownPath&) = delete;

  operator const char*() const { return path_; }

 private:
  void LeadIntoTree();

  const char* path_;
  char in_tree_[PATH_MAX];  // not initialised: nearly all paths are the program's own
};

}  // namespace softverbs::preload

#endif  // SOFTVERBS_PRELOAD_SHOWN_PATH_H_
