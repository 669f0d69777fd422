#ifndef SOFTVERBS_CM_PARAM_H_
#define SOFTVERBS_CM_PARAM_H_

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>

#include "softverbs/cm/cm_id.h"
#include "softverbs/cm/wire.h"

namespace softverbs::cm {

// Conversions between rdma_conn_param and the messages.

// Returns 0 if `param` (may be null) can be used to connect or accept `id`. Returns EINVAL if it
// asks for more than the device has, or if there is neither a queue pair nor the number of one.
int CheckParam(const CmId* id, const rdma_conn_param* param);

// Fills in what REQ and REP have in common: the queue pair, depths (from id->agreed), retry counts.
void FillParam(const CmId* id, const rdma_conn_param* param, Message* message)
    SV_REQUIRES(state_mutex);

// Appends private data to the `used` bytes of a message. Returns false if they would exceed `max`.
bool AppendData(const void* data, size_t size, size_t max, size_t* used, Message* message);

// Fills in the parameters that an event shows for a REQ or REP. They are seen from this side, so
// the peer's initiator depth is our responder resources. There are always `data_size` bytes of
// private data.
void ShowParam(const Message& message, size_t data_size, QueuedEvent* event);

// Does so for the requests and replies of datagram ids, without the address handle.
void ShowService(const Message& message, size_t data_size, QueuedEvent* event);
// Returns the address handle attributes of datagrams from the id to `to`.
ibv_ah_attr AddressHandle(const CmId* id, const Address& to) SV_REQUIRES(state_mutex);

// Returns a random first packet sequence number.
uint32_t RandomPsn();

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_PARAM_H_
