// dlopen, dlmopen and dlvsym, for programs that load libibverbs as they run, and look up its
// functions. A preloaded library answers only those that the dynamic linker looks up itself. So
// whoever opens one of the two libraries by its name is given this one.
//
// A preloaded library is not in a namespace that dlmopen makes either. There the drop-in library
// takes the place of both, also for who is linked with them.
//
// The C library's functions look at their caller by the return address: for its DT_RUNPATH, say.
// What the caller's search finds is opened by its whole path. Where this file cannot tell, the call
// is passed on by a jump. This file is compiled with -O2 in every build, which makes a jump of such
// a call in a return statement; compilers that can be told to are told.

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "softverbs/preload/needed_symbols.h"
#include "softverbs/preload/next_call.h"

#if __has_cpp_attribute(clang::musttail)
#define RETURN_BY_JUMP [[clang::musttail]] return
#elif __has_cpp_attribute(gnu::musttail)
#define RETURN_BY_JUMP [[gnu::musttail]] return
#else
#define RETURN_BY_JUMP return
#endif

namespace softverbs::preload {
namespace {

bool StandsFor(const char* path) {
  if (path == nullptr) return false;
  const char* const last = strrchr(path, '/');
  const std::string_view name = last == nullptr ? path : last + 1;
  return name.starts_with("libibverbs.so") || name.starts_with("librdmacm.so");
}

// Returns the name of one of the two libraries, as the drop-in folder has it.
std::string SonameOf(std::string_view path) {
  return path.find("libibverbs.so") != path.npos ? "libibverbs.so.1" : "librdmacm.so.1";
}

link_map* ObjectOf(const void* code) {
  Dl_info info;
  link_map* object = nullptr;
  if (dladdr1(code, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0) return nullptr;
  return object;
}

std::string FolderOf(std::string_view path) {
  const size_t end = path.rfind('/');
  return std::string(path.substr(0, end == std::string_view::npos ? 0 : end));
}

// Returns what $ORIGIN means to an object, or nothing if this cannot be told.
std::optional<std::string> OriginOf(const link_map* object) {
  if (*object->l_name == '/') return FolderOf(object->l_name);
  if (*object->l_name != '\0') return std::nullopt;  // of a working directory that may have changed
  char program[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", program, sizeof(program));
  if (size <= 0) return std::nullopt;
  return FolderOf(std::string_view(program, static_cast<size_t>(size)));
}

// Returns a path with the value of $ORIGIN in it, or nothing if it has other variables.
std::optional<std::string> WithOrigin(std::string path, const link_map* caller) {
  const std::optional<std::string> origin = OriginOf(caller);
  for (size_t at = path.find('$'); at != std::string::npos; at = path.find('$', at)) {
    const size_t size = path.compare(at, 9, "${ORIGIN}") == 0 ? 9
                        : path.compare(at, 7, "$ORIGIN") == 0 ? 7
                                                              : 0;
    const bool ends = size == 9 || at + size == path.size() || path[at + size] == '/';
    if (size == 0 || !ends || !origin.has_value()) return std::nullopt;
    path.replace(at, size, *origin);
    at += origin->size();
  }
  return path;
}

// Returns the folders in which the dynamic linker looks for what an object opens.
std::vector<std::string> SearchPathOf(link_map* object) {
  Dl_serinfo size;
  if (object == nullptr || dlinfo(object, RTLD_DI_SERINFOSIZE, &size) != 0) return {};
  std::vector<char> memory(size.dls_size);
  auto* const path = reinterpret_cast<Dl_serinfo*>(memory.data());
  if (dlinfo(object, RTLD_DI_SERINFOSIZE, path) != 0) return {};
  if (dlinfo(object, RTLD_DI_SERINFO, path) != 0) return {};
  std::vector<std::string> folders;
  const Dl_serpath* const first = path->dls_serpath;
  for (unsigned i = 0; i < path->dls_cnt; ++i) folders.emplace_back(first[i].dls_name);
  return folders;
}

// Returns what a name without a folder means to a caller: the path of a file that only its own
// search finds; otherwise the name. Returns nothing where this cannot be told.
std::optional<std::string> FoundByCaller(const std::string& name, link_map* caller) {
  const std::vector<std::string> mine =
      SearchPathOf(ObjectOf(reinterpret_cast<const void*>(&FoundByCaller)));
  for (const std::string& folder : SearchPathOf(caller)) {
    if (std::find(mine.begin(), mine.end(), folder) != mine.end()) {
      if (access((folder + "/" + name).c_str(), F_OK) == 0) return name;
      continue;
    }
    // Folders in it, which are for this processor, come first. The list does not have them.
    if (access((folder + "/glibc-hwcaps").c_str(), F_OK) == 0) return std::nullopt;
    if (access((folder + "/" + name).c_str(), F_OK) == 0) return folder + "/" + name;
  }
  return name;
}

// Returns a path that means to this library what `path` means to its caller, if that can be told.
std::optional<std::string> Resolved(const char* path, const void* code) {
  link_map* const caller = ObjectOf(code);
  if (caller == nullptr) return std::nullopt;
  if (strchr(path, '$') != nullptr) return WithOrigin(path, caller);
  if (strchr(path, '/') != nullptr) return path;
  return FoundByCaller(path, caller);
}

void* OpenAndCheck(const char* path, int flags) {
  void* handle = Next<"dlopen", void*(const char*, int)>()(path, flags);
  if (handle != nullptr) CheckNeededSymbols();
  return handle;
}

using OpenInNamespace = void*(Lmid_t, const char*, int);

// Opens a path in another namespace, in which the drop-in library has the names of both libraries
// before. If the path needs none of them, the drop-in library leaves again: a process has 16
// namespaces at most, and whoever opens and closes must get them back. Returns null if it fails;
// the caller asks the C library again, which says why.
void* OpenBesideDropIn(Lmid_t space, const std::string& path, int flags) {
  auto* const open = Next<"dlmopen", OpenInNamespace>();
  const link_map* const self = ObjectOf(reinterpret_cast<const void*>(&OpenBesideDropIn));
  if (self == nullptr) return nullptr;
  const std::string names = FolderOf(self->l_name) + "/softverbs/libsoftverbs-names.so";
  void* const drop_in = open(space, names.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (drop_in == nullptr) {
    fprintf(stderr, "softverbs: dlmopen of %s gets no softverbs: %s\n", path.c_str(), dlerror());
    return nullptr;
  }
  Lmid_t id = space;
  void* const handle =
      dlinfo(drop_in, RTLD_DI_LMID, &id) == 0 ? open(id, path.c_str(), flags) : nullptr;
  dlclose(drop_in);
  return handle;
}

// dlopen for a caller. Returns nothing if the C library must see the caller. Not inline, so that
// its objects are gone when the caller jumps.
[[gnu::noinline]] std::optional<void*> Open(const char* path, int flags, const void* caller) {
  if (path == nullptr || *path == '\0') return OpenAndCheck(path, flags);  // the program
  if (StandsFor(path)) return OpenThisLibrary(flags);
  const std::optional<std::string> resolved = Resolved(path, caller);
  if (!resolved.has_value()) return std::nullopt;
  void* const handle = OpenAndCheck(resolved->c_str(), flags);
  if (handle == nullptr && *resolved != path) return std::nullopt;  // another's ELF file, say
  return handle;
}

// dlmopen for a caller. Returns null if the C library must see the caller, or must say why it
// fails.
[[gnu::noinline]] void* OpenInSpace(Lmid_t space, const char* path, int flags, const void* caller) {
  if (path == nullptr || *path == '\0') return nullptr;
  if (space == LM_ID_BASE) return StandsFor(path) ? OpenThisLibrary(flags) : nullptr;
  if (StandsFor(path)) return OpenBesideDropIn(space, SonameOf(path), flags);
  const std::optional<std::string> resolved = Resolved(path, caller);
  return resolved.has_value() ? OpenBesideDropIn(space, *resolved, flags) : nullptr;
}

bool IsVersionOfRdmaCore(std::string_view version) {
  return version.starts_with("IBVERBS_") || version.starts_with("RDMACM_");
}

}  // namespace
}  // namespace softverbs::preload

TAKE_PLACE_OF(dlopen, void*, const char* path, int flags) {
  using softverbs::preload::Next, softverbs::preload::Open;
  const std::optional<void*> handle = Open(path, flags, __builtin_return_address(0));
  if (handle.has_value()) return *handle;
  // What this loads is compared with the next one.
  auto* const next = Next<"dlopen", decltype(sv_dlopen)>();
  RETURN_BY_JUMP next(path, flags);
}

TAKE_PLACE_OF(dlmopen, void*, Lmid_t space, const char* path, int flags) {
  using softverbs::preload::Next, softverbs::preload::OpenInSpace;
  void* const handle = OpenInSpace(space, path, flags, __builtin_return_address(0));
  if (handle != nullptr) return handle;
  auto* const next = Next<"dlmopen", decltype(sv_dlmopen)>();
  RETURN_BY_JUMP next(space, path, flags);
}

// The functions here have no versions, so the C library would find none with one.
TAKE_PLACE_OF(dlvsym, void*, void* handle, const char* name, const char* version) {
  if (softverbs::preload::IsVersionOfRdmaCore(version)) {
    return dlsym(softverbs::preload::ThisLibrary(), name);
  }
  auto* const next = softverbs::preload::Next<"dlvsym", decltype(sv_dlvsym)>();
  RETURN_BY_JUMP next(handle, name, version);
}
