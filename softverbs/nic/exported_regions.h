#ifndef SOFTVERBS_NIC_EXPORTED_REGIONS_H_
#define SOFTVERBS_NIC_EXPORTED_REGIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <tuple>

#include "softverbs/base/unique_fd.h"

namespace softverbs {

// Memory of this process that peers may map: files (memfd, POSIX shared memory) that the
// application has mapped shared and registered for remote access.
//
// 1. A region without remote write or atomics is handed over opened for reading only.
// 2. A writable descriptor gives the whole file away. So it is handed over only for a registration
//    with remote write or atomics that covers the whole file; others are reached by packets.
// Thread safe.
class ExportedRegions {
 public:
  struct Location {
    uint32_t region = 0;  // 0: cannot be exported
    uint64_t offset = 0;  // of the memory in the region's file
  };

  // Finds the file behind [address, address + length) and takes a reference to its region.
  Location Acquire(const void* address, size_t length, bool writable);
  // True when that was the last reference: peers should unmap it.
  bool Release(uint32_t region);

  struct Handle {
    UniqueFd fd;
    bool writable = false;
  };
  // A descriptor to send to a peer; invalid when the region is gone.
  Handle Open(uint32_t region);

 private:
  using Key = std::tuple<dev_t, ino_t, bool>;
  struct Region {
    Key key;
    UniqueFd fd;
    int references = 0;
  };

  std::mutex mutex_;
  // Guarded by mutex_. Ids are never reused.
  uint32_t last_id_ = 0;
  std::map<uint32_t, Region> regions_;
  std::map<Key, uint32_t> by_file_;
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_EXPORTED_REGIONS_H_
