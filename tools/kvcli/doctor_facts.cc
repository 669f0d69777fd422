#include "tools/kvcli/doctor_facts.h"

#include <gannet/client.h>
#include <gannet/walker.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/server_list.h"
#include "common/rdma/address.h"
#include "common/rdma/cm_path.h"
#include "common/rdma/device.h"
#include "tools/build_stamp/build_stamp.h"
#include "tools/kvcli/ask_members.h"
#include "tools/kvcli/rail_figures.h"

namespace gannet::kvcli {
namespace {

constexpr uint16_t kPort = 7471;
constexpr int kResolveMs = 2000;

std::optional<uint64_t> LimitOf(rlim_t limit) {
  return limit == RLIM_INFINITY ? std::nullopt : std::optional<uint64_t>(limit);
}

bool MayLockAll() {
  constexpr std::string_view kName = "CapEff:";
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kName)) continue;
    const uint64_t capabilities = std::strtoull(line.c_str() + kName.size(), nullptr, 16);
    return (capabilities >> CAP_IPC_LOCK & 1) != 0;
  }
  return false;
}

// The file has all modes, and the one that holds in brackets: "always [madvise] never".
std::string HugePages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(file, line);
  const size_t open = line.find('[');
  const size_t close = line.find(']');
  if (open == std::string::npos || close == std::string::npos) return "";
  return line.substr(open + 1, close - open - 1);
}

uint32_t Cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 0;
  return static_cast<uint32_t>(CPU_COUNT(&set));
}

// Tries the addresses in the order in which a client does.
absl::StatusOr<CmPath> FirstPath(const std::vector<SocketAddress>& addresses) {
  absl::StatusOr<CmPath> path = absl::UnavailableError("the name has no address");
  for (const SocketAddress& address : addresses) {
    path = ResolvePath(address, kResolveMs);
    if (path.ok()) break;
  }
  return path;
}

// Returns all addresses of a server, or of a group's members.
absl::StatusOr<std::vector<SocketAddress>> AddressesOf(std::string_view endpoint) {
  if (!IsGroup(endpoint)) {
    const size_t name_end = endpoint.find('@');  // NAME@HOST:PORT
    return ResolveAll(endpoint.substr(name_end == std::string::npos ? 0 : name_end + 1), kPort);
  }
  std::vector<SocketAddress> all;
  absl::Status status;
  for (const std::string& member : SplitServerList(endpoint.substr(kGroupPrefix.size()))) {
    const auto some = ResolveAll(member, kPort);
    if (some.ok()) all.insert(all.end(), some->begin(), some->end());
    status.Update(some.status());
  }
  if (all.empty()) return status.ok() ? absl::InvalidArgumentError("it has no members") : status;
  return all;
}

// Returns what a server with several rails tells of them, and the ways there.
std::vector<RailFacts> GatherRails(Client& client) {
  std::vector<RailFacts> rails;
  for (const RailInfo& it : AwaitRails(client, 0)) {
    const auto address = NumericAddress(it.address, kPort);
    rails.push_back(
        {.told = it, .path = ResolvePath(address.value_or(SocketAddress()), kResolveMs)});
  }
  return rails;
}

}  // namespace

MachineFacts GatherMachine(absl::Status chosen) {
  MachineFacts facts;
  for (ibv_context* verbs : ListDevices()) facts.devices.push_back(ReportDevice(verbs));
  facts.probe = std::move(chosen);
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0) {
    facts.memlock_bytes = LimitOf(limit.rlim_cur);
    facts.memlock_hard_bytes = LimitOf(limit.rlim_max);
  }
  facts.may_lock_all = MayLockAll();
  facts.huge_pages = HugePages();
  facts.cores = Cores();
  facts.version =
      absl::StrCat("kvcli ", BuildVersion(), " (", BuildCommit(), ", ", BuildKind(), ")");
  return facts;
}

WayFacts GatherWay(const std::string& endpoint, const Options& options) {
  WayFacts way{.endpoint = endpoint};
  const auto addresses = AddressesOf(endpoint);
  way.resolved = addresses.status();
  if (!addresses.ok()) return way;
  for (const SocketAddress& it : *addresses) way.addresses.push_back(it.ToString());
  way.host = addresses->front().HostString();
  way.path = FirstPath(*addresses);
  if (IsGroup(endpoint)) {
    const std::vector<MemberAnswer> answers = AskMembers(way.addresses, options.auth_file);
    for (size_t i = 0; i < addresses->size(); ++i) {
      way.members.push_back({way.addresses[i], FirstPath({(*addresses)[i]}).status(), answers[i]});
    }
  }
  if (!way.path.ok()) return way;
  const auto client = Client::Connect({endpoint}, options);
  way.connected = client.status();
  if (!client.ok()) return way;
  const ServerInfo info = (*client)->Info().front();
  way.device = info.device;
  way.kind = info.kind;
  if (const char* net = std::getenv("SOFTVERBS_NET")) way.net = net;
  way.lock_mode = info.lock_mode;
  way.read_depth = info.read_depth;
  way.history = info.history;
  way.primary = info.address;
  way.epoch = info.epoch;
  way.read_only = info.read_only;
  way.protocol_version = info.protocol_version;
  way.answered = (*client)->Ping();
  if (way.answered.ok()) way.rails = GatherRails(**client);
  if (const auto stats = (*client)->Stats().front().stats; stats.ok()) way.stats = *stats;
  const auto walker = Walker::Connect(endpoint, options);
  if (walker.ok()) way.clock_ahead = (*walker)->ServerClockAhead();
  return way;
}

}  // namespace gannet::kvcli
