#include "softverbs/cm/param.h"

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "softverbs/base/devices.h"
#include "softverbs/base/gid.h"
#include "softverbs/base/gid_table.h"

namespace softverbs::cm {
namespace {

// Without parameters rdma-core asks for endless retries.
constexpr uint8_t kDefaultRetries = 7;

uint8_t Retries(uint8_t wanted) { return std::min(wanted, kRetryCountMax); }

}  // namespace

int CheckParam(const CmId* id, const rdma_conn_param* param) {
  if (param == nullptr) return id->qp == nullptr ? EINVAL : 0;
  const DeviceLimits& limits = id->limits;
  if (param->responder_resources != RDMA_MAX_RESP_RES &&
      param->responder_resources > limits.responder_resources) {
    return EINVAL;
  }
  if (param->initiator_depth != RDMA_MAX_INIT_DEPTH &&
      param->initiator_depth > limits.initiator_depth) {
    return EINVAL;
  }
  return 0;
}

void FillParam(const CmId* id, const rdma_conn_param* param, Message* message) {
  if (id->qp != nullptr) {
    message->qp_num = id->qp->qp_num & kQueuePairMask;
    message->srq = id->qp->srq != nullptr;
  } else if (param != nullptr) {
    message->qp_num = param->qp_num & kQueuePairMask;
    message->srq = param->srq != 0;
  }
  message->psn = id->agreed.local_psn;
  message->responder_resources = id->agreed.responder_resources;
  message->initiator_depth = id->agreed.initiator_depth;
  message->flow_control = param != nullptr && param->flow_control != 0;
  message->retry_count = param != nullptr ? Retries(param->retry_count) : kDefaultRetries;
  message->rnr_retry_count = param != nullptr ? Retries(param->rnr_retry_count) : kDefaultRetries;
}

bool AppendData(const void* data, size_t size, size_t max, size_t* used, Message* message) {
  if (data == nullptr || size == 0) return true;
  if (size > max - *used) return false;
  std::memcpy(message->private_data + *used, data, size);
  *used += size;
  return true;
}

void ShowParam(const Message& message, size_t data_size, QueuedEvent* event) {
  std::memcpy(event->data.data(), message.private_data, data_size);
  rdma_conn_param& param = event->param.conn;
  param.private_data = event->data.data();
  param.private_data_len = static_cast<uint8_t>(data_size);
  param.responder_resources = message.initiator_depth;
  param.initiator_depth = message.responder_resources;
  param.flow_control = message.flow_control;
  param.retry_count = message.retry_count;
  param.rnr_retry_count = message.rnr_retry_count;
  param.srq = message.srq;
  param.qp_num = message.qp_num;
}

void ShowService(const Message& message, size_t data_size, QueuedEvent* event) {
  std::memcpy(event->data.data(), message.private_data, data_size);
  rdma_ud_param& param = event->param.ud;
  param.private_data = event->data.data();
  param.private_data_len = static_cast<uint8_t>(data_size);
  param.qp_num = message.qp_num;
  param.qkey = message.qkey;
}

ibv_ah_attr AddressHandle(const CmId* id, const Address& to) {
  ibv_ah_attr attr = {};
  attr.is_global = 1;
  attr.port_num = id->port_num;
  attr.grh.dgid = to.ToGid();
  attr.grh.hop_limit = kHopLimit;
  const ibv_gid own = id->local.ToGid();
  // An address in 127.0.0.0/8 may be none of the table.
  const int index = FindGid(own).value_or(IsMappedIpv4(own) ? LoopbackGidIndex(PortOf(own)) : 0);
  attr.grh.sgid_index = static_cast<uint8_t>(index);
  return attr;
}

uint32_t RandomPsn() {
  static thread_local std::minstd_rand random{std::random_device{}()};
  return random() & kPsnMask;
}

}  // namespace softverbs::cm
