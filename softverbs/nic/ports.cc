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
  const uint32_t bit = 1u << device;
  {
    // The mutex orders the events as the changes.
    const LockGuard guard(mutex_);
    if (IsPortDown(device) != up) return;
    // Only packets pass what a port does. Peers' accelerators stop before the port is down.
    if (!up) SetAccelerating(false);
    if (!up) nic_->memory().StopSharing();
    ports_down.store(ports_down.load(std::memory_order_relaxed) ^ bit, std::memory_order_relaxed);
    if (!AnyPortDown() && fault::Active() == nullptr) SetAccelerating(true);
    ibv_async_event event{};
    event.element.port_num = 1;
    event.event_type = up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
    for (Context* context : contexts_) {
      if (context->device == device) context->async_events.Push(event);
    }
    if (up) RunWaiting(device);
  }
  if (up) return nic_->engine().HandleParked();
  fault::CountOne(fault::FaultKind::kPortDown);
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
  for (int device = 0; device < kMaxDevices; ++device) Set(device, true);
}

void Ports::SetAt(int64_t time_ns, int device, bool up) {
  const uint32_t number = plan_number_.load(std::memory_order_relaxed);
  Loop::Get().RunAt(time_ns, [this, number, device, up] {
    // Relaxed: a plan that is replaced at this moment may still strike.
    if (plan_number_.load(std::memory_order_relaxed) == number) Set(device, up);
  });
}

void Ports::FollowPlan() {
  plan_number_.fetch_add(1, std::memory_order_relaxed);
  AllUp();
  const fault::Plan* plan = fault::Active();
  if (plan == nullptr) return;
  for (const fault::PortFault& fault : plan->port_down) {
    if (fault.device >= DeviceCount()) continue;
    const int64_t down_at = MonotonicNs() + fault.after_ns;
    SetAt(down_at, fault.device, false);
    if (fault.for_ns != 0) SetAt(down_at + fault.for_ns, fault.device, true);
  }
}

}  // namespace softverbs
