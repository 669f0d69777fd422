#include "softverbs/base/errno.h"
#include "softverbs/base/export.h"
#include "softverbs/base/gid.h"
#include "softverbs/base/gid_table.h"
#include "softverbs/nic/context.h"
#include "softverbs/qp/qp.h"

using softverbs::Qp;

// On Ethernet the LID of a group has no meaning.

SOFTVERBS_EXPORT int ibv_attach_mcast(ibv_qp* ibv, const ibv_gid* group, uint16_t) {
  Qp& qp = *Qp::From(ibv);
  if (const int error = qp.Check()) return softverbs::WithErrno(error);
  if (!qp.IsDatagram() || !softverbs::IsMulticastGid(*group)) return softverbs::WithErrno(EINVAL);
  if (const int error = softverbs::CheckMulticast()) return softverbs::WithErrno(error);
  return softverbs::WithErrno(qp.nic->multicast().Attach(*group, qp.number));
}

SOFTVERBS_EXPORT int ibv_detach_mcast(ibv_qp* ibv, const ibv_gid* group, uint16_t) {
  if (softverbs::Inherited(ibv->context)) return 0;
  Qp& qp = *Qp::From(ibv);
  if (const int error = qp.Check()) return softverbs::WithErrno(error);
  return softverbs::WithErrno(qp.nic->multicast().Detach(*group, qp.number));
}
