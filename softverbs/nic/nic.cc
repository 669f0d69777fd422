#include "softverbs/nic/nic.h"

#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "softverbs/base/log.h"
#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/mutex.h"
#include "softverbs/base/port_state.h"
#include "softverbs/base/stats.h"
#include "softverbs/nic/control_socket.h"

namespace softverbs {
namespace {

constexpr int64_t kQuietBoundNs = 1'000'000'000;

std::atomic<Nic*> the_nic{nullptr};
Mutex* create_mutex = new Mutex;  // replaced in a forked child, where it may be held

void ForgetNic() {
  the_nic.store(nullptr, std::memory_order_relaxed);
  ports_down.store(0, std::memory_order_relaxed);
  create_mutex = new Mutex;
}

// Starts the search at a different slot in each process, so that a number is not reused soon.
UniqueFd ClaimSlot(uint32_t* slot) {
  const uint32_t start = static_cast<uint32_t>(getpid()) * 7 + 1;
  for (uint32_t tried = 0; tried < kSlots - 1; ++tried) {
    *slot = 1 + (start + tried) % (kSlots - 1);
    UniqueFd listener = ListenOnSlot(*slot);
    if (listener) return listener;
    if (errno != EADDRINUSE) break;
  }
  Report(errno == EADDRINUSE ? "no free slot: %u processes of this network namespace have one"
                             : "can not take one of %u slots: %m",
         kSlots - 1);
  return UniqueFd();
}

}  // namespace

Nic* Nic::Existing() { return the_nic.load(std::memory_order_acquire); }

Nic* Nic::Get() {
  // Acquire pairs with the release in Create: the object is complete.
  if (Nic* nic = the_nic.load(std::memory_order_acquire)) return nic;
  const LockGuard guard(*create_mutex);
  if (Nic* nic = the_nic.load(std::memory_order_acquire)) return nic;
  return Create();
}

Nic* Nic::Create() {
  static const bool registered = [] {
    OnForkChild(ForgetNic);
    return true;
  }();
  (void)registered;
  StartStats();
  if (!Loop::Start()) return nullptr;
  uint32_t slot = 0;
  UniqueFd listener = ClaimSlot(&slot);
  UniqueFd tables_fd = CreateSealedMemory("softverbs-nic", sizeof(SharedTables));
  if (!listener || !tables_fd) return nullptr;
  UniqueFd read_only = ReopenReadOnly(tables_fd.get());
  Mapping tables(tables_fd.get(), sizeof(SharedTables), true);
  if (!read_only || !tables) return nullptr;
  auto* nic = new Nic(slot, std::move(listener), std::move(tables_fd), std::move(read_only),
                      std::move(tables));
  if (!nic->remote_links_.Start()) {
    delete nic;
    return nullptr;
  }
  the_nic.store(nic, std::memory_order_release);
  nic->links_.Start();
  nic->ports_.FollowPlan();
  nic->port_folder_.Follow();
  Report("slot %u", slot);
  return nic;
}

Nic::Nic(uint32_t slot, UniqueFd listener, UniqueFd tables_fd, UniqueFd tables_read_only,
         Mapping tables)
    : slot_(slot),
      tables_owner_fd_(std::move(tables_fd)),
      tables_fd_(std::move(tables_read_only)),
      tables_mapping_(std::move(tables)),
      tables_(static_cast<SharedTables*>(tables_mapping_.data())),
      qps_(slot),
      memory_(tables_),
      windows_(&memory_),
      multicast_(slot),
      engine_(tables_, &qps_),
      links_(this, std::move(listener)) {}

void Nic::WakeLoop() {
  Loop::Get().Post([this] { engine_.OnDoorbell(); });
}

void Nic::Unmap(Mapping region) {
  if (!region) return;
  for (uint32_t index = 0; index < kQpsPerProcess; ++index) {
    if (qps_.At(index) != nullptr && !AwaitQuiet(tables_->qps[index].in_flight)) {
      region.Leak();  // a stopped thread may still be using it
      return;
    }
  }
}

bool AwaitQuiet(const std::atomic<uint64_t>& in_flight) {
  // Sequentially consistent: the caller has already revoked what lets operations start, and this
  // load comes after that.
  const uint64_t seen = in_flight.load(std::memory_order_seq_cst);
  if (seen % 2 == 0) return true;
  const int64_t give_up = MonotonicNs() + kQuietBoundNs;
  while (in_flight.load(std::memory_order_acquire) == seen) {
    if (MonotonicNs() > give_up) {
      Report("an initiator is stopped in the middle of an operation: no longer waiting for it");
      return false;
    }
    sched_yield();
  }
  return true;
}

}  // namespace softverbs
