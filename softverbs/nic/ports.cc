#include "softverbs/nic/ports.h"

#include <infiniband/verbs.h>

#include <utility>

#include "softverbs/base/accelerating.h"
#include "softverbs/base/devices.h"
#include "softverbs/base/monotonic_clock.h"
#include "softverbs/base/port_state.h"
#include "softverbs/fault/faults.h"
#include "softverbs/nic/context.h"
#include "softverbs/nic/nic.h"
#include "softverbs/nic/packet_handler.h"

namespace softverbs {

void Ports::Add(Context* context) {
  const LockGuard guard(mutex_);
  contexts_.insert(context);
}

void Ports::Remove(Context* context) {
  const LockGuard guard(mutex_);
  contexts_.erase(context);
}

void Ports::Set(int device, bool up) {
  {
    // The mutex orders the events as the changes.
    const LockGuard guard(mutex_);
    if (IsPortDown(device) != up || (dead_ >> device & 1) != 0) return;
    Flip(device, up);
    Tell(device, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    if (up) RunWaiting(device);
  }
  if (up) return nic_->engine().HandleParked();
  fault::CountOne(fault::FaultKind::kPortDown);
  StopRequests();
}

void Ports::Kill(int device) {
  {
    const LockGuard guard(mutex_);
    if ((dead_ >> device & 1) != 0) return;
    dead_ |= 1u << device;
    if (!IsPortDown(device)) Flip(device, false);
    Tell(device, IBV_EVENT_DEVICE_FATAL);
  }
  fault::CountOne(fault::FaultKind::kDeviceDead);
  StopRequests();
}

// Only packets pass what a port does. Peers' accelerators stop before the port is down.
void Ports::Flip(int device, bool up) {
  if (!up) SetAccelerating(false);
  if (!up) nic_->memory().StopSharing();
  ports_down.store(ports_down.load(std::memory_order_relaxed) ^ 1u << device,
                   std::memory_order_relaxed);
  if (!AnyPortDown() && fault::Active() == nullptr) SetAccelerating(true);
}

void Ports::Tell(int device, ibv_event_type type) {
  ibv_async_event event{};
  event.element.port_num = 1;
  event.event_type = type;
  for (Context* context : contexts_) {
    if (context->device == device) context->async_events.Push(event);
  }
}

void Ports::StopRequests() {
  const PacketEngine::Pause pause(nic_->engine());
  for (uint32_t index = 0; index < kQpsPerProcess; ++index) {
    if (Qp* qp = nic_->qps().At(index)) HandlePortDown(*qp);
  }
}

void Ports::WhenUp(int device, std::function<void()> fn) {
  const LockGuard guard(mutex_);
  when_up_.emplace_back(device, std::move(fn));
  if (!IsPortDown(device)) RunWaiting(device);
}

void Ports::RunWaiting(int device) {
  for (auto& [waits_for, fn] : when_up_) {
    if (waits_for == device) Loop::Get().Post(std::move(fn));
  }
  std::erase_if(when_up_, [device](const auto& each) { return each.first == device; });
}

void Ports::AllUp() {
  {
    const LockGuard guard(mutex_);
    dead_ = 0;
  }
  for (int device = 0; device < kMaxDevices; ++device) Set(device, true);
}

void Ports::DoAt(int64_t time_ns, std::function<void()> what) {
  const uint32_t number = plan_number_.load(std::memory_order_relaxed);
  Loop::Get().RunAt(time_ns, [this, number, what = std::move(what)] {
    // Relaxed: a plan that is replaced at this moment may still strike.
    if (plan_number_.load(std::memory_order_relaxed) == number) what();
  });
}

void Ports::FollowPlan() {
  plan_number_.fetch_add(1, std::memory_order_relaxed);
  AllUp();
  const fault::Plan* plan = fault::Active();
  if (plan == nullptr) return;
  for (const fault::PortFault& fault : plan->port_down) {
    const int device = fault.device;
    if (device >= DeviceCount()) continue;
    const int64_t down_at = MonotonicNs() + fault.after_ns;
    DoAt(down_at, [this, device] { Set(device, false); });
    if (fault.for_ns != 0) DoAt(down_at + fault.for_ns, [this, device] { Set(device, true); });
  }
  for (const fault::PortFault& fault : plan->device_dead) {
    const int device = fault.device;
    if (device >= DeviceCount()) continue;
    DoAt(MonotonicNs() + fault.after_ns, [this, device] { Kill(device); });
  }
}

}  // namespace softverbs
