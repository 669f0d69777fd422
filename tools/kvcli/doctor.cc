#include "tools/kvcli/doctor.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/kvcli/text.h"
#include "tools/kvcli/tier_figures.h"

namespace gannet::kvcli {
namespace {

// Returns the host of HOST:PORT.
std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

// A client registers some MiB, and a server its whole memory.
constexpr uint64_t kMemlockBytesEnough = 64u << 20;
constexpr uint32_t kMtuBytesGood = 4096;
// Below this, nobody notices; and the way of the server's answer is part of it.
constexpr std::chrono::seconds kClockApartMax{2};

// A hard disk reads within some 10 ms, if it is not kept busy.
constexpr double kTierReadUsMax = 20'000;
// Stubs that leave less than this part of their budget leave none: the server keeps so much free.
constexpr uint64_t kNearlyShare = 32;
// So many of the values written, and so many more, may go unwritten without a word.
constexpr uint64_t kUnwrittenShare = 10;
constexpr uint64_t kUnwrittenMin = 1000;

constexpr char kMemlockMend[] =
    "echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/rdma.conf, then log in again; "
    "for a service LimitMEMLOCK=infinity";

Finding Fine(std::string check, std::string text) {
  return {Severity::kFine, std::move(check), std::move(text), ""};
}

}  // namespace

std::string_view SeverityName(Severity severity) {
  switch (severity) {
    case Severity::kFine:
      return "ok";
    case Severity::kHint:
      return "hint";
    case Severity::kWarning:
      return "warning";
    case Severity::kError:
      return "error";
  }
  return "error";
}

std::vector<Finding> JudgeDevices(const MachineFacts& facts) {
  if (facts.devices.empty()) {
    return {{Severity::kError, "device", "this machine has no RDMA device",
             "sudo modprobe rdma_rxe && sudo rdma link add rxe0 type rxe netdev eth0; or "
             "--device=soft"}};
  }
  std::vector<Finding> findings;
  for (const DeviceReport& device : facts.devices) {
    const std::string text =
        absl::StrCat(device.name, ": ", std::string(DeviceKindName(device.kind)));
    if (device.kind == DeviceKind::kHardware) {
      findings.push_back(Fine("device", text));
    } else {
      findings.push_back({Severity::kHint, "device",
                          absl::StrCat(text, ", which is for trying out: the CPU does its work"),
                          "use a machine with an RDMA NIC where speed matters"});
    }
    if (device.ports.empty()) {
      findings.push_back({Severity::kError, "port",
                          absl::StrCat(device.name, ": it tells of no port"),
                          "sudo dmesg | grep -i rdma"});
    }
    for (const PortReport& port : device.ports) {
      std::ranges::move(JudgePort(device, port), std::back_inserter(findings));
    }
  }
  if (!facts.probe.ok()) {
    findings.push_back(
        {Severity::kError, "loopback",
         absl::StrCat("no device passes a loopback test: ", std::string(facts.probe.message())),
         "ibv_rc_pingpong -d DEVICE -g 0 & ibv_rc_pingpong -d DEVICE -g 0 localhost"});
  }
  return findings;
}

std::vector<Finding> JudgePort(const DeviceReport& device, const PortReport& port) {
  const std::string name = absl::StrCat(device.name, "/", port.number);
  const std::string interface = port.interface.empty() ? "NETDEV" : port.interface;
  if (!port.active) {
    return {{Severity::kError, "port",
             absl::StrCat(name, ": ", port.state.empty() ? "no state" : port.state),
             absl::StrCat("sudo ip link set dev ", interface,
                          " up; rdma link show; look at the cable")}};
  }
  std::vector<Finding> findings = {Fine("port", absl::StrCat(name, ": active, ", port.link_layer))};
  if (port.gids.empty()) {
    findings.push_back({Severity::kError, "gid",
                        absl::StrCat(name, ": it has no GID, so no address leads to it"),
                        absl::StrCat("sudo ip addr add ADDRESS/24 dev ", interface)});
  } else {
    findings.push_back(Fine("gid", absl::StrCat(name, ": ", absl::StrJoin(port.gids, ", "))));
  }
  if (port.mtu_bytes < std::min(kMtuBytesGood, port.mtu_bytes_max)) {
    findings.push_back(
        {Severity::kHint, "mtu",
         absl::StrCat(name, ": packets of ", port.mtu_bytes, " bytes, ", port.mtu_bytes_max,
                      " are possible"),
         absl::StrCat("sudo ip link set dev ", interface, " mtu 9000, there and at the switch")});
  } else {
    findings.push_back(Fine("mtu", absl::StrCat(name, ": ", port.mtu_bytes, " bytes")));
  }
  return findings;
}

Finding JudgeMemlock(const MachineFacts& facts) {
  if (!facts.memlock_bytes || facts.may_lock_all) return Fine("memlock", "no limit");
  const std::string text =
      absl::StrCat("at most ", *facts.memlock_bytes >> 10, " KiB may be locked");
  if (*facts.memlock_bytes >= kMemlockBytesEnough) {
    return Fine("memlock", absl::StrCat(text, ", enough for a client"));
  }
  const bool may_raise =
      !facts.memlock_hard_bytes || *facts.memlock_hard_bytes >= kMemlockBytesEnough;
  return {Severity::kWarning, "memlock",
          absl::StrCat(text, ": registering memory may fail, at a server for sure"),
          may_raise ? "ulimit -l $(ulimit -H -l)" : kMemlockMend};
}

Finding JudgeHugePages(const MachineFacts& facts) {
  if (facts.huge_pages == "always" || facts.huge_pages == "madvise") {
    return Fine("huge pages", facts.huge_pages);
  }
  return {Severity::kHint, "huge pages",
          absl::StrCat("transparent huge pages are ",
                       facts.huge_pages.empty() ? "not there" : facts.huge_pages,
                       ", so NIC and CPU miss their tables more often"),
          "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"};
}

Finding JudgeCores(const MachineFacts& facts) {
  const std::string text = absl::StrCat(facts.cores, facts.cores == 1 ? " core" : " cores");
  if (facts.cores >= 2) return Fine("cores", text);
  return {Severity::kWarning, "cores",
          absl::StrCat(text, ": a server's worker and a client that polls take turns on it"),
          "taskset -pc $$ shows the cores; use Wait::kAdaptive, and --busy_poll_us=0 of kvserver"};
}

std::vector<Finding> JudgeFlowControl(const MachineFacts& facts) {
  std::vector<Finding> findings;
  for (const DeviceReport& device : facts.devices) {
    const bool roce = std::ranges::any_of(
        device.ports, [](const PortReport& port) { return port.link_layer == "Ethernet"; });
    if (device.kind != DeviceKind::kHardware || !roce) continue;
    findings.push_back({Severity::kHint, "flow control",
                        absl::StrCat(device.name,
                                     ": RoCE loses packets without PFC or ECN, here and at the "
                                     "switch; neither can be seen from a program"),
                        "mlnx_qos -i NETDEV; cat /sys/class/net/NETDEV/ecn/roce_np/enable/3; "
                        "rdma statistic show link " +
                            device.name + "/1"});
  }
  return findings;
}

Finding JudgePath(const WayFacts& way) {
  if (!way.path.ok()) {
    return {Severity::kError, "route",
            absl::StrCat(way.endpoint, ": ", std::string(way.path.status().message())),
            absl::StrCat("ip route get ", way.host,
                         " shows the interface; rdma link show must have a device on it")};
  }
  const CmPath& path = *way.path;
  const std::string place = absl::StrCat(path.device, "/", path.port);
  if (path.gid.empty()) {
    return Fine("route", absl::StrCat("to ", way.endpoint, " by ", place, ", which needs no GID"));
  }
  const std::string type = path.gid_type.empty() ? "" : absl::StrCat(", ", path.gid_type);
  const std::string text = absl::StrCat("to ", way.endpoint, " by ", place, " and its GID ",
                                        path.gid_index, " (", path.gid, type, ")");
  if (path.gid_type != "IB/RoCE v1" || path.gid.starts_with("fe80:")) return Fine("route", text);
  return {Severity::kHint, "route", absl::StrCat(text, ": packets of RoCE v1 do not pass routers"),
          absl::StrCat("sudo mkdir -p /sys/kernel/config/rdma_cm/", path.device,
                       "; echo 'RoCE v2' | sudo tee /sys/kernel/config/rdma_cm/", path.device,
                       "/ports/", path.port, "/default_roce_mode")};
}

std::string ConnectionMend(const WayFacts& way) {
  const std::string message(way.connected.message());
  const std::string address = way.addresses.empty() ? way.endpoint : way.addresses.front();
  if (absl::IsPermissionDenied(way.connected)) {
    return "give the server's key with --auth_file=FILE, and see that both clocks are right: "
           "timedatectl";
  }
  if (absl::IsUnimplemented(way.connected)) {
    return "kvcli --version; kvserver --version: both sides need the same version of the protocol";
  }
  if (absl::IsResourceExhausted(way.connected)) return kMemlockMend;
  if (absl::StrContains(message, "nobody listens")) {
    return absl::StrCat("there: systemctl start kvserver, or kvserver --listen=", address,
                        "; rdma resource show cm_id lists who listens, and at which port");
  }
  if (absl::StrContains(message, "no answer")) {
    return absl::StrCat(
        "see that the host is up, and let RDMA through, there and on the way: UDP port 4791 (RoCE) "
        "or the server's TCP port (iWARP): sudo nft list ruleset; ping ",
        way.host);
  }
  return absl::StrCat(
      "see that kvserver runs and listens there (its first lines say where); ip route get ",
      way.host,
      "; let UDP port 4791 (RoCE) or the TCP port (iWARP) through: sudo nft list ruleset");
}

Finding JudgeClock(const WayFacts& way) {
  const auto apart = std::chrono::abs(*way.clock_ahead);
  const std::string text =
      absl::StrFormat("the server's clock is %d.%03d s %s this machine's", apart.count() / 1000,
                      apart.count() % 1000, way.clock_ahead->count() < 0 ? "behind" : "ahead of");
  if (apart < kClockApartMax) return Fine("clock", text);
  return {
      Severity::kWarning, "clock",
      absl::StrCat(text,
                   ". Items expire by the server's clock, so an expiry_ms means another "
                   "moment here; and keys of --auth_file are refused if it is too far"),
      "sudo timedatectl set-ntp true, here and at the server; timedatectl shows which is wrong"};
}

Finding JudgeMember(const WayFacts::MemberFacts& member) {
  const std::string& address = member.address;
  const MemberAnswer& answer = member.answer;
  switch (answer.kind) {
    case MemberAnswer::Kind::kDead:
      return {Severity::kWarning, "member",
              absl::StrCat(address, ": nobody listens there, so the group has a copy less"),
              absl::StrCat("there: systemctl start kvserver, or kvserver --listen=", address)};
    case MemberAnswer::Kind::kNotAsked:
    case MemberAnswer::Kind::kSilent:
      return {Severity::kWarning, "member", absl::StrCat(address, ": ", answer.why),
              absl::StrCat("ping ", HostOf(address), "; there: systemctl status kvserver")};
    case MemberAnswer::Kind::kStarts:
      return {Severity::kHint, "member", absl::StrCat(address, ": ", answer.why),
              "wait until it has started"};
    case MemberAnswer::Kind::kLives:
      return Fine("member", absl::StrCat(address, ": it answers: ", answer.why));
    case MemberAnswer::Kind::kTold:
      break;
  }
  const MemberStanding& standing = answer.standing;
  const std::string text =
      absl::StrCat(address, ": ", std::string(NameOf(standing.role)), ", epoch ", standing.epoch,
                   ", up ", TimeText(standing.uptime_s));
  switch (standing.role) {
    case MemberRole::kBackup:
      return Fine("member", text);
    case MemberRole::kPrimary:
      if (standing.lease_left_ms > 0) return Fine("member", text);
      return {Severity::kWarning, "member",
              absl::StrCat(text, ", without a lease: its backups do not answer it"),
              "kvcli cluster status, and its log"};
    case MemberRole::kJoining:
      return {
          Severity::kHint, "member",
          absl::StrCat(text, ", ", standing.joined_percent, " % copied: it may not take over yet"),
          "wait until it is a backup; its log says what it waits for"};
    case MemberRole::kEnded:
      break;
  }
  return {Severity::kHint, "member", absl::StrCat(text, ": it lost its place, and starts again"),
          "its log says why"};
}

// What the server says of its disk itself.
Finding JudgeTierState(const ServerStats& stats) {
  constexpr char kMeanwhile[] = ": what should go there is evicted";
  const std::string state(TierState(stats));
  if (state == "works") {
    return Fine("tier", absl::StrFormat("it works: %d values on %d bytes of disk",
                                        stats.items_on_disk, stats.tier_bytes));
  }
  if (state == "slow") {
    return {Severity::kWarning, "tier",
            absl::StrCat("a write to the disk takes more than a second", kMeanwhile),
            "there: iostat -x 1 shows who else uses the disk; give --tier one of its own"};
  }
  if (state == "full") {
    return {Severity::kWarning, "tier", absl::StrCat("the disk is full", kMeanwhile),
            "there: df; make room, and the server writes again within a second"};
  }
  return {
      Severity::kError, "tier", absl::StrCat("the disk has failed", kMeanwhile),
      "there: the server's log and dmesg say why; mend the disk, or give --tier another one, and "
      "restart the server"};
}

std::vector<Finding> JudgeTier(const ServerStats& stats) {
  if (!HasTier(stats)) return {};
  std::vector<Finding> findings = {JudgeTierState(stats)};
  if (stats.tier_page_cache != 0) {
    findings.push_back({Severity::kHint, "tier",
                        "its file system does not take O_DIRECT, so what is read takes memory of "
                        "the system, too",
                        "give --tier a directory on ext4 or XFS"});
  }
  const TierCounts done = TierCounts::Of(stats);
  if (done.ReadUs() > kTierReadUsMax) {
    findings.push_back({Severity::kWarning, "tier",
                        absl::StrFormat("a read of the disk takes %.1f ms", done.ReadUs() / 1000),
                        "there: iostat -x 1 shows whether others use the disk; an SSD takes less "
                        "than a millisecond"});
  } else if (done.reads > 0) {
    findings.push_back(Fine(
        "tier", absl::StrFormat("%d reads of the disk, of %.0f us", done.reads, done.ReadUs())));
  }
  if (stats.tier_reads_failed > 0) {
    findings.push_back({Severity::kWarning, "tier",
                        absl::StrFormat("%d of %d reads of the disk found nothing, so their GETs "
                                        "missed",
                                        stats.tier_reads_failed, done.reads),
                        "there: dmesg says whether the disk fails"});
  }
  if (stats.tier_stub_bytes > stats.tier_stub_budget - stats.tier_stub_budget / kNearlyShare) {
    findings.push_back({Severity::kHint, "tier",
                        "stubs take the whole quarter of the memory that they may have, so values "
                        "go from a disk that has room",
                        "more --memory, or less --tier_bytes"});
  }
  // A disk that takes nothing now says why by its state.
  const bool takes = findings.front().severity == Severity::kFine;
  if (takes && done.unwritten > done.written / kUnwrittenShare + kUnwrittenMin) {
    findings.push_back({Severity::kHint, "tier",
                        absl::StrFormat("%d values were evicted and not written to the disk, %d "
                                        "were written",
                                        done.unwritten, done.written),
                        "it takes values of 4 KiB to 4 MiB (kvcli memory shows yours); if yours "
                        "are, PUTs are faster than the disk"});
  }
  return findings;
}

// Rails. What is wrong is a warning: the server serves by the others.

namespace {

Finding WrongRail(std::string text, std::string mend) {
  return {Severity::kWarning, "rail", std::move(text), std::move(mend)};
}

std::string PlaceOf(const CmPath& path) { return absl::StrCat(path.device, "/", path.port); }

// Returns the port of this machine by which the rail is reached; nullptr: it is not known.
const PortReport* PortOf(const std::vector<DeviceReport>& devices, const RailFacts& rail) {
  if (!rail.path.ok()) return nullptr;
  for (const DeviceReport& device : devices) {
    for (const PortReport& port : device.ports) {
      if (device.name == rail.path->device && port.number == rail.path->port) return &port;
    }
  }
  return nullptr;
}

std::string SpeedText(uint32_t mbit_per_second) {
  return absl::StrFormat("%g Gbit/s", mbit_per_second / 1000.0);
}

// `elsewhere`: connections of other clients by the server's other rails.
Finding JudgeRail(const RailFacts& rail, const PortReport* port, uint64_t elsewhere) {
  const RailInfo& told = rail.told;
  const std::string& address = told.address;
  if (!told.up) {
    return WrongRail(absl::StrCat(address, ": the server says that its port is down"),
                     "there: rdma link show; look at the cable, and at the switch's port");
  }
  if (!rail.path.ok()) {
    return WrongRail(absl::StrCat(address, ": ", std::string(rail.path.status().message())),
                     absl::StrCat("ip route get ", HostOf(address),
                                  "; give this machine an address in that network, on a port with "
                                  "an RDMA device"));
  }
  const std::string by = PlaceOf(*rail.path);
  if (!told.connected) {
    return WrongRail(absl::StrCat(address, ": a route leads there by ", by, ", and nobody answers"),
                     absl::StrCat("ping ", HostOf(address), "; see that the cable of ", by,
                                  " ends in that network, and let UDP port 4791 (RoCE) through"));
  }
  if (port != nullptr && told.mtu_bytes != 0 && port->mtu_bytes != told.mtu_bytes) {
    return WrongRail(
        absl::StrCat(address, ": packets of ", port->mtu_bytes, " bytes here at ", by, ", of ",
                     told.mtu_bytes, " bytes at the server"),
        absl::StrCat("sudo ip link set dev ", port->interface.empty() ? "NETDEV" : port->interface,
                     " mtu 9000, here, there and at the switch"));
  }
  if (told.port != 0 && told.connections == 0 && elsewhere > 0) {
    return WrongRail(
        absl::StrCat(address, ": nobody uses it, and by the other rails come ", elsewhere,
                     elsewhere == 1 ? " connection" : " connections"),
        "kvcli doctor on the clients' machines says whether they reach it; Options::rails and "
        "kvload --rails above 1 use it");
  }
  return Fine(
      "rail",
      absl::StrCat(
          address, " by ", by,
          told.mtu_bytes == 0 ? "" : absl::StrCat(", packets of ", told.mtu_bytes, " bytes"),
          told.mbit_per_second == 0 ? "" : absl::StrCat(", ", SpeedText(told.mbit_per_second))));
}

// Judges a rail beside an earlier one. Returns nullopt if each has a port of its own at both ends.
// `ports`: this machine's that are active, which may be fewer than there are rails.
std::optional<Finding> JudgeRailsOfOnePort(const RailFacts& first, const RailFacts& second,
                                           size_t ports, size_t rails) {
  const std::string both = absl::StrCat(first.told.address, " and ", second.told.address);
  if (first.told.port != 0 && first.told.port == second.told.port) {
    return WrongRail(absl::StrCat(both,
                                  " are of one port of the server, so they carry no more "
                                  "than one of them, and fail together"),
                     "there: rdma link show and ip addr; --listen needs an address of each port");
  }
  if (!first.path.ok() || !second.path.ok() || ports < rails) return std::nullopt;
  const std::string by = PlaceOf(*first.path);
  if (by != PlaceOf(*second.path)) return std::nullopt;
  return WrongRail(absl::StrCat(both, " are both reached by ", by, ", although ", ports,
                                " ports are active here"),
                   absl::StrCat("ip route get ", HostOf(second.told.address),
                                "; give each rail a network of its own, and this machine's ports "
                                "an address in each"));
}

// Adds a finding if a figure is not the same of all rails that are up and have it.
void AddDifference(const std::vector<RailFacts>& rails, uint32_t RailInfo::*figure,
                   const std::function<std::string(uint32_t)>& text_of, const char* what,
                   const char* mend, std::vector<Finding>* findings) {
  std::vector<std::string> texts;
  std::set<uint32_t> values;
  for (const RailFacts& rail : rails) {
    const uint32_t value = rail.told.*figure;
    if (!rail.told.up || value == 0) continue;
    values.insert(value);
    texts.push_back(absl::StrCat(rail.told.address, " ", text_of(value)));
  }
  if (values.size() > 1)
    findings->push_back(WrongRail(absl::StrCat(what, ": ", absl::StrJoin(texts, ", ")), mend));
}

}  // namespace

std::vector<Finding> JudgeRails(const std::vector<DeviceReport>& devices,
                                const std::vector<RailFacts>& rails) {
  if (rails.size() < 2) return {};
  uint64_t connections = 0;
  for (const RailFacts& rail : rails) connections += rail.told.connections;
  const uint64_t of_others = connections - std::min<uint64_t>(connections, 1);  // one asked
  size_t ports = 0;
  for (const DeviceReport& device : devices) {
    ports += static_cast<size_t>(std::ranges::count(device.ports, true, &PortReport::active));
  }
  std::vector<Finding> findings;
  for (size_t i = 0; i < rails.size(); ++i) {
    findings.push_back(JudgeRail(rails[i], PortOf(devices, rails[i]), of_others));
    for (size_t earlier = 0; earlier < i; ++earlier) {
      auto shared = JudgeRailsOfOnePort(rails[earlier], rails[i], ports, rails.size());
      if (!shared) continue;
      findings.push_back(*std::move(shared));
      break;
    }
  }
  AddDifference(
      rails, &RailInfo::mtu_bytes, [](uint32_t bytes) { return absl::StrCat(bytes, " bytes"); },
      "the rails' packets differ",
      "there: sudo ip link set dev NETDEV mtu 9000, for each rail, and at the switches", &findings);
  AddDifference(rails, &RailInfo::mbit_per_second, SpeedText,
                "READs are spread evenly, and the rails' links differ",
                "there: ethtool NETDEV or ibstat; look at the cable and the switch's port of the "
                "slowest",
                &findings);
  return findings;
}

std::vector<Finding> JudgeGroup(const WayFacts& way) {
  std::vector<Finding> findings;
  for (const WayFacts::MemberFacts& member : way.members) {
    if (member.path.ok()) {
      findings.push_back(JudgeMember(member));
      continue;
    }
    findings.push_back({Severity::kWarning, "member",
                        absl::StrCat(member.address, ": ", std::string(member.path.message()),
                                     ". If it becomes primary, this machine is cut off"),
                        absl::StrCat("ip route get ", HostOf(member.address))});
  }
  if (!way.connected.ok() || way.history == 0) return findings;
  findings.push_back(Fine("primary", absl::StrCat(way.primary, ", of epoch ", way.epoch)));
  return findings;
}

std::vector<Finding> JudgeWay(const WayFacts& way) {
  if (!way.resolved.ok()) {
    return {{Severity::kError, "name",
             absl::StrCat(way.endpoint, ": ", std::string(way.resolved.message())),
             "getent ahosts HOST; write --server=HOST:PORT"}};
  }
  std::vector<Finding> findings = {
      Fine("name", absl::StrCat(way.endpoint, ": ", absl::StrJoin(way.addresses, ", "))),
      JudgePath(way)};
  if (!way.path.ok()) return findings;
  std::ranges::move(JudgeGroup(way), std::back_inserter(findings));
  if (!way.connected.ok()) {
    findings.push_back({Severity::kError, "connection", std::string(way.connected.message()),
                        ConnectionMend(way)});
    return findings;
  }
  findings.push_back(
      Fine("connection",
           absl::StrCat("by ", way.device, ", ", way.kind, "; protocol ", way.protocol_version,
                        ", ", way.read_depth, " READs at once, locks by ", way.lock_mode)));
  if (way.kind == "softverbs" && way.net.empty()) {
    findings.push_back({Severity::kHint, "way", "softverbs reaches servers of this machine only",
                        "--device=auto, or SOFTVERBS_NET=ADDRESS here and at the server"});
  } else if (way.kind == "softverbs") {
    findings.push_back(Fine("way", absl::StrCat("softverbs, with other machines by TCP from ",
                                                way.net, " (SOFTVERBS_NET)")));
  }
  if (way.read_only) {
    findings.push_back({Severity::kHint, "rights", "the key may only read: writes are refused",
                        "--auth_file=FILE whose first key has no \"read\" behind it"});
  }
  if (way.answered.ok()) {
    findings.push_back(Fine("answer", "the server's CPU answers"));
  } else {
    findings.push_back({Severity::kError, "answer", std::string(way.answered.message()),
                        "top -H -p $(pidof kvserver): a worker that gets no core answers late"});
  }
  std::ranges::move(JudgeTier(way.stats), std::back_inserter(findings));
  if (way.clock_ahead) findings.push_back(JudgeClock(way));
  return findings;
}

std::vector<Finding> Judge(const MachineFacts& machine, const std::vector<WayFacts>& ways) {
  std::vector<Finding> findings = {Fine("version", machine.version)};
  std::ranges::move(JudgeDevices(machine), std::back_inserter(findings));
  findings.push_back(JudgeMemlock(machine));
  findings.push_back(JudgeHugePages(machine));
  findings.push_back(JudgeCores(machine));
  std::ranges::move(JudgeFlowControl(machine), std::back_inserter(findings));
  for (const WayFacts& way : ways) {
    std::ranges::move(JudgeWay(way), std::back_inserter(findings));
    std::ranges::move(JudgeRails(machine.devices, way.rails), std::back_inserter(findings));
  }
  return findings;
}

}  // namespace gannet::kvcli
