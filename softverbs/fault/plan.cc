#include "softverbs/fault/plan.h"

#include <charconv>
#include <iterator>
#include <vector>

#include "softverbs/base/devices.h"

namespace softverbs::fault {
namespace {

constexpr int64_t kMicrosecond = 1'000;
constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kSecond = 1'000'000'000;

constexpr const char* kNames[kKinds] = {"tear_read",
                                        "delay_completion",
                                        "delay_post",
                                        "stall_peer",
                                        "drop_connection_after",
                                        "rnr",
                                        "error",
                                        "lost_ack",
                                        "fail_reg_mr",
                                        "refuse_connect",
                                        "slow_connect",
                                        "port_down",
                                        "device_dead"};

struct OpcodeName {
  std::string_view name;
  uint32_t opcodes;  // a bit each
};
constexpr uint32_t Bit(ibv_wr_opcode opcode) { return 1u << opcode; }
constexpr OpcodeName kOpcodeNames[] = {
    {"send", Bit(IBV_WR_SEND) | Bit(IBV_WR_SEND_WITH_IMM)},
    {"write", Bit(IBV_WR_RDMA_WRITE) | Bit(IBV_WR_RDMA_WRITE_WITH_IMM)},
    {"read", Bit(IBV_WR_RDMA_READ)},
    {"cas", Bit(IBV_WR_ATOMIC_CMP_AND_SWP)},
    {"faa", Bit(IBV_WR_ATOMIC_FETCH_AND_ADD)},
    {"any", (1u << kOpcodes) - 1},
};

struct StatusName {
  std::string_view name;
  ibv_wc_status status;
};
constexpr StatusName kStatusNames[] = {
    {"retry_exc", IBV_WC_RETRY_EXC_ERR},   {"rnr_retry_exc", IBV_WC_RNR_RETRY_EXC_ERR},
    {"rem_access", IBV_WC_REM_ACCESS_ERR}, {"rem_inv_req", IBV_WC_REM_INV_REQ_ERR},
    {"rem_op", IBV_WC_REM_OP_ERR},         {"loc_prot", IBV_WC_LOC_PROT_ERR},
    {"loc_qp_op", IBV_WC_LOC_QP_OP_ERR},   {"loc_len", IBV_WC_LOC_LEN_ERR},
    {"general", IBV_WC_GENERAL_ERR},
};

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end == text.npos ? end : end - begin));
    if (end == text.npos) return parts;
    begin = end + 1;
  }
}

template <class Number>
bool ParseNumber(std::string_view text, Number* value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), *value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

// "0.25", "1/16", "1".
bool ParseChance(std::string_view text, double* chance) {
  const std::vector<std::string_view> parts = Split(text, '/');
  double over = 1;
  if (parts.size() > 2 || !ParseNumber(parts[0], chance)) return false;
  if (parts.size() == 2 && (!ParseNumber(parts[1], &over) || !(over > 0))) return false;
  *chance /= over;
  return *chance >= 0 && *chance <= 1;
}

// "250ns", "20us", "1ms", "2s".
bool ParseTime(std::string_view text, int64_t* ns) {
  struct Unit {
    std::string_view suffix;
    int64_t ns;
  };
  constexpr Unit kUnits[] = {{"ns", 1}, {"us", kMicrosecond}, {"ms", kMillisecond}, {"s", kSecond}};
  constexpr int64_t kLongest = 3600 * kSecond;
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.suffix)) continue;
    int64_t count = 0;
    const std::string_view number = text.substr(0, text.size() - unit.suffix.size());
    if (!ParseNumber(number, &count)) continue;  // "1ms" ends with "s" too
    if (count <= 0 || count > kLongest / unit.ns) return false;
    *ns = count * unit.ns;
    return true;
  }
  return false;
}

const char kChanceForm[] = "CHANCE, from 0 to 1: 0.25 or 1/16";
const char kTimedForm[] = "CHANCE[:TIME], like 1/16:20us (units ns, us, ms, s)";

// An item of the plan. The parsers return null, or a text that says what the value should look
// like.
using ItemParser = const char* (*)(std::string_view value, Plan* plan);

const char* ParseSeed(std::string_view value, Plan* plan) {
  return ParseNumber(value, &plan->seed) ? nullptr : "a number";
}

template <FaultKind kind>
const char* ParsePlain(std::string_view value, Plan* plan) {
  Chance& to = plan->chances[static_cast<size_t>(kind)];
  return ParseChance(value, &to.chance) ? nullptr : kChanceForm;
}

template <FaultKind kind, int64_t default_ns>
const char* ParseTimed(std::string_view value, Plan* plan) {
  Chance& to = plan->chances[static_cast<size_t>(kind)];
  to.ns = default_ns;
  const std::vector<std::string_view> parts = Split(value, ':');
  const bool valid = parts.size() <= 2 && ParseChance(parts[0], &to.chance) &&
                     (parts.size() == 1 || ParseTime(parts[1], &to.ns));
  return valid ? nullptr : kTimedForm;
}

const char* ParseDrop(std::string_view value, Plan* plan) {
  return ParseNumber(value, &plan->drop_connection_after) ? nullptr : "a number of requests";
}

uint32_t ParseOpcodes(std::string_view name) {
  for (const OpcodeName& known : kOpcodeNames) {
    if (known.name == name) return known.opcodes;
  }
  return 0;
}

const char* ParseError(std::string_view value, Plan* plan) {
  const char* form =
      "OPCODE:CHANCE[:STATUS]; opcodes send, write, read, cas, faa, any; statuses retry_exc, "
      "rnr_retry_exc, rem_access, rem_inv_req, rem_op, loc_prot, loc_qp_op, loc_len, general";
  const std::vector<std::string_view> parts = Split(value, ':');
  const uint32_t opcodes = ParseOpcodes(parts[0]);
  Chance chance;
  if (opcodes == 0 || parts.size() < 2 || parts.size() > 3 ||
      !ParseChance(parts[1], &chance.chance)) {
    return form;
  }
  const StatusName* status = kStatusNames;
  while (parts.size() == 3 && status != std::end(kStatusNames) && status->name != parts[2]) {
    ++status;
  }
  if (status == std::end(kStatusNames)) return form;
  for (size_t opcode = 0; opcode < kOpcodes; ++opcode) {
    if ((opcodes >> opcode & 1) == 0) continue;
    plan->error[opcode] = chance;
    plan->error_status[opcode] = status->status;
  }
  return nullptr;
}

const char* ParseLostAck(std::string_view value, Plan* plan) {
  const std::vector<std::string_view> parts = Split(value, ':');
  const uint32_t opcodes = ParseOpcodes(parts[0]);
  Chance chance;
  if (opcodes == 0 || parts.size() != 2 || !ParseChance(parts[1], &chance.chance)) {
    return "OPCODE:CHANCE; opcodes send, write, read, cas, faa, any";
  }
  for (size_t opcode = 0; opcode < kOpcodes; ++opcode) {
    if ((opcodes >> opcode & 1) != 0) plan->lost_ack[opcode] = chance;
  }
  return nullptr;
}

// "1:2s" and, of something that ends, "1:2s:500ms".
bool ParsePortFault(std::string_view value, size_t parts_max, int number_max, PortFault* fault) {
  const std::vector<std::string_view> parts = Split(value, ':');
  return parts.size() >= 2 && parts.size() <= parts_max && ParseNumber(parts[0], &fault->number) &&
         fault->number >= 0 && fault->number < number_max &&
         ParseTime(parts[1], &fault->after_ns) &&
         (parts.size() == 2 || ParseTime(parts[2], &fault->for_ns));
}

const char* ParsePortDown(std::string_view value, Plan* plan) {
  PortFault fault;
  if (!ParsePortFault(value, 3, kMaxPorts, &fault)) {
    return "PORT:AFTER[:FOR], like 1:2s:500ms: the number of a port, and times";
  }
  plan->port_down.push_back(fault);
  return nullptr;
}

const char* ParseDeviceDead(std::string_view value, Plan* plan) {
  PortFault fault;
  if (!ParsePortFault(value, 2, kMaxDevices, &fault)) {
    return "DEVICE:AFTER, like 1:2s: the number of a device, and a time";
  }
  plan->device_dead.push_back(fault);
  return nullptr;
}

const char* ParseAtomics(std::string_view value, Plan* plan) {
  if (value != "glob" && value != "hca" && value != "none") return "glob, hca or none";
  plan->atomics = value == "none"  ? Atomics::kNone
                  : value == "hca" ? Atomics::kNic
                                   : Atomics::kGlobal;
  return nullptr;
}

const char* ParseStrict(std::string_view value, Plan* plan) {
  if (value != "0" && value != "1") return "0 or 1";
  plan->strict = value == "1";
  return nullptr;
}

struct Item {
  std::string_view name;
  ItemParser parse;
};
constexpr Item kItems[] = {
    {"seed", ParseSeed},
    {"tear_read", ParseTimed<FaultKind::kTearRead, 20 * kMicrosecond>},
    {"delay_completion", ParseTimed<FaultKind::kDelayCompletion, 100 * kMicrosecond>},
    {"delay_post", ParseTimed<FaultKind::kDelayPost, 100 * kMicrosecond>},
    {"stall_peer", ParseTimed<FaultKind::kStallPeer, kMillisecond>},
    {"drop_connection_after", ParseDrop},
    {"rnr", ParsePlain<FaultKind::kReceiverNotReady>},
    {"error", ParseError},
    {"lost_ack", ParseLostAck},
    {"fail_reg_mr", ParsePlain<FaultKind::kFailRegMr>},
    {"refuse_connect", ParsePlain<FaultKind::kRefuseConnect>},
    {"slow_connect", ParseTimed<FaultKind::kSlowConnect, kSecond>},
    {"port_down", ParsePortDown},
    {"device_dead", ParseDeviceDead},
    {"atomics", ParseAtomics},
    {"strict", ParseStrict},
};

std::string AcceptedNames() {
  std::string names;
  for (const Item& item : kItems) {
    if (!names.empty()) names += ", ";
    names += item.name;
  }
  return names;
}

bool ParseItem(std::string_view text, Plan* plan, std::string* error) {
  const size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  for (const Item& item : kItems) {
    if (item.name != name) continue;
    const char* form =
        equals == text.npos ? "NAME=VALUE" : item.parse(text.substr(equals + 1), plan);
    if (form == nullptr) return true;
    *error = "\"" + std::string(text) + "\": expected " + form;
    return false;
  }
  *error = "\"" + std::string(text) + "\": unknown fault; accepted are " + AcceptedNames();
  return false;
}

// A strict device delays everything, even if the plan does not say by how much.
void ImplyByStrict(Plan* plan) {
  Chance& delay = plan->chances[static_cast<size_t>(FaultKind::kDelayPost)];
  if (plan->strict && delay.chance == 0) delay = {1, 20 * kMicrosecond};
}

}  // namespace

const char* Name(FaultKind kind) {
  return static_cast<size_t>(kind) < kKinds ? kNames[static_cast<size_t>(kind)] : nullptr;
}

bool Parse(std::string_view text, Plan* plan, std::string* error) {
  for (const std::string_view item : Split(text, ',')) {
    if (!ParseItem(item, plan, error)) return false;
  }
  ImplyByStrict(plan);
  return true;
}

}  // namespace softverbs::fault
