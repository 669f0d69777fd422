#ifndef GANNET_TOOLS_KVCLI_DOCTOR_H_
#define GANNET_TOOLS_KVCLI_DOCTOR_H_

#include <gannet/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rdma/cm_path.h"
#include "common/rdma/device_report.h"
#include "tools/kvcli/member_answer.h"

namespace gannet::kvcli {

// What is wrong with this machine and the way to a server. Facts are gathered elsewhere
// (doctor_facts.h), so each judgement is a function of them.

struct MachineFacts {
  std::vector<DeviceReport> devices;
  // What the loopback test of the device that programs use said.
  absl::Status probe;
  std::optional<uint64_t> memlock_bytes;  // nullopt: no limit
  std::optional<uint64_t> memlock_hard_bytes;
  bool may_lock_all = false;  // CAP_IPC_LOCK
  std::string huge_pages;     // the mode of transparent huge pages; empty: the kernel has none
  uint32_t cores = 0;         // that this process may use
  std::string version;        // of this program
};

// A rail of a server, and the way there.
struct RailFacts {
  RailInfo told;  // when only the first connection of this program was there
  absl::StatusOr<CmPath> path = absl::UnknownError("not tried");
};

// The way to one server.
struct WayFacts {
  std::string endpoint;
  // A group's members, whether a way leads to each, and what each answered.
  struct MemberFacts {
    std::string address;
    absl::Status path;
    MemberAnswer answer = {};
  };
  std::vector<MemberFacts> members;
  std::vector<std::string> addresses;  // empty: the name was not resolved
  std::string host;                    // of the first one, without the port
  absl::Status resolved;
  // To the first address that a way leads to. If there is none, it was not tried to connect.
  absl::StatusOr<CmPath> path = absl::UnknownError("not tried");
  absl::Status connected;
  // These as far as it was connected.
  std::string device;     // that rdma_cm chose
  std::string kind;       // of it
  std::string net;        // SOFTVERBS_NET of this program
  std::string lock_mode;  // of ServerInfo
  uint32_t read_depth = 0;
  uint32_t protocol_version = 0;
  // Which member of a group is primary, and the group's epoch, modulo 4,096.
  uint64_t history = 0;  // 0: it is no group
  std::string primary;
  uint32_t epoch = 0;
  bool read_only = false;
  absl::Status answered;         // a ping
  std::vector<RailFacts> rails;  // none if there is one
  // What it told. All zero if it did not.
  ServerStats stats;
  // How far the server's clock is ahead of this machine's. nullopt: not known.
  std::optional<std::chrono::milliseconds> clock_ahead;
};

enum class Severity : uint8_t { kFine, kHint, kWarning, kError };
std::string_view SeverityName(Severity severity);

struct Finding {
  Severity severity = Severity::kFine;
  std::string check;  // "memlock", "port" ...
  std::string text;
  std::string mend;  // a command or a setting; empty if nothing is wrong
};

std::vector<Finding> JudgeDevices(const MachineFacts& facts);
std::vector<Finding> JudgePort(const DeviceReport& device, const PortReport& port);
Finding JudgeMemlock(const MachineFacts& facts);
Finding JudgeHugePages(const MachineFacts& facts);
Finding JudgeCores(const MachineFacts& facts);
// PFC and ECN cannot be seen from here. So for RoCE on hardware this says what to look at.
std::vector<Finding> JudgeFlowControl(const MachineFacts& facts);
Finding JudgePath(const WayFacts& way);
// What mends a connection that was not made, or not to this program.
std::string ConnectionMend(const WayFacts& way);
// REQUIRES: clock_ahead.
Finding JudgeClock(const WayFacts& way);
// Judges the disk behind a server's memory by what the server tells of it, so from any machine.
// Nothing if there is none.
std::vector<Finding> JudgeTier(const ServerStats& stats);
// Judges the cables to a server with several rails. `devices` are this machine's.
std::vector<Finding> JudgeRails(const std::vector<DeviceReport>& devices,
                                const std::vector<RailFacts>& rails);
Finding JudgeMember(const WayFacts::MemberFacts& member);
// Judges a group's members and its primary.
std::vector<Finding> JudgeGroup(const WayFacts& way);
std::vector<Finding> JudgeWay(const WayFacts& way);

// All of them, the machine first.
std::vector<Finding> Judge(const MachineFacts& machine, const std::vector<WayFacts>& ways);

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_DOCTOR_H_
