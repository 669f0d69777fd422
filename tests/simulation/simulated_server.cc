#include "tests/simulation/simulated_server.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "server/memory/store/item_leaser.h"
#include "tests/simulation/simulated_client.h"

namespace gannet::simulation {
namespace {

constexpr int kStepsToStop = 1'000'000;
// Each accept keeps the connected clients waiting (docs/kvserver.md).
constexpr uint64_t kAcceptsPerPollMax = 4;
// An index that begins with 64 slots grows four times with them.
constexpr uint64_t kFillersMax = 1500;
// More than fits any memory of a scenario that evicts.
constexpr uint64_t kLongFillers = 1000;
constexpr size_t kLongFillerBytes = 8'000;
constexpr int kLongFillersAtOnce = 16;
constexpr int64_t kFillEveryNs = 10 * kNsPerMs;
constexpr int64_t kLeaseEveryNs = 10 * kNsPerMs;

}  // namespace

SimulatedServer::SimulatedServer(Server::Options options, Run* run, History* history)
    : options_(std::move(options)),
      run_(run),
      history_(history),
      parts_(1 + options_.workers),
      leases_(options_.item_lease_ms != 0) {
  const auto device = OpenDevice(kSoftverbsDeviceName);
  GANNET_CHECK(device.ok(), "softverbs is not there");
  options_.device = *device;
  const auto any = ResolveAll("127.0.0.1:0", 0);
  GANNET_CHECK(any.ok(), "no loopback address");
  options_.listen = any->front();
  if (run->rails()) {
    const auto other = ResolveAll("127.0.1.1:0", 0);
    GANNET_CHECK(other.ok(), "no loopback address of the second device");
    options_.more_rails = *other;
  }
  options_.random = run;
  options_.idle = run;
  // The region's pages come when they are used: most never are.
  options_.touch = [](std::span<std::byte>) { return 0; };
  Start();
  options_.listen = server_->address();
  endpoint_ = server_->address().ToString();
}

SimulatedServer::~SimulatedServer() {
  if (up()) Stop();
}

void SimulatedServer::Start() {
  // Without faults, because a server that cannot connect its device to itself does not start.
  const std::string faults = run_->faults();
  run_->SetFaults("");
  auto server = Server::Create(options_);
  GANNET_CHECK(server.ok(), std::string(server.status().message()).c_str());
  server_ = *std::move(server);
  if (options_.item_lease_ms != 0) store().UseClock(run_);
  run_->SetFaults(faults);
  for (Part& part : parts_) part = {.last_poll_ns = run_->now_ns()};
  fillers_ = 0;
  written_.clear();
  if (options_.evict) server_->AddConsumer(this);
  run_->Note("the server starts");
}

void SimulatedServer::Stop() {
  run_->Note("the server stops");
  stopped_tick_ = run_->Tick();
  const auto closed = [this] {
    return std::all_of(server_->workers().begin(), server_->workers().end(),
                       [](const auto& worker) { return worker->closed(); });
  };
  server_->BeginStop();
  for (int steps = 0; !closed(); ++steps) {
    GANNET_CHECK(steps < kStepsToStop, "the server does not stop");
    run_->Idle();
    server_->Poll(now());
    for (const auto& worker : server_->workers()) worker->Poll(now());
  }
  set_aside_before_ = set_aside();
  server_.reset();
}

uint64_t SimulatedServer::set_aside() const {
  uint64_t all = set_aside_before_;
  if (!up()) return all;
  for (const auto& worker : server_->workers()) all += worker->counters().set_aside.value();
  return all;
}

void SimulatedServer::Restart(int64_t pause_ns) {
  if (!up()) return;
  Stop();
  start_ns_ = run_->now_ns() + pause_ns;
  health_.Excuse(run_->now_ns());
}

void SimulatedServer::Continue() {
  if (up() || run_->now_ns() < start_ns_) return;
  Start();
  health_.Excuse(run_->now_ns());
  history_->AddRestart(stopped_tick_, run_->Tick());
}

void SimulatedServer::ContinueNow() {
  start_ns_ = run_->now_ns();
  Continue();
}

void SimulatedServer::Stall(size_t part, int64_t until_ns) {
  parts_[part].stalled_until_ns = std::max(parts_[part].stalled_until_ns, until_ns);
}

bool SimulatedServer::stalled(size_t part) const {
  return !up() || run_->now_ns() < parts_[part].stalled_until_ns;
}

void SimulatedServer::Poll(size_t part) {
  WatchGaps();
  parts_[part].last_poll_ns = run_->now_ns();
  if (part == 0) {
    options_.evict ? FillMemory() : FillIndex();
    if (leases_) LeaseItems();
    server_->Poll(now());
  } else {
    PollWorker(*server_->workers()[part - 1]);
  }
}

void SimulatedServer::FillIndex() {
  if (!options_.index_grows || fillers_ == kFillersMax) return;
  const std::string key = absl::StrCat("filler ", fillers_);
  fillers_ += writes().Put(key, "x", {}, {}, run_->Time()).outcome.status == ReplyStatus::kOk;
}

void SimulatedServer::FillMemory() {
  if (run_->now_ns() < fill_ns_) return;
  fill_ns_ = run_->now_ns() + kFillEveryNs;
  const std::string value(kLongFillerBytes, 'x');
  for (int i = 0; i < kLongFillersAtOnce; ++i) {
    const std::string key = absl::StrCat("filler ", fillers_++ % kLongFillers);
    writes().Put(key, value, {}, {}, run_->Time());
  }
}

void SimulatedServer::LeaseItems() {
  if (run_->now_ns() < lease_ns_) return;
  lease_ns_ = run_->now_ns() + kLeaseEveryNs;
  ItemLeaser leaser(store());
  for (uint32_t key = 0; key < kKeysMax; ++key) {
    const ReadOutcome item = store().Get(KeyName(key), {}, run_->Time());
    if (item.slot == 0) continue;
    leaser.Lease(Slot(item.slot).offset(), run_->Time(), [](std::string_view) { return true; });
  }
}

void SimulatedServer::EndLeases() {
  if (leases_ && up()) store().leases()->EndAll();
  leases_ = false;
}

// A deletion that no client asked for is an eviction. It happens in this Poll, so nobody READs
// meanwhile.
bool SimulatedServer::Take(const Change& change, ChangePlace* /*place*/) {
  if (change.kind == Change::Kind::kPut) {
    written_.insert_or_assign(std::string(change.key),
                              Written{change.flags, !change.expiry.never()});
  } else if (const auto item = written_.find(change.key); item != written_.end()) {
    const auto [id, expires] = item->second;
    if (change.session_token == 0) history_->AddEviction(change.key, id, expires);
    written_.erase(item);
  }
  return true;
}

void SimulatedServer::PollWorker(Worker& worker) {
  const uint64_t before = worker.counters().connections.value();
  worker.Poll(now());
  const uint64_t after = worker.counters().connections.value();
  if (after <= before + kAcceptsPerPollMax) return;
  run_->Fail(Check::kAccepts, absl::StrCat("a worker accepted ", after - before, " at once"));
}

void SimulatedServer::WatchGaps() {
  if (!up()) health_.Excuse(run_->now_ns());
  for (const Part& part : parts_) {
    health_.OnPoll(part.last_poll_ns, run_->now_ns(), Health::kServerGapNsMax);
  }
}

void SimulatedServer::Suspend(int64_t ns) {
  for (Part& part : parts_) part.last_poll_ns += ns;
  health_.Disturb(run_->now_ns());
}

size_t SimulatedServer::busy() const {
  size_t busy = 0;
  for (const auto& worker : server_->workers()) busy += worker->busy();
  return busy;
}

}  // namespace gannet::simulation
