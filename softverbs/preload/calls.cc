// The calls of the C library that the library to preload answers, or leads elsewhere, for two
// places that the kernel does not have for this device:
//
//   /sys/class/infiniband       what programs scan for devices. Calls with such a path are given
//                               the same path in the tree of sysfs_tree.h.
//   /dev/infiniband/softverbs0  UCX uses a device only if it finds a character device of its name
//                               here. Making one takes rights that a CI's container lacks. So
//                               stat and access answer as if it was /dev/null.
//
// Everything else is passed on to the C library. A program that makes system calls by itself, or
// calls a function that opens files within the C library and is not here (ftw, fts, scandirat),
// sees what the kernel has.

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <string_view>

#include "softverbs/base/devices.h"
#include "softverbs/preload/next_call.h"
#include "softverbs/preload/shown_path.h"

namespace {

using softverbs::preload::IsShown;
using softverbs::preload::MayShow;
using softverbs::preload::Next;
using softverbs::preload::ShownPath;

constexpr std::string_view kDeviceNodes = "/dev/infiniband/";
constexpr const char* kStandIn = "/dev/null";

// The functions for large files (stat64) take the same structs.
static_assert(sizeof(struct stat) == sizeof(struct stat64));
static_assert(sizeof(dirent) == sizeof(dirent64) && sizeof(glob_t) == sizeof(glob64_t));

const char* Node(const char* path) {
  if (path == nullptr || strncmp(path, kDeviceNodes.data(), kDeviceNodes.size()) != 0) return path;
  return softverbs::IsDeviceName(path + kDeviceNodes.size()) ? kStandIn : path;
}

// The kernel's files here are to be read.
bool Changes(int flags) {
  return (flags & O_ACCMODE) != O_RDONLY || (flags & (O_CREAT | O_TRUNC)) != 0;
}
bool Refused(const char* path, bool changes) {
  if (!changes || !IsShown(path)) return false;
  errno = EACCES;
  return true;
}

mode_t ModeOf(int flags, va_list arguments) {
  const bool has_mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return has_mode ? va_arg(arguments, mode_t) : 0;
}

using OpenCall = int(const char*, int, ...);
using OpenAtCall = int(int, const char*, int, ...);

int Open(OpenCall* next, const char* path, int flags, mode_t mode) {
  if (Refused(path, Changes(flags))) return -1;
  return next(ShownPath(path), flags, mode);
}
int OpenAt(OpenAtCall* next, int folder, const char* path, int flags, mode_t mode) {
  if (Refused(path, Changes(flags))) return -1;
  return next(folder, ShownPath(path), flags, mode);
}
FILE* OpenStream(FILE* (*next)(const char*, const char*), const char* path, const char* mode) {
  const std::string_view how = mode;
  if (Refused(path, !how.starts_with('r') || how.find('+') != how.npos)) return nullptr;
  return next(ShownPath(path), mode);
}

}  // namespace

// --- Files

#define TAKE_PLACE_OF_OPEN(name)                               \
  TAKE_PLACE_OF(name, int, const char* path, int flags, ...) { \
    va_list arguments;                                         \
    va_start(arguments, flags);                                \
    const mode_t mode = ModeOf(flags, arguments);              \
    va_end(arguments);                                         \
    return Open(Next<#name, OpenCall>(), path, flags, mode);   \
  }
TAKE_PLACE_OF_OPEN(open)
TAKE_PLACE_OF_OPEN(open64)

#define TAKE_PLACE_OF_OPENAT(name)                                         \
  TAKE_PLACE_OF(name, int, int folder, const char* path, int flags, ...) { \
    va_list arguments;                                                     \
    va_start(arguments, flags);                                            \
    const mode_t mode = ModeOf(flags, arguments);                          \
    va_end(arguments);                                                     \
    return OpenAt(Next<#name, OpenAtCall>(), folder, path, flags, mode);   \
  }
TAKE_PLACE_OF_OPENAT(openat)
TAKE_PLACE_OF_OPENAT(openat64)

// What programs call that are compiled with _FORTIFY_SOURCE. There is no mode: they create nothing.
TAKE_PLACE_OF(__open_2, int, const char* path, int flags) {
  return Open(Next<"open", OpenCall>(), path, flags, 0);
}
TAKE_PLACE_OF(__open64_2, int, const char* path, int flags) {
  return Open(Next<"open64", OpenCall>(), path, flags, 0);
}
TAKE_PLACE_OF(__openat_2, int, int folder, const char* path, int flags) {
  return OpenAt(Next<"openat", OpenAtCall>(), folder, path, flags, 0);
}
TAKE_PLACE_OF(__openat64_2, int, int folder, const char* path, int flags) {
  return OpenAt(Next<"openat64", OpenAtCall>(), folder, path, flags, 0);
}

TAKE_PLACE_OF(fopen, FILE*, const char* path, const char* mode) {
  return OpenStream(Next<"fopen", FILE*(const char*, const char*)>(), path, mode);
}
TAKE_PLACE_OF(fopen64, FILE*, const char* path, const char* mode) {
  return OpenStream(Next<"fopen64", FILE*(const char*, const char*)>(), path, mode);
}

// --- Folders

TAKE_PLACE_OF(opendir, DIR*, const char* path) {
  return Next<"opendir", DIR*(const char*)>()(ShownPath(path));
}
TAKE_PLACE_OF(chdir, int, const char* path) {
  return Next<"chdir", int(const char*)>()(ShownPath(path));
}

#define TAKE_PLACE_OF_SCANDIR(name)                                                        \
  TAKE_PLACE_OF(name, int, const char* path, dirent*** list, int (*choose)(const dirent*), \
                int (*compare)(const dirent**, const dirent**)) {                          \
    return Next<#name, decltype(sv_##name)>()(ShownPath(path), list, choose, compare);     \
  }
TAKE_PLACE_OF_SCANDIR(scandir)
TAKE_PLACE_OF_SCANDIR(scandir64)

namespace {

using GlobCall = int(const char*, int, int (*)(const char*, int), glob_t*);

// glob opens folders within the C library, unless it is told by what. Then the paths that it finds
// are those of the program.
int Glob(GlobCall* next, const char* pattern, int flags, int (*on_error)(const char*, int),
         glob_t* found) {
  if (MayShow(pattern) && (flags & GLOB_ALTDIRFUNC) == 0) {
    flags |= GLOB_ALTDIRFUNC;
    found->gl_opendir = [](const char* path) -> void* { return opendir(path); };
    found->gl_readdir = [](void* folder) { return readdir(static_cast<DIR*>(folder)); };
    found->gl_closedir = [](void* folder) { closedir(static_cast<DIR*>(folder)); };
    found->gl_lstat = lstat;
    found->gl_stat = stat;
  }
  return next(pattern, flags, on_error, found);
}

}  // namespace

#define TAKE_PLACE_OF_GLOB(name)                                                              \
  TAKE_PLACE_OF(name, int, const char* pattern, int flags, int (*on_error)(const char*, int), \
                glob_t* found) {                                                              \
    return Glob(Next<#name, GlobCall>(), pattern, flags, on_error, found);                    \
  }
TAKE_PLACE_OF_GLOB(glob)
TAKE_PLACE_OF_GLOB(glob64)

// --- What a path is

#define TAKE_PLACE_OF_STAT(name)                                            \
  TAKE_PLACE_OF(name, int, const char* path, struct stat* info) {           \
    return Next<#name, decltype(sv_##name)>()(ShownPath(Node(path)), info); \
  }
TAKE_PLACE_OF_STAT(stat)
TAKE_PLACE_OF_STAT(stat64)
TAKE_PLACE_OF_STAT(lstat)
TAKE_PLACE_OF_STAT(lstat64)

#define TAKE_PLACE_OF_FSTATAT(name)                                                        \
  TAKE_PLACE_OF(name, int, int folder, const char* path, struct stat* info, int flags) {   \
    return Next<#name, decltype(sv_##name)>()(folder, ShownPath(Node(path)), info, flags); \
  }
TAKE_PLACE_OF_FSTATAT(fstatat)
TAKE_PLACE_OF_FSTATAT(fstatat64)

TAKE_PLACE_OF(statx, int, int folder, const char* path, int flags, unsigned mask,
              struct statx* info) {
  return Next<"statx", decltype(sv_statx)>()(folder, ShownPath(Node(path)), flags, mask, info);
}

// What programs call that were built on a C library before 2.33.
#define TAKE_PLACE_OF_XSTAT(name, present)                             \
  TAKE_PLACE_OF(name, int, int, const char* path, struct stat* info) { \
    return sv_##present(path, info);                                   \
  }
TAKE_PLACE_OF_XSTAT(__xstat, stat)
TAKE_PLACE_OF_XSTAT(__xstat64, stat64)
TAKE_PLACE_OF_XSTAT(__lxstat, lstat)
TAKE_PLACE_OF_XSTAT(__lxstat64, lstat64)
TAKE_PLACE_OF(__fxstatat, int, int, int folder, const char* path, struct stat* info, int flags) {
  return sv_fstatat(folder, path, info, flags);
}
TAKE_PLACE_OF(__fxstatat64, int, int, int folder, const char* path, struct stat* info, int flags) {
  return sv_fstatat64(folder, path, info, flags);
}

#define TAKE_PLACE_OF_ACCESS(name)                                          \
  TAKE_PLACE_OF(name, int, const char* path, int mode) {                    \
    return Next<#name, decltype(sv_##name)>()(ShownPath(Node(path)), mode); \
  }
TAKE_PLACE_OF_ACCESS(access)
TAKE_PLACE_OF_ACCESS(eaccess)
TAKE_PLACE_OF_ACCESS(euidaccess)
TAKE_PLACE_OF(faccessat, int, int folder, const char* path, int mode, int flags) {
  return Next<"faccessat", decltype(sv_faccessat)>()(folder, ShownPath(Node(path)), mode, flags);
}

// ls asks for access control lists by these. There are none.
#define TAKE_PLACE_OF_GETXATTR(name)                                                          \
  TAKE_PLACE_OF(name, ssize_t, const char* path, const char* key, void* value, size_t size) { \
    return Next<#name, decltype(sv_##name)>()(ShownPath(path), key, value, size);             \
  }
TAKE_PLACE_OF_GETXATTR(getxattr)
TAKE_PLACE_OF_GETXATTR(lgetxattr)

#define TAKE_PLACE_OF_LISTXATTR(name)                                       \
  TAKE_PLACE_OF(name, ssize_t, const char* path, char* keys, size_t size) { \
    return Next<#name, decltype(sv_##name)>()(ShownPath(path), keys, size); \
  }
TAKE_PLACE_OF_LISTXATTR(listxattr)
TAKE_PLACE_OF_LISTXATTR(llistxattr)

// --- Where a path leads. The tree has links of its own, device/net/INTERFACE.

TAKE_PLACE_OF(readlink, ssize_t, const char* path, char* buffer, size_t size) {
  return Next<"readlink", decltype(sv_readlink)>()(ShownPath(path), buffer, size);
}
TAKE_PLACE_OF(readlinkat, ssize_t, int folder, const char* path, char* buffer, size_t size) {
  return Next<"readlinkat", decltype(sv_readlinkat)>()(folder, ShownPath(path), buffer, size);
}
TAKE_PLACE_OF(realpath, char*, const char* path, char* buffer) {
  return Next<"realpath", decltype(sv_realpath)>()(ShownPath(path), buffer);
}
TAKE_PLACE_OF(canonicalize_file_name, char*, const char* path) {
  return Next<"canonicalize_file_name", decltype(sv_canonicalize_file_name)>()(ShownPath(path));
}

// With _FORTIFY_SOURCE. The last argument is the size of the buffer.
TAKE_PLACE_OF(__readlink_chk, ssize_t, const char* path, char* buffer, size_t size, size_t room) {
  return Next<"__readlink_chk", decltype(sv___readlink_chk)>()(ShownPath(path), buffer, size, room);
}
TAKE_PLACE_OF(__readlinkat_chk, ssize_t, int folder, const char* path, char* buffer, size_t size,
              size_t room) {
  return Next<"__readlinkat_chk", decltype(sv___readlinkat_chk)>()(folder, ShownPath(path), buffer,
                                                                   size, room);
}
TAKE_PLACE_OF(__realpath_chk, char*, const char* path, char* buffer, size_t room) {
  return Next<"__realpath_chk", decltype(sv___realpath_chk)>()(ShownPath(path), buffer, room);
}
