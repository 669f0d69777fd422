#include "softverbs/qp/transitions.h"

#include <cstddef>

namespace softverbs {
namespace {

struct Transition {
  ibv_qp_state from, to;
  int required, optional;
};

constexpr int kAnyTime = IBV_QP_STATE | IBV_QP_CUR_STATE;
constexpr int kPathAttributes = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE;

// Any state may go to RESET and ERR.

namespace rc {

constexpr int kInitAttributes = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtrAttributes = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kRtsAttributes =
    IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
constexpr int kWhileConnected = IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | kPathAttributes;

constexpr Transition kTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, kInitAttributes, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, kInitAttributes},
    {IBV_QPS_INIT, IBV_QPS_RTR, kRtrAttributes,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS, kRtsAttributes, kWhileConnected},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, kWhileConnected},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0,
     kWhileConnected | (kRtsAttributes & ~IBV_QP_SQ_PSN) | IBV_QP_AV | IBV_QP_PORT |
         IBV_QP_PKEY_INDEX | IBV_QP_MAX_DEST_RD_ATOMIC},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, kWhileConnected},
};

}  // namespace rc

namespace uc {

constexpr int kInitAttributes = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kRtrAttributes = IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
constexpr int kWhileConnected = IBV_QP_ACCESS_FLAGS | kPathAttributes;

constexpr Transition kTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, kInitAttributes, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, kInitAttributes},
    {IBV_QPS_INIT, IBV_QPS_RTR, kRtrAttributes,
     IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, kWhileConnected},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, kWhileConnected},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0, kWhileConnected | IBV_QP_AV | IBV_QP_PKEY_INDEX},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, kWhileConnected},
    {IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_ACCESS_FLAGS},
};

}  // namespace uc

namespace ud {

constexpr int kInitAttributes = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY;

constexpr Transition kTransitions[] = {
    {IBV_QPS_RESET, IBV_QPS_INIT, kInitAttributes, 0},
    {IBV_QPS_INIT, IBV_QPS_INIT, 0, kInitAttributes},
    {IBV_QPS_INIT, IBV_QPS_RTR, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_RTR, IBV_QPS_RTS, IBV_QP_SQ_PSN, IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_RTS, 0, IBV_QP_QKEY},
    {IBV_QPS_RTS, IBV_QPS_SQD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
    {IBV_QPS_SQD, IBV_QPS_SQD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
    {IBV_QPS_SQD, IBV_QPS_RTS, 0, IBV_QP_QKEY},
    {IBV_QPS_SQE, IBV_QPS_RTS, 0, IBV_QP_QKEY},
};

}  // namespace ud

template <size_t N>
bool IsIn(const Transition (&table)[N], ibv_qp_state from, ibv_qp_state to, int mask) {
  for (const Transition& transition : table) {
    if (transition.from != from || transition.to != to) continue;
    return (mask & transition.required) == transition.required &&
           (mask & ~(transition.required | transition.optional | kAnyTime)) == 0;
  }
  return false;
}

}  // namespace

bool IsLegalTransition(ibv_qp_type type, ibv_qp_state from, ibv_qp_state to, int mask) {
  if (to == IBV_QPS_RESET || to == IBV_QPS_ERR) return (mask & ~kAnyTime) == 0;
  switch (type) {
    case IBV_QPT_UD:
      return IsIn(ud::kTransitions, from, to, mask);
    case IBV_QPT_UC:
      return IsIn(uc::kTransitions, from, to, mask);
    default:
      return IsIn(rc::kTransitions, from, to, mask);
  }
}

}  // namespace softverbs
