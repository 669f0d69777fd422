// dlopen and dlvsym, for programs that load libibverbs as they run, and look up its functions. A
// preloaded library answers only those that the dynamic linker looks up itself. So whoever opens
// one of the two libraries by its name is given this one.
//
// The C library's dlopen and dlvsym look at their caller by the return address: for its
// DT_RUNPATH, say. So what depends on the caller is passed on by a jump. This file is compiled with
// -O2 in every build, which makes a jump of such a call in a return statement; compilers that can
// be told to are told.

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include <string_view>

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

bool HasSearchPath(const void* code) {
  Dl_info info;
  link_map* object = nullptr;
  if (dladdr1(code, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0 ||
      object == nullptr) {
    return true;
  }
  for (const ElfW(Dyn)* entry = object->l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_RUNPATH || entry->d_tag == DT_RPATH) return true;
  }
  return false;
}

// Returns whether the caller decides what a path means.
bool DependsOnCaller(const char* path, const void* caller) {
  if (path == nullptr) return false;
  if (strchr(path, '$') != nullptr) return true;  // $ORIGIN
  return strchr(path, '/') == nullptr && HasSearchPath(caller);
}

void* OpenAndCheck(const char* path, int flags) {
  void* handle = Next<"dlopen", void*(const char*, int)>()(path, flags);
  if (handle != nullptr) CheckNeededSymbols();
  return handle;
}

bool IsVersionOfRdmaCore(std::string_view version) {
  return version.starts_with("IBVERBS_") || version.starts_with("RDMACM_");
}

}  // namespace
}  // namespace softverbs::preload

TAKE_PLACE_OF(dlopen, void*, const char* path, int flags) {
  if (softverbs::preload::StandsFor(path)) return softverbs::preload::OpenThisLibrary(flags);
  if (!softverbs::preload::DependsOnCaller(path, __builtin_return_address(0))) {
    return softverbs::preload::OpenAndCheck(path, flags);
  }
  // What this loads is compared with the next one.
  auto* const next = softverbs::preload::Next<"dlopen", decltype(sv_dlopen)>();
  RETURN_BY_JUMP next(path, flags);
}

// The functions here have no versions, so the C library would find none with one.
TAKE_PLACE_OF(dlvsym, void*, void* handle, const char* name, const char* version) {
  if (softverbs::preload::IsVersionOfRdmaCore(version)) {
    return dlsym(softverbs::preload::ThisLibrary(), name);
  }
  auto* const next = softverbs::preload::Next<"dlvsym", decltype(sv_dlvsym)>();
  RETURN_BY_JUMP next(handle, name, version);
}
