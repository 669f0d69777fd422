#ifndef GANNET_SOFTVERBS_CM_PARAM_H_
#define GANNET_SOFTVERBS_CM_PARAM_H_

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>

#include "softverbs/cm/cm_id.h"
#include "softverbs/cm/wire.h"

namespace softverbs::cm {

// Between rdma_conn_param and the messages.

// Whether `param` (may be null) can be used to connect or accept `id`: EINVAL when it asks for more
// than the device has, or when there is neither a queue pair nor the number of one.
int CheckParam(const CmId* id, const rdma_conn_param* param);

// Fills what REQ and REP have in common: the queue pair, depths (from id->agreed), retry counts.
void FillParam(const CmId* id, const rdma_conn_param* param, Message* message);

// Appends private data to the `used` bytes a message has; false if they are more than `max` then.
bool AppendData(const void* data, size_t size, size_t max, size_t* used, Message* message);

// The parameters an event shows for a REQ or REP: seen from this side, so the peer's initiator
// depth is our responder resources. `data_size` bytes of private data are always there.
void ShowParam(const Message& message, size_t data_size, CmEvent* event);

// The same for the requests and replies of datagram ids; the address handle is left out.
void ShowService(const Message& message, size_t data_size, CmEvent* event);
// How datagrams get from the id to `to`.
ibv_ah_attr AddressHandle(const CmId* id, const Address& to);

// A first packet sequence number.
uint32_t RandomPsn();

}  // namespace softverbs::cm

#endif  // GANNET_SOFTVERBS_CM_PARAM_H_
