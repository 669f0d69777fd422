// dlopen and dlvsym, for programs that load libibverbs as they run, and look up its functions. A
// preloaded library answers only those that the dynamic linker looks up itself. So whoever opens
// one of the two libraries by its name is given this one.
//
// The C library's dlopen and dlvsym look at their caller by the return address: for its
// DT_RUNPATH, say. So what depends on the caller is passed on by a jump. This file is compiled with
// -O2 in every build, which makes one of each call in a return statement.

#include <dlfcn.h>
#include <link.h>
#include <string.h>

#include <string_view>

#include "softverbs/base/export.h"
#include "softverbs/preload/needed_symbols.h"
#include "softverbs/preload/next_call.h"

namespace softverbs::preload {
namespace {

bool StandsFor(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
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

}  // namespace
}  // namespace softverbs::preload

SOFTVERBS_EXPORT void* dlopen(const char* path, int flags) noexcept {
  using softverbs::preload::Next;
  if (path != nullptr && softverbs::preload::StandsFor(path)) {
    return softverbs::preload::OpenThisLibrary(flags);
  }
  auto* const next = Next<"dlopen", softverbs::preload::DlopenCall>();
  // What this loads is compared with the next one.
  if (softverbs::preload::DependsOnCaller(path, __builtin_return_address(0))) {
    return next(path, flags);
  }
  void* handle = next(path, flags);
  if (handle != nullptr) softverbs::preload::CheckNeededSymbols();
  return handle;
}

// The functions here have no versions, so the C library would find none with one.
SOFTVERBS_EXPORT void* dlvsym(void* handle, const char* name, const char* version) noexcept {
  using softverbs::preload::Next;
  const std::string_view wanted = version;
  if (wanted.starts_with("IBVERBS_") || wanted.starts_with("RDMACM_")) {
    return dlsym(softverbs::preload::ThisLibrary(), name);
  }
  return Next<"dlvsym", void*(void*, const char*, const char*) noexcept>()(handle, name, version);
}
