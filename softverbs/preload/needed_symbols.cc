#include "softverbs/preload/needed_symbols.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "softverbs/preload/next_call.h"

namespace softverbs::preload {
namespace {

static_assert(sizeof(void*) == 8, "relocations are read as those of 64 bits");

constexpr int kCannotLink = 127;  // the dynamic linker's exit status for the same
constexpr uint16_t kVersionBits = 0x7fff;

bool IsOfRdmaCore(std::string_view library) {
  return library.starts_with("libibverbs.so") || library.starts_with("librdmacm.so");
}

struct Needed {
  std::string symbol;
  std::string version;
};

// A program or library in memory, as the dynamic linker describes it.
class LoadedObject {
 public:
  explicit LoadedObject(const dl_phdr_info& info) : base_(info.dlpi_addr) {
    for (int i = 0; i < info.dlpi_phnum; ++i) {
      if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
      entries_ = reinterpret_cast<const ElfW(Dyn)*>(base_ + info.dlpi_phdr[i].p_vaddr);
    }
  }

  std::string_view Name() const {
    return Value(DT_SONAME) != 0 ? Text(Value(DT_SONAME)) : std::string_view();
  }

  // Returns the functions of libibverbs and librdmacm that it needs.
  std::vector<Needed> NeededOfRdmaCore() const {
    std::vector<Needed> needed;
    const std::map<uint16_t, std::string_view> versions = VersionsOfRdmaCore();
    if (versions.empty() || At(DT_VERSYM) == nullptr) return needed;
    const auto* version_of = static_cast<const uint16_t*>(At(DT_VERSYM));
    const auto* symbols = static_cast<const ElfW(Sym)*>(At(DT_SYMTAB));
    std::map<uint32_t, std::string_view> found;  // by number: each once
    for (const auto& [table, bytes] : {std::pair{DT_RELA, DT_RELASZ}, {DT_JMPREL, DT_PLTRELSZ}}) {
      const auto* relocations = static_cast<const ElfW(Rela)*>(At(table));
      const size_t count = relocations == nullptr ? 0 : Value(bytes) / sizeof(*relocations);
      for (const ElfW(Rela) & each : std::span(relocations, count)) {
        const auto number = static_cast<uint32_t>(ELF64_R_SYM(each.r_info));
        const auto version = versions.find(version_of[number] & kVersionBits);
        if (number != 0 && version != versions.end()) found.emplace(number, version->second);
      }
    }
    for (const auto& [number, version] : found) {
      needed.push_back({std::string(Text(symbols[number].st_name)), std::string(version)});
    }
    return needed;
  }

 private:
  // Returns 0 if there is no such entry.
  uint64_t Value(int64_t tag) const {
    for (const ElfW(Dyn)* entry = entries_; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
      if (entry->d_tag == tag) return entry->d_un.d_val;
    }
    return 0;
  }
  // Returns what an entry points to, or null. Most dynamic linkers have added the base.
  const void* At(int64_t tag) const {
    const uint64_t value = Value(tag);
    if (value == 0) return nullptr;
    return reinterpret_cast<const void*>(value < base_ ? base_ + value : value);
  }
  std::string_view Text(uint64_t offset) const {
    return static_cast<const char*>(At(DT_STRTAB)) + offset;
  }

  // Returns the names of the versions of the two libraries by their numbers in this object.
  std::map<uint16_t, std::string_view> VersionsOfRdmaCore() const {
    std::map<uint16_t, std::string_view> versions;
    const auto* library = static_cast<const uint8_t*>(At(DT_VERNEED));
    for (uint64_t left = Value(DT_VERNEEDNUM); library != nullptr && left > 0; --left) {
      const auto* header = reinterpret_cast<const ElfW(Verneed)*>(library);
      const uint8_t* version = library + header->vn_aux;
      for (int i = 0; IsOfRdmaCore(Text(header->vn_file)) && i < header->vn_cnt; ++i) {
        const auto* entry = reinterpret_cast<const ElfW(Vernaux)*>(version);
        versions[entry->vna_other & kVersionBits] = Text(entry->vna_name);
        version += entry->vna_next;
      }
      library += header->vn_next;
    }
    return versions;
  }

  uint64_t base_;
  const ElfW(Dyn) * entries_ = nullptr;
};

struct Requirer {
  std::string path;
  std::vector<Needed> needed;
};

// The dynamic linker holds a lock meanwhile, so this only collects.
int Collect(dl_phdr_info* info, size_t, void* requirers) {
  const LoadedObject object(*info);
  if (IsOfRdmaCore(object.Name())) return 0;
  std::vector<Needed> needed = object.NeededOfRdmaCore();
  if (needed.empty()) return 0;
  const bool is_program = info->dlpi_name == nullptr || *info->dlpi_name == '\0';
  static_cast<std::vector<Requirer>*>(requirers)->push_back(
      {is_program ? program_invocation_name : info->dlpi_name, std::move(needed)});
  return 0;
}

}  // namespace

void* OpenThisLibrary(int flags) {
  Dl_info self;
  if (dladdr(reinterpret_cast<const void*>(&OpenThisLibrary), &self) == 0) return nullptr;
  return Next<"dlopen", void*(const char*, int)>()(self.dli_fname, flags);
}

void* ThisLibrary() {
  static void* const handle = OpenThisLibrary(RTLD_LAZY | RTLD_NOLOAD);
  return handle;
}

void CheckNeededSymbols() {
  std::vector<Requirer> requirers;
  dl_iterate_phdr(Collect, &requirers);
  if (requirers.empty()) return;
  for (const Requirer& requirer : requirers) {
    std::vector<Needed> unknown;
    bool is_part_of_rdma_core = false;  // it needs the private interface: a driver
    for (const Needed& needed : requirer.needed) {
      if (dlsym(ThisLibrary(), needed.symbol.c_str()) != nullptr) continue;
      if (needed.version.starts_with("IBVERBS_PRIVATE_")) is_part_of_rdma_core = true;
      unknown.push_back(needed);
    }
    if (unknown.empty() || is_part_of_rdma_core) continue;
    for (const Needed& needed : unknown) {
      fprintf(stderr,
              "softverbs: %s needs %s (%s), which softverbs " SOFTVERBS_VERSION
              " does not have: it is of a newer rdma-core. Use a newer softverbs.\n",
              requirer.path.c_str(), needed.symbol.c_str(), needed.version.c_str());
    }
    _exit(kCannotLink);
  }
}

namespace {

__attribute__((constructor)) void CheckAtLoad() { CheckNeededSymbols(); }

}  // namespace
}  // namespace softverbs::preload
