#ifndef SOFTVERBS_NIC_WINDOW_TABLE_H_
#define SOFTVERBS_NIC_WINDOW_TABLE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "softverbs/base/mutex.h"
#include "softverbs/nic/memory_table.h"

namespace softverbs {

// The memory windows of the process, by key. A window opens a part of a region to peers, under a
// key of its own. Windows have keys that no region has (MemoryTable), and are not in the shared
// tables. So peers reach them by packets only, and lookups of regions cost what they would without
// windows.
//
// A window of type 1 is bound anew at will, and open to every queue pair of its protection domain.
// A window of type 2 (2B) is open to the queue pair that bound it. It must be invalidated before it
// is bound again.
//
// Thread safe. `mutex_` comes after a queue pair's lock, and before a link's.
class WindowTable {
 public:
  // What a bind asks for.
  struct Binding {
    uint32_t key;     // the new one: the window's, with another low byte
    uint32_t qpn;     // the queue pair that binds
    uint32_t pd;      // its protection domain
    uint32_t region;  // key of the region
    uint64_t addr;
    uint64_t length;
    unsigned access;  // enum ibv_access_flags
  };
  // Held while the memory of a window is used. Nobody invalidates the window meanwhile.
  using Hold = std::unique_lock<Mutex>;

  explicit WindowTable(MemoryTable* memory) : memory_(memory) {}

  // Returns the key of a new window, or 0 if the table is full.
  uint32_t Add(ibv_mw_type type, uint32_t pd);
  // Removes a window, bound or not. `key` may have any low byte.
  void Remove(uint32_t key);

  // Binds a window. For a window of type 1, a length of 0 unbinds it. Returns false if the window
  // or its region do not allow that.
  bool Bind(const Binding& binding);
  // Unbinds a window of type 2 that this queue pair bound. Returns false if the key is not that of
  // such a window. A window that is not bound any more counts, too.
  bool Invalidate(uint32_t key, uint32_t qpn);
  // Unbinds the windows of type 2 that this queue pair bound.
  void ForgetQueuePair(uint32_t qpn);

  // Makes a region's key invalid, unless windows are bound to it. Returns whether it did.
  bool CloseRegion(uint32_t region);

  // Returns the local address of [addr, addr + length) of a window, and holds it. Returns null
  // unless the window is bound, open to the queue pair, covers the range and has the right.
  uint8_t* Resolve(uint32_t key, uint64_t addr, uint64_t length, uint32_t qpn, uint32_t pd,
                   unsigned access, Hold* hold) SV_UNCHECKED;

 private:
  struct Window {
    ibv_mw_type type;
    uint32_t pd;
    uint32_t key;
    uint32_t region = 0;  // 0: not bound. The fields below are valid if it is.
    uint32_t qpn = 0;
    unsigned access = 0;
    uint64_t region_addr = 0;  // where it begins, as the region's users say
    uint64_t addr = 0;         // and as its own users say
    uint64_t length = 0;
  };

  Window* FindLocked(uint32_t key) SV_REQUIRES(mutex_);
  bool MayBindLocked(const Window& window, const Binding& binding) const SV_REQUIRES(mutex_);
  void UnbindLocked(Window& window) SV_REQUIRES(mutex_);

  MemoryTable* const memory_;
  Mutex mutex_;
  std::unordered_map<uint32_t, Window> windows_ SV_GUARDED_BY(mutex_);  // by WindowOf(key)
  std::unordered_map<uint32_t, int> bound_ SV_GUARDED_BY(mutex_);       // windows of a region
};

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_WINDOW_TABLE_H_
