#include <infiniband/verbs.h>

#include "softverbs/base/export.h"

// The texts are this library's own. Programs print them, and none should parse them.

namespace {

template <size_t N>
const char* Name(const char* const (&names)[N], int value) {
  return value >= 0 && value < static_cast<int>(N) && names[value] ? names[value] : "unknown";
}

constexpr const char* kNodeTypes[] = {nullptr,
                                      "InfiniBand channel adapter",
                                      "InfiniBand switch",
                                      "InfiniBand router",
                                      "iWARP NIC",
                                      "usNIC",
                                      "usNIC UDP",
                                      "unspecified"};

constexpr const char* kPortStates[] = {"no state change (NOP)", "down", "init", "armed", "active",
                                       "active defer"};

constexpr const char* kEvents[] = {"CQ error",
                                   "local work queue catastrophic error",
                                   "invalid request local work queue error",
                                   "local access violation work queue error",
                                   "communication established",
                                   "send queue drained",
                                   "path migrated",
                                   "path migration request error",
                                   "local catastrophic error",
                                   "port active",
                                   "port error",
                                   "LID change",
                                   "P_Key change",
                                   "SM change",
                                   "SRQ catastrophic error",
                                   "SRQ limit reached",
                                   "last WQE reached",
                                   "client reregistration",
                                   "GID table change",
                                   "WQ fatal"};

constexpr const char* kStatuses[] = {"success",
                                     "local length error",
                                     "local QP operation error",
                                     "local EE context operation error",
                                     "local protection error",
                                     "Work Request Flushed Error",
                                     "memory management operation error",
                                     "bad response error",
                                     "local access error",
                                     "remote invalid request error",
                                     "remote access error",
                                     "remote operation error",
                                     "transport retry counter exceeded",
                                     "RNR retry counter exceeded",
                                     "local RDD violation error",
                                     "remote invalid RD request",
                                     "aborted error",
                                     "invalid EE context number",
                                     "invalid EE context state",
                                     "fatal error",
                                     "response timeout error",
                                     "general error",
                                     "TM error",
                                     "TM software rendezvous"};

struct RateEntry {
  ibv_rate rate;
  int multiple;  // of 2.5 Gbit/s, nominal
  int mbps;      // the real rate
};
constexpr RateEntry kRates[] = {{IBV_RATE_2_5_GBPS, 1, 2500},      {IBV_RATE_5_GBPS, 2, 5000},
                                {IBV_RATE_10_GBPS, 4, 10000},      {IBV_RATE_20_GBPS, 8, 20000},
                                {IBV_RATE_30_GBPS, 12, 30000},     {IBV_RATE_40_GBPS, 16, 40000},
                                {IBV_RATE_60_GBPS, 24, 60000},     {IBV_RATE_80_GBPS, 32, 80000},
                                {IBV_RATE_120_GBPS, 48, 120000},   {IBV_RATE_14_GBPS, 6, 14062},
                                {IBV_RATE_28_GBPS, 11, 28125},     {IBV_RATE_50_GBPS, 20, 53125},
                                {IBV_RATE_56_GBPS, 22, 56250},     {IBV_RATE_112_GBPS, 45, 112500},
                                {IBV_RATE_168_GBPS, 67, 168750},   {IBV_RATE_25_GBPS, 10, 25781},
                                {IBV_RATE_100_GBPS, 40, 103125},   {IBV_RATE_200_GBPS, 80, 206250},
                                {IBV_RATE_300_GBPS, 120, 309375},  {IBV_RATE_400_GBPS, 160, 425000},
                                {IBV_RATE_600_GBPS, 240, 637500},  {IBV_RATE_800_GBPS, 320, 850000},
                                {IBV_RATE_1200_GBPS, 480, 1275000}};

const RateEntry* Find(ibv_rate rate) {
  for (const RateEntry& entry : kRates) {
    if (entry.rate == rate) return &entry;
  }
  return nullptr;
}

}  // namespace

SOFTVERBS_EXPORT const char* ibv_node_type_str(ibv_node_type type) {
  return Name(kNodeTypes, type);
}
SOFTVERBS_EXPORT const char* ibv_port_state_str(ibv_port_state state) {
  return Name(kPortStates, state);
}
SOFTVERBS_EXPORT const char* ibv_event_type_str(ibv_event_type event) {
  return Name(kEvents, event);
}
SOFTVERBS_EXPORT const char* ibv_wc_status_str(ibv_wc_status status) {
  return Name(kStatuses, status);
}

SOFTVERBS_EXPORT int ibv_rate_to_mult(ibv_rate rate) {
  const RateEntry* entry = Find(rate);
  return entry == nullptr ? -1 : entry->multiple;
}

SOFTVERBS_EXPORT ibv_rate mult_to_ibv_rate(int multiple) {
  for (const RateEntry& entry : kRates) {
    if (entry.multiple == multiple) return entry.rate;
  }
  return IBV_RATE_MAX;
}

SOFTVERBS_EXPORT int ibv_rate_to_mbps(ibv_rate rate) {
  const RateEntry* entry = Find(rate);
  return entry == nullptr ? -1 : entry->mbps;
}

SOFTVERBS_EXPORT ibv_rate mbps_to_ibv_rate(int mbps) {
  for (const RateEntry& entry : kRates) {
    if (entry.mbps == mbps) return entry.rate;
  }
  return IBV_RATE_MAX;
}
