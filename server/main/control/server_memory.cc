// Allocates, touches and registers the region, the lock words and the heats, in this order. Heats
// are shared memory; if that may not be locked, clients do without them.

#include "server/main/control/server_memory.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <filesystem>
#include <string>

#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/layout/item_lease_header.h"
#include "common/rdma/status.h"
#include "glog/logging.h"
#include "server/main/control/cgroup_limit.h"
#include "server/memory/store/heat.h"

namespace gannet {
namespace {

double MsSince(int64_t start_ns) {
  return static_cast<double>(MonotonicNs() - start_ns) / kNsPerMs;
}

// Reserved huge pages do not count as memory for a control group's limit.
bool HasReservedPages(const ServerMemory::Options& options) {
  if (options.file.empty()) {
    return options.huge_pages == HugePages::kAuto && FreeHugePageBytes() >= options.region_bytes;
  }
  struct statfs system {};
  const std::string folder = std::filesystem::absolute(options.file).parent_path().string();
  return statfs(folder.c_str(), &system) == 0 && system.f_type == HUGETLBFS_MAGIC;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerMemory>> ServerMemory::Create(const Options& options,
                                                                   StartupAnswers* answers) {
  if (!HasReservedPages(options)) {
    GANNET_RETURN_IF_ERROR(CheckCgroupLimit(options.region_bytes, CgroupLimitOfProcess()));
  }
  std::unique_ptr<ServerMemory> memory(new ServerMemory(options));
  GANNET_RETURN_IF_ERROR(memory->CreateRegionAndLocks(answers));
  if (options.heats) GANNET_RETURN_IF_ERROR(memory->CreateHeats());
  if (options.leased_items != 0) GANNET_RETURN_IF_ERROR(memory->CreateItemLeases());
  return memory;
}

absl::Status ServerMemory::CreateRegionAndLocks(StartupAnswers* answers) {
  const auto on_ready = [answers](uint64_t bytes) {
    if (answers != nullptr) answers->AddReady(bytes);
  };
  const Device& device = options_.device;
  const int64_t start_ns = MonotonicNs();
  pd_.reset(ibv_alloc_pd(device.verbs));
  if (pd_ == nullptr) return LastErrnoStatus("cannot allocate a protection domain");
  GANNET_ASSIGN_OR_RETURN(
      region_,
      SharedMemory::Create({.name = "gannet-region",
                            .bytes = options_.region_bytes,
                            .huge_pages = options_.huge_pages,
                            .prefault_hooks = {.on_ready = on_ready, .touch = options_.touch},
                            .file = options_.file}));
  const double allocated_ms = MsSince(start_ns);
  const int64_t register_ns = MonotonicNs();
  GANNET_ASSIGN_OR_RETURN(region_mr_,
                          RegisterMemory(pd_.get(), region_->bytes(), RemoteAccess::kRead));
  lock_mode_ = options_.lock_mode.value_or(device.caps.has_atomics() ? LockMode::kNicCas
                                                                     : LockMode::kRpcServer);
  GANNET_ASSIGN_OR_RETURN(locks_,
                          SharedMemory::Create({.name = "gannet-locks",
                                                .bytes = options_.lock_words * sizeof(uint64_t),
                                                .huge_pages = HugePages::kOff,
                                                .remote_write = true}));
  const RemoteAccess lock_access =
      lock_mode_ == LockMode::kRpcServer ? RemoteAccess::kRead : RemoteAccess::kReadAtomic;
  GANNET_ASSIGN_OR_RETURN(locks_mr_, RegisterMemory(pd_.get(), locks_->bytes(), lock_access));
  LOG(INFO) << "allocated and touched " << region_->bytes().size() << " bytes in pages of "
            << region_->page_bytes() << " in " << allocated_ms << " ms, registered them and "
            << options_.lock_words << " lock words with " << device.name << " in "
            << MsSince(register_ns) << " ms";
  return absl::OkStatus();
}

// The heats are shared memory, so that a client READs them without this server's CPU, on softverbs
// too. If the server may not lock so much memory, clients cannot see the heats.
absl::Status ServerMemory::CreateHeats() {
  GANNET_ASSIGN_OR_RETURN(heats_,
                          SharedMemory::Create({.name = "gannet-heats",
                                                .bytes = Heat::BytesFor(region_->bytes().size()),
                                                .huge_pages = HugePages::kOff}));
  auto mr = RegisterMemory(pd_.get(), heats_->bytes(), RemoteAccess::kRead);
  if (mr.ok()) {
    heats_mr_ = *std::move(mr);
  } else {
    LOG(WARNING) << "clients cannot see which keys are hot: " << mr.status().message();
  }
  return absl::OkStatus();
}

absl::Status ServerMemory::CreateItemLeases() {
  GANNET_ASSIGN_OR_RETURN(item_leases_,
                          SharedMemory::Create({.name = "gannet-item-leases",
                                                .bytes = ItemLeaseBytes(options_.leased_items),
                                                .huge_pages = HugePages::kOff}));
  GANNET_ASSIGN_OR_RETURN(item_leases_mr_,
                          RegisterMemory(pd_.get(), item_leases_->bytes(), RemoteAccess::kRead));
  return absl::OkStatus();
}

std::span<std::byte> ServerMemory::item_leases() const {
  if (!item_leases_) return {};
  return item_leases_->bytes().first(ItemLeaseBytes(options_.leased_items));
}

std::span<uint64_t> ServerMemory::lock_words() const {
  return {reinterpret_cast<uint64_t*>(locks_->bytes().data()), options_.lock_words};
}

void ServerMemory::Describe(Grant* grant) const {
  grant->region_address = reinterpret_cast<uint64_t>(region_->bytes().data());
  grant->region_bytes = region_->bytes().size();
  grant->region_rkey = region_mr_->rkey;
  grant->lock_address = reinterpret_cast<uint64_t>(locks_->bytes().data());
  grant->lock_rkey = locks_mr_->rkey;
  grant->lock_words = static_cast<uint32_t>(options_.lock_words);
  grant->lock_mode = static_cast<uint8_t>(lock_mode_);
}

HeatsReply ServerMemory::DescribeHeats() const {
  if (heats_mr_ == nullptr) return {};
  return {.address = reinterpret_cast<uint64_t>(heats_->bytes().data()),
          .bytes = Heat::BytesFor(region_->bytes().size()),
          .rkey = heats_mr_->rkey,
          .granule_bytes = uint16_t{Heat::kGranuleBytes},
          .used_once = Heat::kUsedOnce,
          .units_per_doubling = uint8_t{Heat::kUnitsPerDoubling},
          .most = Heat::kMost};
}

ItemLeasesReply ServerMemory::DescribeItemLeases(uint32_t lease_ms) const {
  if (item_leases_mr_ == nullptr) return {};
  return {.address = reinterpret_cast<uint64_t>(item_leases_->bytes().data()),
          .rkey = item_leases_mr_->rkey,
          .words = options_.leased_items,
          .lease_ms = lease_ms,
          .reserved = {}};
}

}  // namespace gannet
