#include "common/base/short_turns.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace gannet {
namespace {

// The kernel's struct sched_attr; its header and the C library's <sched.h> exclude each other.
struct SchedulingAttributes {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime;
  uint64_t deadline;
  uint64_t period;
};
static_assert(sizeof(SchedulingAttributes) == 48);

}  // namespace

void AskForTurns(int64_t turn_ns) {
  SchedulingAttributes attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  attributes.runtime = static_cast<uint64_t>(turn_ns);
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace gannet
