#ifndef SOFTVERBS_NIC_NIC_H_
#define SOFTVERBS_NIC_NIC_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "softverbs/nic/atomic_units.h"
#include "softverbs/nic/bells.h"
#include "softverbs/nic/exported_regions.h"
#include "softverbs/nic/link_directory.h"
#include "softverbs/nic/memory_table.h"
#include "softverbs/nic/multicast_groups.h"
#include "softverbs/nic/object_count.h"
#include "softverbs/nic/packet_engine.h"
#include "softverbs/nic/port_folder.h"
#include "softverbs/nic/ports.h"
#include "softverbs/nic/qp_table.h"
#include "softverbs/nic/remote_links.h"
#include "softverbs/nic/shared_memory.h"
#include "softverbs/nic/shared_tables.h"
#include "softverbs/nic/window_table.h"

namespace softverbs {

// The process's network adapter: its slot (the upper bits of its queue pair numbers), the tables it
// publishes, its links and the engine that drives them. All contexts of the process share it. The
// first one creates it, and it lives until the process ends. A forked child forgets it.
class Nic {
 public:
  // Returns the adapter and creates it on first use. Returns null and sets errno if it cannot be
  // created (no free slot, no descriptors).
  static Nic* Get();
  // Returns the adapter, or null if there is none yet.
  static Nic* Existing();

  uint32_t slot() const { return slot_; }
  SharedTables* tables() { return tables_; }
  int tables_fd() const { return tables_fd_.get(); }
  QpTable& qps() { return qps_; }
  MemoryTable& memory() { return memory_; }
  WindowTable& windows() { return windows_; }
  Ports& ports() { return ports_; }
  AtomicUnits& atomic_units() { return atomic_units_; }
  ExportedRegions& exported() { return exported_; }
  MulticastGroups& multicast() { return multicast_; }
  Bells& bells() { return bells_; }
  LinkDirectory& links() { return links_; }
  RemoteLinks& remote_links() { return remote_links_; }
  PacketEngine& engine() { return engine_; }

  ObjectCount& cqs() { return cqs_; }
  ObjectCount& pds() { return pds_; }
  ObjectCount& srqs() { return srqs_; }
  ObjectCount& ahs() { return ahs_; }

  uint32_t NewPdId() { return last_pd_.fetch_add(1, std::memory_order_relaxed) + 1; }

  // Makes the loop thread look at all rings soon.
  void WakeLoop();

  // Unmaps a retired region once no operation of this process can be using it.
  void Unmap(Mapping region);

 private:
  Nic(uint32_t slot, UniqueFd listener, UniqueFd tables_fd, UniqueFd tables_read_only,
      Mapping tables);
  static Nic* Create();

  const uint32_t slot_;
  const UniqueFd tables_owner_fd_;
  const UniqueFd tables_fd_;  // read only, for peers
  const Mapping tables_mapping_;
  SharedTables* const tables_;
  std::atomic<uint32_t> last_pd_{0};
  ObjectCount cqs_{"completion queues"};
  ObjectCount pds_{"protection domains"};
  ObjectCount srqs_{"shared receive queues"};
  ObjectCount ahs_{"address handles"};
  QpTable qps_;
  MemoryTable memory_;
  WindowTable windows_;
  AtomicUnits atomic_units_{&memory_, &windows_};
  ExportedRegions exported_;
  MulticastGroups multicast_;
  Bells bells_;
  PacketEngine engine_;
  LinkDirectory links_;
  RemoteLinks remote_links_{this};
  Ports ports_{this};
  PortFolder port_folder_{&ports_};
};

// Waits until `in_flight` (SharedQp::in_flight of an initiator) shows that the operation that began
// before the call has ended. Returns false if that takes too long: an initiator that a debugger or
// SIGSTOP stops in the middle of a copy must not hang its target.
bool AwaitQuiet(const std::atomic<uint64_t>& in_flight);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_NIC_H_
