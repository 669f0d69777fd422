// Makes the parts in the order of their dependency, and polls those of the connection thread. The
// group's stream and the disk hear of each change (JoinStream).

#include "server/main/control/server.h"

#include <sys/resource.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/protocol/client_report.h"
#include "common/protocol/rails_reply.h"
#include "common/protocol/touch.h"
#include "glog/logging.h"
#include "server/main/control/first_version.h"
#include "server/main/control/store_in_file.h"
#include "server/memory/store/stubs.h"

namespace gannet {
namespace {

constexpr int64_t kLookPeriodNs = kNsPerSecond;
// A request to connect waits for this share of a lease. Clients' attempts take more: a lease, or
// a quarter of one.
constexpr int64_t kWaitForPrimaryShare = 6;

int64_t ProcessCpuUs() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto us = [](const timeval& t) { return t.tv_sec * int64_t{1'000'000} + t.tv_usec; };
  return us(usage.ru_utime) + us(usage.ru_stime);
}

// Returns the device of each rail. A single address is served on the device that the server was
// given, whatever it is: it may be all of the host's.
absl::StatusOr<std::vector<Device>> DevicesOf(const Listener& listener,
                                              const Server::Options& options) {
  std::vector<Device> devices = {options.device};
  if (options.more_rails.empty()) return devices;
  for (size_t rail = 0; rail <= options.more_rails.size(); ++rail) {
    ibv_context* const verbs = listener.verbs(rail);
    const std::string address = listener.address(rail).ToString();
    if (verbs == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat(address, " is of all devices: with several addresses, name each"));
    }
    if (rail > 0) {
      GANNET_ASSIGN_OR_RETURN(devices.emplace_back(), DescribeDevice(verbs));
    } else if (verbs != options.device.verbs) {
      return absl::FailedPreconditionError(absl::StrCat(
          "the first address, ", address, ", is of device ", verbs->device->name, ", and not of ",
          options.device.name, ": --device=", verbs->device->name, ", or another address first"));
    }
  }
  return devices;
}

std::vector<Rail> RailsOf(const Listener& listener, const std::vector<Device>& devices,
                          const ServerMemory& memory, uint32_t item_lease_ms) {
  std::vector<Rail> rails;
  for (size_t i = 0; i < devices.size(); ++i) {
    rails.push_back({.address = listener.address(i), .device = devices[i]});
    if (devices.size() > 1) rails.back().port = listener.port(i);
    memory.DescribeOn(i, item_lease_ms, &rails.back());
  }
  return rails;
}

int64_t WaitForPrimaryNs(const std::optional<GroupOptions>& group) {
  const GroupTerms usual;
  const uint32_t lease_ms = group ? group->terms.lease_ms : usual.lease_ms;
  return lease_ms * kNsPerMs / kWaitForPrimaryShare;
}

}  // namespace

Server::Server(const Options& options)
    : options_(options),
      random_(options.random != nullptr ? *options.random : kernel_random_),
      started_at_(options.clocks.boot.Now()),
      incarnation_(random_.NextNonzero()),
      hash_seed_(random_.Next()),
      first_version_(options.first_version) {}

absl::StatusOr<std::unique_ptr<Server>> Server::Create(const Options& options) {
  if (!options.name.empty() && !IsServerName(options.name)) {
    return absl::InvalidArgumentError(absl::StrCat("a server's name has 1 to ", kServerNameBytesMax,
                                                   " letters, digits or ._:-[], unlike \"",
                                                   options.name, "\""));
  }
  GANNET_ASSIGN_OR_RETURN(Authenticator authenticator,
                          Authenticator::Create(options.auth_file, options.clocks.wall.Now()));
  std::unique_ptr<Server> server(new Server(options));
  if (server->first_version_ == 0) {
    GANNET_ASSIGN_OR_RETURN(server->first_version_, FirstVersionByClock(options.clocks.wall.Now()));
  }
  // Before the memory, which takes long: a port in use is the likelier mistake.
  std::vector<SocketAddress> addresses = {options.listen};
  addresses.insert(addresses.end(), options.more_rails.begin(), options.more_rails.end());
  GANNET_ASSIGN_OR_RETURN(server->listener_, Listener::Create(addresses));
  GANNET_ASSIGN_OR_RETURN(server->devices_, DevicesOf(*server->listener_, options));
  GANNET_ASSIGN_OR_RETURN(server->disk_,
                          ServerDisk::Open(options.disk, /*of_member=*/options.group.has_value()));
  if (options.answer_while_starting) {
    GANNET_ASSIGN_OR_RETURN(server->startup_answers_,
                            StartupAnswers::Start(server->listener_.get(), options.memory_bytes));
  }
  const absl::Status status = server->CreateAll(std::move(authenticator));
  server->startup_answers_.reset();
  if (!status.ok()) return status;
  return server;
}

absl::Status Server::CreateAll(Authenticator authenticator) {
  if (!options_.tier.directory.empty()) {
    // Before the memory file is changed: reads and writes of its former process have ended when
    // the tier can be locked.
    GANNET_ASSIGN_OR_RETURN(tier_, ServerTier::Open(options_.tier, !options_.memory_file.empty()));
  }
  GANNET_RETURN_IF_ERROR(CreateMemory());
  GANNET_RETURN_IF_ERROR(CreateStore());
  GANNET_RETURN_IF_ERROR(CreateWorkers());
  if (tier_ != nullptr) GANNET_RETURN_IF_ERROR(StartTier());
  if (group_) GANNET_RETURN_IF_ERROR(CreateMember());
  rail_watch_.emplace(*workers_, options_.group.has_value());
  admission_.emplace(*workers_, *rail_watch_, member(), std::move(authenticator),
                     WaitForPrimaryNs(options_.group), options_.former_leases_ms * kNsPerMs,
                     options_.clocks.wall);
  tidier_.emplace(*workers_, tidy_wanted_.get());
  if (leases_) lease_keeper_.emplace(*workers_);
  if (devices_.size() > 1 && workers_->context().lock_mode() != LockMode::kRpcServer) {
    lock_rail_.emplace(*workers_, memory_->TakeLocks(), options_.silence_ms * kNsPerMs);
  }
  return absl::OkStatus();
}

// The tier wakes the workers. They use what the member made, and the member uses what they share.
Server::~Server() {
  if (tier_ != nullptr) tier_->Stop();
  if (workers_ != nullptr) workers_->Destroy();
}

absl::Status Server::CreateMemory() {
  GANNET_ASSIGN_OR_RETURN(
      memory_,
      ServerMemory::Create({.devices = devices_,
                            .region_bytes = options_.memory_bytes,
                            .lock_words = options_.lock_words,
                            .heats = options_.evict,
                            .leased_items = options_.item_lease_ms != 0 ? options_.leased_items : 0,
                            .huge_pages = options_.huge_pages,
                            .file = options_.memory_file,
                            .lock_mode = options_.lock_mode,
                            .touch = options_.touch},
                           startup_answers_.get()));
  return absl::OkStatus();
}

absl::Status Server::CreateStore() {
  Store::Options options;
  options.region = memory_->region();
  options.lock_words = memory_->lock_words();
  options.index_slots = options_.index_slots;
  options.index_slots_min = disk_->slots_min();
  options.evict = options_.evict;
  options.heats = memory_->heats();
  options.index_grows = options_.index_grows;
  if (options_.item_lease_ms != 0) {
    leases_.emplace(
        ItemLeases::Options{.memory = memory_->item_leases(), .lease_ms = options_.item_lease_ms});
    options.leases = &*leases_;
  }
  GANNET_ASSIGN_OR_RETURN(tidy_wanted_, WakeUp::Create());
  GANNET_ASSIGN_OR_RETURN(sync_wanted_, WakeUp::Create());
  GANNET_ASSIGN_OR_RETURN(disk_sync_wanted_, WakeUp::Create());
  options.tidy_wanted = tidy_wanted_.get();
  options.incarnation = incarnation_;
  options.hash_seed = hash_seed_;
  options.first_version = first_version_;
  options.memory_file = !options_.memory_file.empty();
  if (tier_ != nullptr) {
    GANNET_ASSIGN_OR_RETURN(tier_wanted_, WakeUp::Create());
    options.tier = {.number = tier_->tier(),
                    .segment_bytes = tier_->segment_bytes(),
                    .segments = tier_->segments(),
                    .wanted = tier_wanted_.get()};
  }
  GANNET_ASSIGN_OR_RETURN(store_, CreateStoreIn(options_.memory_file, options));
  // A memory file keeps its own values, which may not be those that were asked for.
  incarnation_ = store_->superblock().incarnation;
  hash_seed_ = store_->superblock().hash_seed;
  if (leases_) leases_->Start(incarnation_);
  const IndexGeometry index = store_->superblock().index;
  LOG(INFO) << "index of " << index.slots() << " slots (" << index.bytes() << " bytes) "
            << (options_.index_grows ? "at first" : "that does not grow");
  writes_ = std::make_unique<Writes>(store_.get());
  FindClock();
  const ServerDisk::Run run = {
      .store = store_.get(),
      .writes = writes_.get(),
      .changes = &changes_,
      .region_bytes = memory_->region().size(),
      .first_version = first_version_,
      .incarnation = incarnation_,
      .now = std::max(ServerClock::BeginsAt(options_.clocks.wall.Now()), clock_begins_at_),
      .wall = options_.clocks.wall,
      .random = &random_};
  return options_.group ? JoinStream(run) : disk_->Restore(run);
}

void Server::FindClock() {
  const ServerTime in_file = store_->taken_over() ? store_->taken_over()->clock : ServerTime();
  const ServerTime noted = std::max(disk_->noted_clock(), in_file);
  const ServerTime machine = ServerClock::BeginsAt(options_.clocks.wall.Now());
  clock_begins_at_ = ClockBeginsAt(noted, machine);
  if (clock_begins_at_ == ServerTime()) return;
  LOG(WARNING)
      << "the machine's clock is " << (noted - machine) / 1000
      << " s behind what the last run saw. Items expire by that one's clock, which goes on";
}

// The group's stream, and the disk, hear of each change.
absl::Status Server::JoinStream(const ServerDisk::Run& run) {
  group_.emplace(*options_.group, options_.clocks, options_.former_leases_ms * kNsPerMs);
  GANNET_RETURN_IF_ERROR(disk_->OpenMember(run));
  group_->stream().UseDisk(disk_->member());
  changes_.Add(&group_->stream(), ChangeStream::Need::kRequired);
  if (MemberLog* const disk = disk_->member()) {
    changes_.Add(disk, disk->always() ? ChangeStream::Need::kRequired : ChangeStream::Need::kHears);
  }
  if (disk_->unkept() != nullptr) changes_.Add(disk_->unkept(), ChangeStream::Need::kHears);
  store_->UseSink(&changes_);
  writes_->WaitFor(&changes_);
  return absl::OkStatus();
}

Grant Server::GrantTemplate() const {
  Grant grant = NewGrant();
  SetName(&grant, options_.name);
  grant.incarnation = incarnation_;
  memory_->Describe(&grant);
  grant.hash_seed = hash_seed_;
  grant.index = store_->superblock().index;
  grant.message_bytes_max = kMessageBytesMax;
  grant.value_bytes_max = kValueBytesMax;
  // Leases are of what clients READ most, so they want to know that, too.
  if (options_.evict || leases_) grant.features |= kGrantEvicts;
  if (leases_) grant.features |= kGrantItemLeases;
  if (leases_ && !options_.evict) grant.features |= kGrantSamplesTouches;
  grant.features |= kGrantTakesReports;
  if (devices_.size() > 1) grant.features |= kGrantRails | kGrantOrdersRequests;
  return grant;
}

std::unique_ptr<ServerContext> Server::MakeContext() {
  std::unique_ptr<ServerContext> context(
      new ServerContext{.control = *this,
                        .rails = RailsOf(*listener_, devices_, *memory_, options_.item_lease_ms),
                        .listener = *listener_,
                        .store = *store_,
                        .writes = *writes_,
                        .changes = changes_,
                        .group = group_ ? &group_->stream() : nullptr,
                        .standing = group_ ? &group_->standing() : options_.standing,
                        .workers = options_.workers,
                        .grant = GrantTemplate(),
                        .first_lock_words = memory_->lock_words(),
                        .boot = options_.clocks.boot,
                        .random = random_,
                        .idle = options_.idle});
  if (group_ || options_.streams_sessions) context->session_stream.emplace(&changes_);
  if (options_.slow_ns > 0) context->slow_log.emplace(options_.slow_ns, options_.clocks.boot);
  return context;
}

absl::Status Server::CreateWorkers() {
  GANNET_ASSIGN_OR_RETURN(
      workers_,
      ServerWorkers::Create(MakeContext(), {.credits = options_.credits,
                                            .connections_max = options_.connections_max,
                                            .receives = options_.receives,
                                            .reply_buffers = options_.reply_buffers,
                                            .lock_requests_max = options_.lock_requests_max,
                                            .session_grace_ns = options_.session_grace_ns,
                                            .silence_ns_max = options_.silence_ms * kNsPerMs}));
  return absl::OkStatus();
}

absl::Status Server::StartTier() {
  std::vector<TierReadsDone*> inboxes;
  for (const auto& worker : workers_->all()) inboxes.push_back(&worker->inbox());
  std::vector<uint32_t> laps;  // of the stubs that a former process left
  if (tier_->kept()) laps = store_->stubs()->Laps();
  GANNET_RETURN_IF_ERROR(tier_->MakeReads(memory_->pds(), std::move(laps), std::move(inboxes)));
  ServerContext& context = workers_->context();
  context.tier_reads = &tier_->reads();
  for (size_t i = 0; i < context.rails.size(); ++i) context.rails[i].tier_lkey = tier_->lkey(i);
  return tier_->Start(store_->stubs(), tier_wanted_.get());
}

absl::Status Server::CreateMember() {
  return group_->CreateMember(workers_.get(), address().ToString(), disk_->member(), first_version_,
                              sync_wanted_.get());
}

void Server::AskForSync() {
  sync_wanted_->Ask();
  if (group_ && group_->stream().waits_for_disk()) disk_sync_wanted_->Ask();
}

uint64_t Server::Storage(bool snapshot, StorageReply* reply) {
  return disk_->Storage(snapshot, options_.memory_file, reply);
}

void Server::AddConsumer(ChangeConsumer* consumer, ChangeStream::Need need) {
  changes_.Add(consumer, need);
  store_->UseSink(&changes_);
  if (need == ChangeStream::Need::kRequired) writes_->WaitFor(&changes_);
}

bool Server::Poll(const Now& now) {
  const bool active = admission_->Poll(now);
  tidier_->Poll(now);
  if (lease_keeper_) lease_keeper_->Poll(now);
  if (lock_rail_) lock_rail_->Poll(now.boot);
  if (now.boot >= next_look_) {
    next_look_ = now.boot + kLookPeriodNs;
    workers_->TellLog(now.boot);
    rail_watch_->Look();
    admission_->LookAtAuthFile();
    if (tier_ != nullptr) tier_->TellLog();
  }
  return active;
}

void Server::BeginStop() {
  if (lease_keeper_) lease_keeper_->BeginStop();
  admission_->BeginStop();
  workers_->BeginClosing();
}

StatsReply Server::Stats(const Now& now) const {
  StatsReply stats{};
  store_->FillStats(&stats);
  disk_->FillStats(&stats);
  if (tier_ != nullptr) {
    tier_->FillStats(&stats);
    stats.items_on_disk = store_->stubs()->count();
    stats.tier_stub_bytes = store_->stubs()->bytes();
    stats.tier_stub_budget = store_->stubs()->budget();
    const Stubs::Counts counts = store_->stubs()->counts();
    stats.tier_promoted = counts.promoted;
    stats.tier_evicted = counts.evicted + counts.forgotten;
  }
  workers_->AddTo(&stats);
  stats.refused_connections += admission_->refused();
  stats.cpu_us = static_cast<uint64_t>(ProcessCpuUs());
  stats.uptime_ms = static_cast<uint64_t>((now.boot - started_at_) / kNsPerMs);
  return stats;
}

}  // namespace gannet
