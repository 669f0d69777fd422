#include "common/rdma/port.h"

#include <poll.h>

namespace gannet {
namespace {

// Of one lane, by the number of ibv_port_attr::active_speed: SDR, DDR, QDR, FDR10, FDR, EDR, HDR,
// NDR.
uint32_t LaneMbitPerSecond(uint8_t active_speed) {
  switch (active_speed) {
    case 1:
      return 2'000;
    case 2:
      return 4'000;
    case 4:
      return 8'000;
    case 8:
      return 10'000;
    case 16:
      return 13'636;
    case 32:
      return 25'000;
    case 64:
      return 50'000;
    case 128:
      return 100'000;
    default:
      return 0;
  }
}

uint32_t Lanes(uint8_t active_width) {
  switch (active_width) {
    case 1:
      return 1;
    case 2:
      return 4;
    case 4:
      return 8;
    case 8:
      return 12;
    case 16:
      return 2;
    default:
      return 0;
  }
}

uint8_t PortOf(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  return ibv_query_qp(qp, &attributes, IBV_QP_PORT, &init) == 0 ? attributes.port_num : uint8_t{0};
}

}  // namespace

uint32_t LinkMbitPerSecond(uint8_t active_speed, uint8_t active_width) {
  return LaneMbitPerSecond(active_speed) * Lanes(active_width);
}

Port LookAtPort(ibv_context* verbs, uint8_t number) {
  ibv_port_attr port{};
  if (ibv_query_port(verbs, number, &port) != 0) return {};
  return {.up = port.state == IBV_PORT_ACTIVE,
          .mtu_bytes = MtuBytes(port.active_mtu),
          .mbit_per_second = LinkMbitPerSecond(port.active_speed, port.active_width)};
}

bool TakeDeviceEvents(ibv_context* verbs, std::vector<PathEvent>* paths) {
  bool failed = false;
  pollfd fd{verbs->async_fd, POLLIN, 0};
  while (poll(&fd, 1, 0) > 0 && (fd.revents & POLLIN) != 0) {
    ibv_async_event event;
    if (ibv_get_async_event(verbs, &event) != 0) break;
    failed |= event.event_type == IBV_EVENT_DEVICE_FATAL;
    const bool moved = event.event_type == IBV_EVENT_PATH_MIG;
    if (moved || event.event_type == IBV_EVENT_PATH_MIG_ERR) {
      // Whoever destroys the queue pair waits until the event is acknowledged.
      paths->push_back({.port = PortOf(event.element.qp), .moved = moved});
    }
    ibv_ack_async_event(&event);
  }
  return failed;
}

}  // namespace gannet
