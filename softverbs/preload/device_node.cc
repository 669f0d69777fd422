// UCX uses a device only if it finds a character device of its name in /dev/infiniband. The kernel
// has none for this device, and making one takes rights that a CI's container lacks. So the library
// to preload answers for this one path, as if it was /dev/null, and passes everything else on to
// the C library.

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string_view>

#include "softverbs/base/export.h"

namespace {

constexpr std::string_view kDeviceNode = "/dev/infiniband/softverbs0";
constexpr const char* kStandIn = "/dev/null";

const char* Resolve(const char* path) {
  return path != nullptr && path == kDeviceNode ? kStandIn : path;
}

// Returns the function that the program would have called without this library.
template <class Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

SOFTVERBS_EXPORT int stat(const char* path, struct stat* info) noexcept {
  static const auto next = Next<int (*)(const char*, struct stat*)>("stat");
  return next(Resolve(path), info);
}

SOFTVERBS_EXPORT int access(const char* path, int mode) noexcept {
  static const auto next = Next<int (*)(const char*, int)>("access");
  return next(Resolve(path), mode);
}

// What programs call that were built on a C library before 2.33.
SOFTVERBS_EXPORT int __xstat(int, const char* path, struct stat* info) noexcept {
  return stat(path, info);
}
