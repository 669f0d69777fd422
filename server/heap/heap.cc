#include "server/heap/heap.h"

#include <glog/logging.h>
#include <jemalloc/jemalloc.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/page_size.h"
#include "common/base/status_macros.h"
#include "server/heap/heap_extents.h"

namespace gannet {
namespace {

constexpr uint64_t kPaddingBytes = 4096;
constexpr size_t kSeedBytesMin = 16 * 1024;  // jemalloc's smallest block that is an extent

// The argument of experimental.arenas_create_ext (jemalloc 5.3, arena_config_s). metadata_use_hooks
// = false keeps jemalloc's metadata in ordinary memory. Inside the heap it would take more than
// half of it, and clients could READ it.
struct ArenaConfig {
  extent_hooks_t* extent_hooks;
  bool metadata_use_hooks;
};

absl::Status MallctlError(std::string_view what, int error) {
  return absl::ResourceExhaustedError(
      absl::StrCat("jemalloc: ", std::string(what), ": errno ", error));
}

template <class T>
absl::Status Set(const std::string& name, T value) {
  if (int error = mallctl(name.c_str(), nullptr, nullptr, &value, sizeof(value)); error != 0) {
    return MallctlError(name, error);
  }
  return absl::OkStatus();
}

template <class T>
T Get(const std::string& name) {
  T value{};
  size_t size = sizeof(value);
  CHECK_EQ(mallctl(name.c_str(), &value, &size, nullptr, 0), 0) << name;
  return value;
}

// What jemalloc says of its use of memory is as it was when this was called last.
void TakeStatistics() {
  uint64_t epoch = 1;  // any value
  CHECK_EQ(mallctl("epoch", nullptr, nullptr, &epoch, sizeof(epoch)), 0);
}

}  // namespace

uint64_t Heap::PageBytes() {
  return std::max<uint64_t>(Get<size_t>("arenas.page"), SystemPageBytes());
}

uint64_t Heap::AllocatorVersion() {
  const char* version = nullptr;
  size_t size = sizeof(version);
  CHECK_EQ(mallctl("version", &version, &size, nullptr, 0), 0);
  return Xxh3(version, std::strlen(version), 0);
}

absl::StatusOr<std::unique_ptr<Heap>> Heap::Create(std::span<std::byte> memory) {
  const uint64_t page_bytes = PageBytes();
  CHECK_EQ(reinterpret_cast<uintptr_t>(memory.data()) % page_bytes, 0u);
  const size_t usable = memory.size() / page_bytes * page_bytes;
  if (usable == 0) return absl::InvalidArgumentError("a heap needs at least one page of memory");
  std::unique_ptr<Heap> heap(new Heap(memory.first(usable)));
  GANNET_RETURN_IF_ERROR(heap->Open());
  heap->Seed();
  return heap;
}

absl::StatusOr<std::unique_ptr<Heap>> Heap::Create(std::span<std::byte> memory,
                                                   const HeapMap& map) {
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<Heap> heap, Create(memory));
  GANNET_RETURN_IF_ERROR(heap->Replay(map));
  return heap;
}

Heap::Heap(std::span<std::byte> memory)
    : capacity_bytes_(memory.size()), extents_(std::make_unique<HeapExtents>(memory)) {}

absl::Status Heap::Open() {
  ArenaConfig config{extents_->hooks(), false};
  size_t size = sizeof(arena_);
  int error = mallctl("experimental.arenas_create_ext", &arena_, &size, &config, sizeof(config));
  if (error != 0) return MallctlError("experimental.arenas_create_ext", error);
  open_ = true;
  flags_ = MALLOCX_ARENA(arena_) | MALLOCX_TCACHE_NONE;
  // Freed pages go back to the arena's retained extents at once, where they merge.
  const std::string arena = absl::StrCat("arena.", arena_, ".");
  GANNET_RETURN_IF_ERROR(Set<ssize_t>(arena + "dirty_decay_ms", 0));
  return Set<ssize_t>(arena + "muzzy_decay_ms", 0);
}

// jemalloc asks for memory one size class at a time, and never merges what it got in two pieces. So
// this makes the pieces as few and as large as its size classes allow: it allocates the largest
// that fits, again and again, and then frees them all. The rest (less than kSeedBytesMin) is taken
// when it is needed.
void Heap::Seed() {
  std::vector<void*> pieces;
  size_t size = extents_->remaining();
  while (size >= kSeedBytesMin) {
    if (void* piece = mallocx(size, flags_); piece != nullptr) {
      pieces.push_back(piece);
      size = extents_->remaining();
    } else {
      size -= size / 16;  // less than the distance between two size classes
    }
  }
  for (void* piece : pieces) dallocx(piece, flags_);
}

Heap::~Heap() {
  if (!open_) return;
  const std::string name = absl::StrCat("arena.", arena_, ".destroy");
  const int error = mallctl(name.c_str(), nullptr, nullptr, nullptr, 0);
  LOG_IF(DFATAL, error != 0) << name << ": errno " << error;
}

std::byte* Heap::Allocate(uint32_t size_class) {
  const uint64_t bytes = SizeClassBytes(size_class);
  void* block = mallocx(bytes, flags_);
  if (block == nullptr) return nullptr;
  taken_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes >= kPaddedBytesMin) padding_bytes_.fetch_add(kPaddingBytes, std::memory_order_relaxed);
  return static_cast<std::byte*>(block);
}

void Heap::Free(std::byte* block, uint32_t size_class) {
  const uint64_t bytes = SizeClassBytes(size_class);
  freed_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (bytes >= kPaddedBytesMin) padding_bytes_.fetch_sub(kPaddingBytes, std::memory_order_relaxed);
  sdallocx(block, bytes, flags_);
}

uint64_t Heap::TableBytes(uint64_t bytes) const {
  return nallocx(bytes, flags_ | MALLOCX_ALIGN(kTableAlignment));
}

std::byte* Heap::AllocateTable(uint64_t bytes) {
  void* block = mallocx(bytes, flags_ | MALLOCX_ALIGN(kTableAlignment));
  if (block == nullptr) return nullptr;
  table_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  MutexLock lock(tables_mutex_);
  tables_.push_back(TableBytes(bytes));
  return static_cast<std::byte*>(block);
}

void Heap::FreeTable(std::byte* block, uint64_t bytes) {
  table_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  {
    MutexLock lock(tables_mutex_);
    tables_.erase(std::ranges::find(tables_, TableBytes(bytes)));
  }
  sdallocx(block, bytes, flags_ | MALLOCX_ALIGN(kTableAlignment));
}

uint64_t Heap::ActiveBytes() const {
  TakeStatistics();
  const auto pages = Get<size_t>(absl::StrCat("stats.arenas.", arena_, ".pactive"));
  return uint64_t{pages} * Get<size_t>("arenas.page");
}

// jemalloc numbers its small size classes (bins) and its large ones (lextents) apart.
std::array<uint64_t, kSizeClassMax + 1> Heap::BlocksByClass() const {
  TakeStatistics();
  std::array<uint64_t, kSizeClassMax + 1> blocks{};
  const auto add = [&blocks](uint64_t bytes, uint64_t n) {
    const uint32_t size_class = SizeClassFor(bytes);
    if (size_class < blocks.size() && SizeClassBytes(size_class) == bytes) blocks[size_class] += n;
  };
  const std::string arena = absl::StrCat("stats.arenas.", arena_, ".");
  const auto bins = Get<unsigned>("arenas.nbins");
  for (unsigned i = 0; i < bins; ++i) {
    add(Get<size_t>(absl::StrCat("arenas.bin.", i, ".size")),
        Get<size_t>(absl::StrCat(arena, "bins.", i, ".curregs")));
  }
  const auto large = Get<unsigned>("arenas.nlextents");
  for (unsigned i = 0; i < large; ++i) {
    const auto bytes = Get<size_t>(absl::StrCat("arenas.lextent.", i, ".size"));
    if (bytes > SizeClassBytes(kSizeClassMax)) break;
    add(bytes, Get<size_t>(absl::StrCat(arena, "lextents.", i, ".curlextents")));
  }
  MutexLock lock(tables_mutex_);
  for (const uint64_t bytes : tables_) {
    const uint32_t size_class = SizeClassFor(bytes);
    if (size_class < blocks.size() && blocks[size_class] > 0) --blocks[size_class];
  }
  return blocks;
}

}  // namespace gannet
