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

void Ports::Set(int port, bool up) {
  {
    // The mutex orders the events as the changes.
    const LockGuard guard(mutex_);
    if (IsPortDown(port) != up || (dead_ >> DeviceOf(port) & 1) != 0) return;
    Flip(port, up);
    Tell(port, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    if (up) RunWaiting(port);
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
    for (unsigned number = 1; HasPort(number); ++number) {
      const int port = PortOf(device, number);
      if (!IsPortDown(port)) Flip(port, false);
    }
    Tell(PortOf(device, 1), IBV_EVENT_DEVICE_FATAL);
  }
  fault::CountOne(fault::FaultKind::kDeviceDead);
  StopRequests();
}

// Only packets pass what a port does. Peers' accelerators stop before the port is down.
void Ports::Flip(int port, bool up) {
  if (!up) SetAccelerating(false);
  if (!up) nic_->memory().StopSharing();
  ports_down.store(ports_down.load(std::memory_order_relaxed) ^ 1u << port,
                   std::memory_order_relaxed);
  if (!AnyPortDown() && fault::Active() == nullptr) SetAccelerating(true);
}

void Ports::Tell(int port, ibv_event_type type) {
  ibv_async_event event{};
  event.element.port_num = PortNumber(port);
  event.event_type = type;
  for (Context* context : contexts_) {
    if (context->device == DeviceOf(port)) context->async_events.Push(event);
  }
}

void Ports::StopRequests() {
  const PacketEngine::Pause pause(nic_->engine());
  for (uint32_t index = 0; index < kQpsPerProcess; ++index) {
    if (Qp* qp = nic_->qps().At(index)) HandlePortDown(*qp);
  }
}

void Ports::WhenUp(int port, std::function<void()> fn) {
  const LockGuard guard(mutex_);
  when_up_.emplace_back(port, std::move(fn));
  if (!IsPortDown(port)) RunWaiting(port);
}

void Ports::RunWaiting(int port) {
  for (auto& [waits_for, fn] : when_up_) {
    if (waits_for == port) Loop::Get().Post(std::move(fn));
  }
  std::erase_if(when_up_, [port](const auto& each) { return each.first == port; });
}

void Ports::AllUp() {
  {
    const LockGuard guard(mutex_);
    dead_ = 0;
  }
  for (int port = 0; port < PortCount(); ++port) Set(port, true);
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
    const int port = fault.number;
    if (port >= PortCount()) continue;
    const int64_t down_at = MonotonicNs() + fault.after_ns;
    DoAt(down_at, [this, port] { Set(port, false); });
    if (fault.for_ns != 0) DoAt(down_at + fault.for_ns, [this, port] { Set(port, true); });
  }
  for (const fault::PortFault& fault : plan->device_dead) {
    const int device = fault.number;
    if (device >= DeviceCount()) continue;
    DoAt(MonotonicNs() + fault.after_ns, [this, device] { Kill(device); });
  }
}

}  // namespace softverbs
