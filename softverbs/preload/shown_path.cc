#include "softverbs/preload/shown_path.h"

#include <pthread.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

#include "softverbs/base/devices.h"
#include "softverbs/preload/sysfs_tree.h"

namespace softverbs::preload {
namespace {

// Returns where a path goes on behind /sys/class/infiniband: an empty text, or one that begins
// with the name of a device. Returns null if the path leads elsewhere.
const char* BehindClass(const char* path) {
  if (path == nullptr || strncmp(path, kSysfsClass.data(), kSysfsClass.size()) != 0) return nullptr;
  const char* rest = path + kSysfsClass.size();
  if (*rest != '/' && *rest != '\0') return nullptr;  // infiniband_verbs
  return rest + strspn(rest, "/");
}

// Programs begin with one of these, so there the addresses of the host are looked at again.
bool IsBeginning(std::string_view rest) {
  while (rest.ends_with('/')) rest.remove_suffix(1);
  return rest.empty() || rest == "." || IsDeviceName(rest) || rest.ends_with("/gids");
}

}  // namespace

bool IsShown(const char* path) {
  const char* rest = BehindClass(path);
  if (rest == nullptr) return false;
  const std::string_view name(rest, strcspn(rest, "/"));
  return name.empty() || name == "." || name == ".." || IsDeviceName(name);
}

bool MayShow(const char* pattern) { return BehindClass(pattern) != nullptr; }

void ShownPath::LeadIntoTree() {
  const int error = errno;
  int cancel = 0;  // stat, say, is no cancellation point, but making the tree has some
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
  const char* rest = BehindClass(path_);
  const bool is_above = strncmp(rest, "..", 2) == 0;  // nothing else that is shown begins so
  if (is_above) rest += 2;
  const std::string tree = is_above ? std::string(kSysfsClass.substr(0, kSysfsClass.rfind('/')))
                                    : SysfsTree(IsBeginning(rest) ? Look::kAgain : Look::kAsBefore);
  const size_t size = tree.size() + 1 + strlen(rest);
  if (!tree.empty() && size < sizeof(in_tree_)) {
    snprintf(in_tree_, sizeof(in_tree_), "%s/%s", tree.c_str(), rest);
    path_ = in_tree_;
  }
  pthread_setcancelstate(cancel, nullptr);
  errno = error;
}

}  // namespace softverbs::preload
