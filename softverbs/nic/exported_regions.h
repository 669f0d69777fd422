#ifndef SOFTVERBS_NIC_EXPORTED_REGIONS_H_
#define SOFTVERBS_NIC_EXPORTED_REGIONS_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>

#include "softverbs/base/mutex.h"
#include "softverbs/base/unique_fd.h"

namespace softverbs {

// Memory of this process that peers may map: files (memfd, POSIX shared memory) that the
// application has mapped shared and registered for remote access.
//
// 1. A peer gets a read-only descriptor of a region without remote write or atomics.
// 2. A writable descriptor gives access to the whole file. So a peer gets one only if a
//    registration with remote write or atomics covers the whole file. It reaches other regions by
//    packets.
//
// Thread safe.
class ExportedRegions {
 public:
  struct Location {
    uint32_t region = 0;  // 0: cannot be exported
    uint64_t offset = 0;  // of the memory within the region's file
  };

  // Finds the file behind [address, address + length) and takes a reference to its region.
  Location Acquire(const void* address, size_t length, bool writable);
  // Returns true if that was the last reference. Then peers should unmap the region.
  bool Release(uint32_t region);

  struct Handle {
    UniqueFd fd;
    bool writable = false;
  };
  // Returns a descriptor to send to a peer, or an invalid one if the region is gone.
  Handle Open(uint32_t region);

 private:
  using Key = std::tuple<dev_t, ino_t, bool>;
  struct Region {
    Key key;
    UniqueFd fd;
    int references = 0;
  };

  Mutex mutex_;
  // Ids are never reused.
  uint32_t last_id_ SV_GUARDED_BY(mutex_) = 0;
  std::map<uint32_t, Region> regions_ SV_GUARDED_BY(mutex_);
  std::map<Key, uint32_t> by_file_ SV_GUARDED_BY(mutex_);
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_EXPORTED_REGIONS_H_
