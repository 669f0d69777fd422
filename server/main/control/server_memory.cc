// Allocates and touches the region, the lock words, the heats and the words of leases, and then
// registers all with each device. Heats are shared memory; if that may not be locked, clients do
// without them.

#include "server/main/control/server_memory.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
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
  GANNET_RETURN_IF_ERROR(memory->Allocate(answers));
  for (const Device& device : options.devices) {
    const auto is_known = [&device](const Registered& known) {
      return known.verbs == device.verbs;
    };
    if (std::ranges::any_of(memory->devices_, is_known)) continue;
    GANNET_RETURN_IF_ERROR(memory->Register(device));
  }
  GANNET_RETURN_IF_ERROR(memory->RegisterLocks());
  return memory;
}

// The heats are shared memory, so that a client READs them without this server's CPU, on softverbs
// too.
absl::Status ServerMemory::Allocate(StartupAnswers* answers) {
  const auto on_ready = [answers](uint64_t bytes) {
    if (answers != nullptr) answers->AddReady(bytes);
  };
  const int64_t start_ns = MonotonicNs();
  GANNET_ASSIGN_OR_RETURN(
      region_,
      SharedMemory::Create({.name = "gannet-region",
                            .bytes = options_.region_bytes,
                            .huge_pages = options_.huge_pages,
                            .prefault_hooks = {.on_ready = on_ready, .touch = options_.touch},
                            .file = options_.file}));
  LOG(INFO) << "allocated and touched " << region_->bytes().size() << " bytes in pages of "
            << region_->page_bytes() << " in " << MsSince(start_ns) << " ms";
  GANNET_ASSIGN_OR_RETURN(locks_, LockMemory::Create(options_.lock_words));
  if (options_.heats) {
    GANNET_ASSIGN_OR_RETURN(heats_,
                            SharedMemory::Create({.name = "gannet-heats",
                                                  .bytes = Heat::BytesFor(region_->bytes().size()),
                                                  .huge_pages = HugePages::kOff}));
  }
  if (options_.leased_items != 0) {
    GANNET_ASSIGN_OR_RETURN(item_leases_,
                            SharedMemory::Create({.name = "gannet-item-leases",
                                                  .bytes = ItemLeaseBytes(options_.leased_items),
                                                  .huge_pages = HugePages::kOff}));
  }
  return absl::OkStatus();
}

// If the server may not lock memory for the heats, clients cannot see them.
absl::Status ServerMemory::Register(const Device& device) {
  const int64_t start_ns = MonotonicNs();
  Registered made{.verbs = device.verbs, .pd = Handle<ibv_pd>(ibv_alloc_pd(device.verbs))};
  if (made.pd == nullptr) return LastErrnoStatus("cannot allocate a protection domain");
  GANNET_ASSIGN_OR_RETURN(made.region,
                          RegisterMemory(made.pd.get(), region_->bytes(), RemoteAccess::kRead));
  if (heats_) {
    auto mr = RegisterMemory(made.pd.get(), heats_->bytes(), RemoteAccess::kRead);
    if (mr.ok()) {
      made.heats = *std::move(mr);
    } else {
      LOG(WARNING) << "clients cannot see which keys are hot: " << mr.status().message();
    }
  }
  if (item_leases_) {
    GANNET_ASSIGN_OR_RETURN(made.item_leases, RegisterMemory(made.pd.get(), item_leases_->bytes(),
                                                             RemoteAccess::kRead));
  }
  devices_.push_back(std::move(made));
  LOG(INFO) << "registered them with " << device.name << " in " << MsSince(start_ns) << " ms";
  return absl::OkStatus();
}

absl::Status ServerMemory::RegisterLocks() {
  const DeviceCaps& caps = options_.devices.front().caps;
  lock_mode_ =
      options_.lock_mode.value_or(caps.has_atomics() ? LockMode::kNicCas : LockMode::kRpcServer);
  const RemoteAccess access =
      lock_mode_ == LockMode::kRpcServer ? RemoteAccess::kRead : RemoteAccess::kReadAtomic;
  return locks_->Register(Of(0).pd.get(), access);
}

std::vector<ibv_pd*> ServerMemory::pds() const {
  std::vector<ibv_pd*> pds;
  for (size_t rail = 0; rail < options_.devices.size(); ++rail) pds.push_back(Of(rail).pd.get());
  return pds;
}

const ServerMemory::Registered& ServerMemory::Of(size_t rail) const {
  return *std::ranges::find(devices_, options_.devices[rail].verbs, &Registered::verbs);
}

std::span<std::byte> ServerMemory::item_leases() const {
  if (!item_leases_) return {};
  return item_leases_->bytes().first(ItemLeaseBytes(options_.leased_items));
}

std::span<uint64_t> ServerMemory::lock_words() const { return locks_->words(); }

void ServerMemory::Describe(Grant* grant) const {
  grant->region_address = reinterpret_cast<uint64_t>(region_->bytes().data());
  grant->region_bytes = region_->bytes().size();
  grant->region_rkey = Of(0).region->rkey;
  grant->lock_address = locks_->address();
  grant->lock_rkey = locks_->rkey();
  grant->lock_words = static_cast<uint32_t>(options_.lock_words);
  grant->lock_mode = static_cast<uint8_t>(lock_mode_);
}

void ServerMemory::DescribeOn(size_t rail, uint32_t lease_ms, Rail* described) const {
  const Registered& device = Of(rail);
  described->pd = device.pd.get();
  described->region_lkey = device.region->lkey;
  described->region_rkey = device.region->rkey;
  described->heats = DescribeHeats(device);
  described->item_leases = DescribeItemLeases(device, lease_ms);
}

HeatsReply ServerMemory::DescribeHeats(const Registered& device) const {
  if (device.heats == nullptr) return {};
  return {.address = reinterpret_cast<uint64_t>(heats_->bytes().data()),
          .bytes = Heat::BytesFor(region_->bytes().size()),
          .rkey = device.heats->rkey,
          .granule_bytes = uint16_t{Heat::kGranuleBytes},
          .used_once = Heat::kUsedOnce,
          .units_per_doubling = uint8_t{Heat::kUnitsPerDoubling},
          .most = Heat::kMost};
}

ItemLeasesReply ServerMemory::DescribeItemLeases(const Registered& device,
                                                 uint32_t lease_ms) const {
  if (device.item_leases == nullptr) return {};
  return {.address = reinterpret_cast<uint64_t>(item_leases_->bytes().data()),
          .rkey = device.item_leases->rkey,
          .words = options_.leased_items,
          .lease_ms = lease_ms,
          .reserved = {}};
}

}  // namespace gannet
