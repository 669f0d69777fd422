#include "softverbs/nic/exported_regions.h"

#include <fcntl.h>
#include <unistd.h>

#include <utility>

#include "softverbs/base/mutex.h"
#include "softverbs/nic/shared_file.h"

namespace softverbs {
namespace {

// Rounds up, because a registration may end within the file's last page.
bool CoversWholeFile(const SharedFile& file, size_t length) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return file.offset == 0 && (length + page - 1) / page * page >= file.size;
}

}  // namespace

ExportedRegions::Location ExportedRegions::Acquire(const void* address, size_t length,
                                                   bool writable) {
  SharedFile file = FindSharedFile(address, length, writable);
  if (!file.fd || (writable && !CoversWholeFile(file, length))) return {};
  const Key key{file.device, file.inode, writable};
  const LockGuard guard(mutex_);
  auto [entry, is_new] = by_file_.try_emplace(key, last_id_ + 1);
  if (is_new) regions_.emplace(++last_id_, Region{key, std::move(file.fd), 0});
  ++regions_.at(entry->second).references;
  return {entry->second, file.offset};
}

bool ExportedRegions::Release(uint32_t region) {
  const LockGuard guard(mutex_);
  auto found = regions_.find(region);
  if (found == regions_.end() || --found->second.references > 0) return false;
  by_file_.erase(found->second.key);
  regions_.erase(found);
  return true;
}

ExportedRegions::Handle ExportedRegions::Open(uint32_t region) {
  const LockGuard guard(mutex_);
  auto found = regions_.find(region);
  if (found == regions_.end()) return {};
  return {UniqueFd(fcntl(found->second.fd.get(), F_DUPFD_CLOEXEC, 0)),
          std::get<bool>(found->second.key)};
}

}  // namespace softverbs
