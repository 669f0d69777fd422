// The arena of jemalloc, and how it begins with the blocks of a former process.
//
// jemalloc cannot be told which small blocks are in use. But it takes a new slab when it has no
// free block of a size, and HeapExtents tells it where that begins. So Replay allocates all blocks
// of each slab, one slab after the other, and then frees those that were free. From then on the
// arena is like any other.

#include "server/memory/heap/small_blocks.h"

#include <glog/logging.h>
#include <jemalloc/jemalloc.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "common/base/page_size.h"
#include "common/base/status_macros.h"
#include "server/memory/heap/heap_extents.h"
#include "server/memory/heap/jemalloc_control.h"

namespace gannet {
namespace {

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

// Makes jemalloc take its statistics. What it says of its use of memory is as of the last call.
void TakeStatistics() {
  uint64_t epoch = 1;  // any value
  CHECK_EQ(mallctl("epoch", nullptr, nullptr, &epoch, sizeof(epoch)), 0);
}

}  // namespace

uint64_t SmallBlocks::PageBytes() {
  return std::max<uint64_t>(JemallocGet<size_t>("arenas.page"), SystemPageBytes());
}

uint64_t SmallBlocks::AllocatorVersion() {
  const char* version = nullptr;
  size_t size = sizeof(version);
  CHECK_EQ(mallctl("version", &version, &size, nullptr, 0), 0);
  return Xxh3(version, std::strlen(version), 0);
}

SmallBlocks::SmallBlocks(std::byte* begin, uint64_t unit_bytes, RunAllocator& runs)
    : begin_(begin), extents_(std::make_unique<HeapExtents>(begin, unit_bytes, runs)) {}

absl::StatusOr<std::unique_ptr<SmallBlocks>> SmallBlocks::Create(std::byte* begin,
                                                                 uint64_t unit_bytes,
                                                                 RunAllocator& runs) {
  std::unique_ptr<SmallBlocks> blocks(new SmallBlocks(begin, unit_bytes, runs));
  GANNET_RETURN_IF_ERROR(blocks->MakeArena());
  return blocks;
}

absl::Status SmallBlocks::MakeArena() {
  ArenaConfig config{extents_->hooks(), false};
  size_t size = sizeof(arena_);
  int error = mallctl("experimental.arenas_create_ext", &arena_, &size, &config, sizeof(config));
  if (error != 0) return MallctlError("experimental.arenas_create_ext", error);
  open_ = true;
  flags_ = MALLOCX_ARENA(arena_) | MALLOCX_TCACHE_NONE;
  // Makes freed slabs go back to the runs at once.
  const std::string arena = absl::StrCat("arena.", arena_, ".");
  GANNET_RETURN_IF_ERROR(Set<ssize_t>(arena + "dirty_decay_ms", 0));
  return Set<ssize_t>(arena + "muzzy_decay_ms", 0);
}

SmallBlocks::~SmallBlocks() {
  if (!open_) return;
  const std::string name = absl::StrCat("arena.", arena_, ".destroy");
  const int error = mallctl(name.c_str(), nullptr, nullptr, nullptr, 0);
  LOG_IF(DFATAL, error != 0) << name << ": errno " << error;
}

std::byte* SmallBlocks::Allocate(uint64_t bytes) {
  return static_cast<std::byte*>(mallocx(bytes, flags_));
}

void SmallBlocks::Free(std::byte* block, uint64_t bytes) { sdallocx(block, bytes, flags_); }

void SmallBlocks::ForEachKind(absl::FunctionRef<void(uint64_t, uint64_t)> visit) const {
  TakeStatistics();
  const auto bins = JemallocGet<unsigned>("arenas.nbins");
  for (unsigned i = 0; i < bins; ++i) {
    visit(JemallocGet<size_t>(absl::StrCat("arenas.bin.", i, ".size")),
          JemallocGet<size_t>(absl::StrCat("stats.arenas.", arena_, ".bins.", i, ".curregs")));
  }
}

absl::Status BlockIsElsewhere(uint64_t offset) {
  return absl::InternalError(absl::StrCat(
      "jemalloc does not give the block at ", offset,
      " of the heap again: start kvserver with the jemalloc, and the MALLOC_CONF, that the memory "
      "file was written with"));
}

absl::StatusOr<uint64_t> SmallBlocks::Replay(const HeapMap& map) {
  for (auto slab = map.NextSlab(0); slab.kind != nullptr;
       slab = map.NextSlab(slab.offset + slab.kind->pages * HeapMap::kPageBytes)) {
    GANNET_RETURN_IF_ERROR(Retake(slab));
  }
  return FreeUnused(map);
}

absl::Status SmallBlocks::Retake(const HeapMap::Slab& slab) {
  const std::byte* const begin = begin_ + slab.offset;
  const std::byte* const end = begin + slab.kind->pages * HeapMap::kPageBytes;
  extents_->PlaceNext(slab.offset);
  for (uint32_t i = 0; i < slab.kind->blocks; ++i) {
    const auto* const block =
        static_cast<const std::byte*>(mallocx(slab.kind->block_bytes, flags_));
    if (block < begin || block >= end) return BlockIsElsewhere(slab.offset);
  }
  return absl::OkStatus();
}

uint64_t SmallBlocks::FreeUnused(const HeapMap& map) {
  uint64_t used = 0;
  for (auto slab = map.NextSlab(0); slab.kind != nullptr;
       slab = map.NextSlab(slab.offset + slab.kind->pages * HeapMap::kPageBytes)) {
    for (uint32_t i = 0; i < slab.kind->blocks; ++i) {
      const uint64_t offset = slab.offset + uint64_t{i} * slab.kind->block_bytes;
      if (map.InUse(offset)) {
        used += slab.kind->block_bytes;
      } else {
        Free(begin_ + offset, slab.kind->block_bytes);
      }
    }
  }
  return used;
}

}  // namespace gannet
