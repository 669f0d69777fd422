// Registers memory with each device, those that are opened later too: Open and Register work under
// one mutex, so no range is left out of a domain. Deregistering takes the same mutex.

#include "client/session/memory_domains.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

// A device translates addresses in huge pages with fewer entries, and so does the CPU.
constexpr uint64_t kHugePagesFrom = 2 << 20;

}  // namespace

MemoryRange::~MemoryRange() {
  if (domains_ != nullptr) domains_->Remove(this);
}

absl::Status MemoryRange::RegisterWith(ibv_pd* pd, uint32_t domain) {
  if (dmabuf_.has_value()) {
    GANNET_ASSIGN_OR_RETURN(
        mrs_[domain], RegisterDmabufMemory(pd, dmabuf_->fd, dmabuf_->offset, bytes_, access_));
  } else {
    GANNET_ASSIGN_OR_RETURN(mrs_[domain], RegisterMemory(pd, {data_, bytes_}, access_));
  }
  keys_.lkeys[domain] = mrs_[domain]->lkey;
  keys_.rkeys[domain] = mrs_[domain]->rkey;
  return absl::OkStatus();
}

void MemoryRange::Deregister(uint32_t domain) {
  mrs_[domain].reset();
  keys_.lkeys[domain] = keys_.rkeys[domain] = 0;
}

absl::StatusOr<uint32_t> MemoryDomains::Open(ibv_context* device) {
  MutexLock lock(mutex_);
  for (uint32_t i = 0; i < domains_.size(); ++i) {
    if (domains_[i].device == device) return i;
  }
  const auto domain = static_cast<uint32_t>(domains_.size());
  if (domain == kDomainsMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a client can use at most ", kDomainsMax, " devices"));
  }
  Handle<ibv_pd> pd(ibv_alloc_pd(device));
  if (pd == nullptr) return LastErrnoStatus("cannot allocate a protection domain");
  for (MemoryRange* range : ranges_) {
    absl::Status status = range->RegisterWith(pd.get(), domain);
    if (status.ok()) continue;
    // A domain that still has registrations cannot be given back.
    for (MemoryRange* registered : ranges_) registered->Deregister(domain);
    return status;
  }
  domains_.push_back({device, std::move(pd)});
  return domain;
}

ibv_pd* MemoryDomains::pd(uint32_t domain) const {
  MutexLock lock(mutex_);
  return domains_[domain].pd.get();
}

uint32_t MemoryDomains::RkeyIn(uint32_t domain, uint32_t former, uint32_t rkey) const {
  MutexLock lock(mutex_);
  for (const MemoryRange* range : ranges_) {
    if (range->keys_.rkeys[former] == rkey) return range->keys_.rkeys[domain];
  }
  return rkey;
}

absl::StatusOr<std::unique_ptr<MemoryRange>> MemoryDomains::Register(std::span<std::byte> memory,
                                                                     bool remote_read) {
  if (memory.empty()) return absl::InvalidArgumentError("no memory to register");
  std::unique_ptr<MemoryRange> range(new MemoryRange());
  range->data_ = memory.data();
  range->address_ = reinterpret_cast<uint64_t>(memory.data());
  range->bytes_ = memory.size();
  range->access_ = remote_read ? RemoteAccess::kRead : RemoteAccess::kNone;
  return Add(std::move(range));
}

absl::StatusOr<std::unique_ptr<MemoryRange>> MemoryDomains::Allocate(uint64_t bytes) {
  std::unique_ptr<MemoryRange> range(new MemoryRange());
  GANNET_ASSIGN_OR_RETURN(
      range->own_, SharedMemory::Create(
                       {.name = "gannet-registered",
                        .bytes = bytes,
                        .huge_pages = bytes < kHugePagesFrom ? HugePages::kOff : HugePages::kAuto,
                        .prefault = false}));
  range->data_ = range->own_->bytes().data();
  range->address_ = reinterpret_cast<uint64_t>(range->data_);
  range->bytes_ = bytes;
  range->access_ = RemoteAccess::kRead;
  return Add(std::move(range));
}

absl::StatusOr<std::unique_ptr<MemoryRange>> MemoryDomains::AllocateBuffers(uint64_t bytes,
                                                                            RemoteAccess access) {
  std::unique_ptr<MemoryRange> range(new MemoryRange());
  if (access == RemoteAccess::kRead) {
    GANNET_ASSIGN_OR_RETURN(range->own_, SharedMemory::Create({.name = "gannet-lent",
                                                               .bytes = bytes,
                                                               .huge_pages = HugePages::kOff,
                                                               .prefault = false}));
    range->data_ = range->own_->bytes().data();
  } else {
    GANNET_ASSIGN_OR_RETURN(range->own_private_, PrivateMemory::Create(bytes));
    range->data_ = range->own_private_.bytes().data();
  }
  range->address_ = reinterpret_cast<uint64_t>(range->data_);
  range->bytes_ = bytes;
  range->access_ = access;
  return Add(std::move(range));
}

absl::StatusOr<std::unique_ptr<MemoryRange>> MemoryDomains::RegisterDmabuf(int fd, uint64_t offset,
                                                                           uint64_t bytes,
                                                                           bool remote_read) {
  if (bytes == 0) return absl::InvalidArgumentError("no memory to register");
  std::unique_ptr<MemoryRange> range(new MemoryRange());
  range->bytes_ = bytes;
  range->dmabuf_ = {fd, offset};
  range->access_ = remote_read ? RemoteAccess::kRead : RemoteAccess::kNone;
  return Add(std::move(range));
}

absl::StatusOr<std::unique_ptr<MemoryRange>> MemoryDomains::Add(
    std::unique_ptr<MemoryRange> range) {
  MutexLock lock(mutex_);
  for (uint32_t i = 0; i < domains_.size(); ++i) {
    GANNET_RETURN_IF_ERROR(range->RegisterWith(domains_[i].pd.get(), i));
  }
  range->domains_ = shared_from_this();
  ranges_.push_back(range.get());
  return range;
}

// Deregisters under the mutex, so that Open does not register it meanwhile.
void MemoryDomains::Remove(MemoryRange* range) {
  MutexLock lock(mutex_);
  std::erase(ranges_, range);
  for (Handle<ibv_mr>& mr : range->mrs_) mr.reset();
}

}  // namespace gannet
