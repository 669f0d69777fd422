#include "tests/simulation/group_server.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/check.h"
#include "common/base/clocks.h"
#include "server/memory/store/item_leaser.h"
#include "server/rpc/elsewhere.h"
#include "tests/simulation/simulated_client.h"

namespace gannet::simulation {
namespace {

constexpr int kStepsToStop = 1'000'000;
constexpr int kDriftShift = 20;
// Clocks of different machines differ.
constexpr int64_t kClockApartNs = 1'000 * kNsPerSecond;
constexpr int64_t kAgainNsMax = 300 * kNsPerMs;
constexpr int64_t kLeaseEveryNs = 10 * kNsPerMs;

// Addresses of nodes that are down, and what keeps them: the other processes of this machine, which
// choose ports from the same range, must not take them meanwhile. softverbs/cm/port_name.h has the
// name that is bound.
std::map<std::string, int> kept_addresses;

void Keep(const std::string& address) {
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;  // sun_path[0] stays zero
  const std::string text = "softverbs/cm/0106/" + absl::StrReplaceAll(address, {{":", "/"}});
  text.copy(name.sun_path + 1, sizeof(name.sun_path) - 2);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  GANNET_CHECK(fd >= 0, "no socket");
  // If somebody was faster, the node's next process does not start, and says so.
  (void)bind(fd, reinterpret_cast<const sockaddr*>(&name), size);
  kept_addresses[address] = fd;
}

void GiveBack(const std::string& address) {
  const auto kept = kept_addresses.find(address);
  if (kept == kept_addresses.end()) return;
  close(kept->second);
  kept_addresses.erase(kept);
}

uint64_t clock_ahead_ms = 0;  // of the process that starts: a WallClock has no state of its own

}  // namespace

std::string GroupServer::NameOf(uint32_t node) { return absl::StrCat("n", node + 1); }

GroupServer::GroupServer(Options options, Run* run, GroupRegisterService* service)
    : options_(std::move(options)), run_(run), service_(service) {
  const auto device = OpenDevice(kSoftverbsDeviceName);
  GANNET_CHECK(device.ok(), "softverbs is not there");
  const auto any = ResolveAll("127.0.0.1:0", 0);
  GANNET_CHECK(any.ok(), "no loopback address");
  Server::Options& server = options_.server;
  server.device = *device;
  server.listen = any->front();
  server.random = run;
  server.idle = run;
  // The region's pages come when they are used: most never are, and a run has many servers.
  server.touch = [](std::span<std::byte>) { return 0; };
  server.clocks.boot = [this] { return ReadClock(); };
  if (options_.starts) Start();
}

GroupServer::~GroupServer() {
  if (up()) Stop();
  GiveBack(address_);
}

int64_t GroupServer::Clock() const {
  const int64_t now_ns = run_->now_ns();
  return kClockApartNs * (node() + 1) + now_ns + ((now_ns * options_.drift) >> kDriftShift);
}

// The node may be stopped before its clock is read, or behind.
BootTime GroupServer::ReadClock() {
  if (stopping_ || !up()) return BootTime::FromNs(Clock());
  const bool before = run_->OneIn(2);
  if (before) options_.on_clock(node());
  const BootTime now = BootTime::FromNs(Clock());
  if (!before) options_.on_clock(node());
  return now;
}

Now GroupServer::now() const { return {BootTime::FromNs(Clock()), clock_->Time()}; }

bool GroupServer::FindPlace() {
  GroupOptions& place = options_.server.group.emplace();
  place.name = options_.group_name;
  place.node = NameOf(node());
  place.auth_file = options_.server.auth_file;
  if (!service_->real_stores()) {
    store_ = std::make_unique<MemberStore>(service_, options_.group, place.node,
                                           options_.stream_version, options_.reaches);
    place.config_store = store_.get();
    place.directory = store_.get();
    place.map_store = store_->map_store();
    place.terms = options_.terms;
    return true;
  }
  auto found = EtcdMember::Open(service_, place.node, options_.reaches);
  if (!found.ok()) return false;
  real_store_ = *std::move(found);
  place.config_store = real_store_.get();
  place.directory = real_store_.get();
  place.map_store = real_store_->map_store();
  place.terms = real_store_->terms();
  return true;
}

void GroupServer::Start() {
  if (!FindPlace()) {
    start_ns_ = run_->now_ns() + kAgainNsMax;
    return;
  }
  // Without faults, because a server that cannot connect its device to itself does not start.
  const std::string faults = run_->faults();
  run_->SetFaults("");
  run_->OnNode(node());
  clock_ahead_ms = options_.clock_ahead_ms;
  steps_down_ = false;
  clock_.reset(new ServerClock(ServerClock::Start(
      {.wall =
           [] {
             return WallTime::FromNs(Run::Wall().ns() +
                                     static_cast<int64_t>(clock_ahead_ms) * kNsPerMs);
           },
       .boot = [run = run_] { return BootTime::FromNs(run->now_ns()); }})));
  // Lower than what others may have given already: a primary has to begin above that.
  options_.server.first_version = 1 + run_->Below(1'000);
  GiveBack(address_);
  auto server = Server::Create(options_.server);
  GANNET_CHECK(server.ok(), std::string(server.status().message()).c_str());
  server_ = *std::move(server);
  server_->UseClock(&*clock_);
  server_->store().UseClock(&*clock_);
  options_.server.listen = server_->address();
  address_ = server_->address().ToString();
  run_->SetFaults(faults);
  run_->Note(absl::StrCat("node ", node(), " starts"));
}

void GroupServer::Stop() {
  run_->Note(absl::StrCat("node ", node(), " stops"));
  run_->OnNode(node());
  stopping_ = true;
  const auto closed = [this] {
    return std::all_of(server_->workers().begin(), server_->workers().end(),
                       [](const auto& worker) { return worker->closed(); });
  };
  server_->BeginStop();
  for (int steps = 0; !closed(); ++steps) {
    GANNET_CHECK(steps < kStepsToStop, "a server does not stop");
    run_->Idle();
    server_->Poll(now());
    for (const auto& worker : server_->workers()) worker->Poll(now());
  }
  server_.reset();
  Keep(address_);
  store_.reset();
  real_store_.reset();
  stopping_ = false;
}

void GroupServer::Kill(int64_t pause_ns) {
  if (!up()) return;
  Stop();
  start_ns_ = run_->now_ns() + pause_ns;
}

void GroupServer::Continue() {
  if (!up()) {
    if (run_->now_ns() >= start_ns_) Start();
  } else if (member().ended()) {
    run_->Note(absl::StrCat("node ", node(), " ended: ", member().why()));
    Kill(static_cast<int64_t>(run_->Below(kAgainNsMax)));
  }
}

void GroupServer::Poll(size_t part) {
  run_->OnNode(node());
  if (part == 0) {
    if (options_.server.item_lease_ms != 0) LeaseItems();
    server_->Poll(now());
  } else if (part == 1) {
    member().Poll(ReadClock());
  } else {
    server_->workers()[part - 2]->Poll(now());
  }
}

// Sooner than the server would: it would have to hear of a thousand READs.
void GroupServer::LeaseItems() {
  if (!serves() || run_->now_ns() < lease_ns_) return;
  lease_ns_ = run_->now_ns() + kLeaseEveryNs;
  ItemLeaser leaser(store());
  const GroupStanding* const standing = server_->context().standing;
  const auto is_served = [&](std::string_view key) { return !IsElsewhere(standing, key); };
  for (uint32_t key = 0; key < kKeysMax; ++key) {
    const ReadOutcome item = store().Get(KeyName(key), {}, clock_->Time());
    if (item.slot != 0) leaser.Lease(Slot(item.slot).offset(), clock_->Time(), is_served);
  }
}

bool GroupServer::HasLease() const {
  const GroupStanding& standing = *server_->context().standing;
  return standing.serves() && standing.LeaseLeftMs(BootTime::FromNs(Clock())) > 0;
}

size_t GroupServer::busy() const {
  size_t busy = 0;
  for (const auto& worker : server_->workers()) busy += worker->busy();
  return busy;
}

}  // namespace gannet::simulation
