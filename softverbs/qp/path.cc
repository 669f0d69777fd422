#include "softverbs/qp/path.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "softverbs/base/devices.h"
#include "softverbs/base/link_layer.h"
#include "softverbs/base/port_state.h"
#include "softverbs/nic/loop.h"
#include "softverbs/nic/nic.h"

namespace softverbs {
namespace {

// What packets say of their path: at which port they arrive, and whether their sender is MIGRATED.
void SetFlags(Qp& qp) SV_REQUIRES(qp.lock) {
  qp.path_flags = qp.attr.path_mig_state == IBV_MIG_MIGRATED ? 0 : kPacketArmed;
  const auto route = RouteOf(qp.context->device, qp.attr.ah_attr);
  if (route && PortNumber(PortOf(route->dgid)) == 2) qp.path_flags |= kPacketToSecondPort;
}

void SetState(Qp& qp, ibv_mig_state state) SV_REQUIRES(qp.lock) {
  qp.attr.path_mig_state = state;
  SetFlags(qp);
}

void Migrate(Qp& qp) SV_REQUIRES(qp.lock) {
  ibv_qp_attr& attr = qp.attr;
  std::swap(attr.ah_attr, attr.alt_ah_attr);
  std::swap(attr.pkey_index, attr.alt_pkey_index);
  std::swap(attr.port_num, attr.alt_port_num);
  std::swap(attr.timeout, attr.alt_timeout);
  SetState(qp, IBV_MIG_MIGRATED);
  qp.requester.retries_left = attr.retry_cnt;
  RaiseQpEvent(qp, IBV_EVENT_PATH_MIG);
  // Answers that waited for the port arrive by the other one.
  Loop::Get().Post([nic = qp.nic] { nic->engine().HandleParked(); });
}

}  // namespace

int CheckMigration(const Qp& qp, const ibv_qp_attr& attr, int mask) {
  if (!HasPathMigration()) return 0;
  if ((mask & IBV_QP_ALT_PATH) != 0) {
    const bool valid = HasPort(attr.alt_port_num) &&
                       attr.alt_ah_attr.port_num == attr.alt_port_num && attr.alt_pkey_index == 0 &&
                       attr.alt_timeout < 32;
    if (!valid) return EINVAL;
  }
  if ((mask & IBV_QP_PATH_MIG_STATE) == 0) return 0;
  const bool has_path = (mask & IBV_QP_ALT_PATH) != 0 || qp.attr.alt_port_num != 0;
  const bool rearms = attr.path_mig_state == IBV_MIG_REARM && has_path;
  return rearms || attr.path_mig_state == IBV_MIG_MIGRATED ? 0 : EINVAL;
}

void ChangePath(Qp& qp, ibv_mig_state before, int mask) {
  if (PortsEach() == 1) return;
  const bool moves = HasPathMigration() && (mask & IBV_QP_PATH_MIG_STATE) != 0 &&
                     before == IBV_MIG_ARMED && qp.attr.path_mig_state == IBV_MIG_MIGRATED;
  if (moves) return Migrate(qp);
  SetFlags(qp);
}

int PathPort(const Qp& qp) {
  // Before it has one, it is that of the first.
  return PortOf(qp.context->device, std::max<unsigned>(qp.attr.port_num, 1));
}

int ArrivalPort(const Qp& qp, const PacketHeader& header) {
  const bool second = (header.flags & kPacketToSecondPort) != 0 && PortsEach() > 1;
  return PortOf(qp.context->device, second ? 2 : 1);
}

void FollowPeer(Qp& qp, const PacketHeader& header) {
  // A refusal need not come from the queue pair that is refused, and says nothing of it.
  const ibv_mig_state state = qp.attr.path_mig_state;
  if (state == IBV_MIG_MIGRATED || !HasPathMigration() || header.type == PacketType::kNak) return;
  const bool peer_migrated = (header.flags & kPacketArmed) == 0;
  const int port = ArrivalPort(qp, header);
  if (state == IBV_MIG_REARM) {
    if (!peer_migrated && port == PathPort(qp)) SetState(qp, IBV_MIG_ARMED);
  } else if (peer_migrated && port == PortOf(qp.context->device, qp.attr.alt_port_num)) {
    Migrate(qp);
  } else if (peer_migrated) {
    SetState(qp, IBV_MIG_REARM);
    RaiseQpEvent(qp, IBV_EVENT_PATH_MIG_ERR);
  }
}

bool MigrateFromDeadPath(Qp& qp, bool last) {
  if (qp.attr.path_mig_state != IBV_MIG_ARMED || !HasPathMigration()) return false;
  if (!IsPortDown(PortOf(qp.context->device, qp.attr.alt_port_num))) {
    Migrate(qp);
    return true;
  }
  if (last) RaiseQpEvent(qp, IBV_EVENT_PATH_MIG_ERR);
  return false;
}

}  // namespace softverbs
