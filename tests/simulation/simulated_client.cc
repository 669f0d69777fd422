#include "tests/simulation/simulated_client.h"

#include <algorithm>
#include <regex>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/check.h"
#include "common/base/server_list.h"

namespace gannet::simulation {
namespace {

using linearizability::Kind;

constexpr size_t kOutBytes = 2048;
// An operation with at least this timeout must succeed if nothing is wrong.
constexpr int64_t kPatientNs = 2 * kNsPerSecond;

bool IsBug(Outcome outcome) {
  return outcome == Outcome::kRefused || outcome == Outcome::kUnimplemented ||
         outcome == Outcome::kServerBug || outcome == Outcome::kNoBuffers;
}

Outcome OutcomeOfCode(absl::StatusCode code) {
  return code == absl::StatusCode::kOk ? Outcome::kOk : Outcome::kServerBug;
}

}  // namespace

const std::string& KeyName(uint32_t key) {
  static const std::string names[kKeysMax] = {
      "a", "key-1", "key number two", "3", "a key of more than sixteen bytes", "5", "6", "7"};
  return names[key];
}

SimulatedClient::SimulatedClient(const Options& options, Run* run, History* history,
                                 const Health* server)
    : options_(options),
      run_(run),
      history_(history),
      server_(server),
      last_poll_ns_(run->now_ns()),
      pending_(options.depth) {
  gannet::Options public_options;
  public_options.device = "soft";
  public_options.connect_timeout = std::chrono::milliseconds(3000);
  public_options.location_cache_bytes = options.location_cache_bytes;
  public_options.near_cache_bytes = options.near_cache_bytes;
  public_options.depth = options.depth;
  public_options.auth_file = options.auth_file;
  public_options.log = [this](LogLevel, std::string_view line) {
    run_->Note(absl::StrCat("client ", options_.number, " logs: ", WithoutPort(line)));
  };
  auto engine =
      Engine::Create({.endpoints = {options.endpoint},
                      .options = public_options,
                      .connections_max = options.queue_pairs_max,
                      .nic_locks = options.nic_locks,
                      .server_clocks = options.server_clocks,
                      .signal_every = options.signal_every,
                      .clock = options.clock != nullptr ? *options.clock : *run->clock()});
  GANNET_CHECK(engine.ok(), std::string(engine.status().message()).c_str());
  engine_ = *std::move(engine);
  for (Pending& p : pending_) p.out.resize(kOutBytes);
}

bool SimulatedClient::CheckIsBack() const {
  if (!ready()) {
    run_->Fail(Check::kConnects, absl::StrCat("client ", number(), " is not connected"));
    return false;
  }
  if (busy() > 0) {
    run_->Fail(Check::kEverythingBack, absl::StrCat("client ", number(), ": ", busy()));
  }
  return true;
}

SimulatedClient::~SimulatedClient() {
  for (const Pending& p : pending_) {
    if (p.used) Abandon(p);
  }
  const Run::Waiting waiting(run_);
  engine_.reset();
}

// Ports differ in every run. Those of other members come by the map and in refusals.
std::string SimulatedClient::WithoutPort(std::string_view text) const {
  std::string without = absl::StrReplaceAll(std::string(text), {{options_.endpoint, "the server"}});
  if (!IsGroup(options_.endpoint) && !run_->rails()) return without;
  return std::regex_replace(without, std::regex("[0-9.]+:[0-9]{2,5}"), "another address");
}

// A write that nobody waits for any more may have been applied, or may be applied later.
void SimulatedClient::Abandon(const Pending& p) {
  if (p.tallied && p.type == OpType::kIncr) history_->tallies().AddUncertain();
  if (InHistory(p)) history_->End(p.key, Writes(p.type));
  if (p.tallied || !Writes(p.type)) return;
  Operation unknown = p.operation;
  unknown.outcome = linearizability::Outcome::kUnknown;
  history_->Add(p.key, unknown);
  AddExpiry(p);
}

// The server counts the time to live from the moment when it got the write.
void SimulatedClient::AddExpiry(const Pending& p) {
  if (p.ttl_ms == 0) return;
  const uint64_t least_ms = options_.loose_expiry ? 0 : p.ttl_ms - 1;
  history_->AddExpiry(
      p.key, static_cast<uint32_t>(p.operation.value),
      p.operation.invoke_ns + Run::TickOf(static_cast<int64_t>(least_ms) * kNsPerMs));
}

void SimulatedClient::Poll() {
  const int64_t now_ns = run_->now_ns();
  health_.OnPoll(last_poll_ns_, now_ns, Health::kClientGapNsMax);
  last_poll_ns_ = now_ns;
  for (Pending& p : pending_) {
    if (p.used && p.deadline_ns == 0) p.deadline_ns = now_ns + p.timeout_ns;
  }
  std::array<Completion, 16> completions;
  const size_t n = engine_->Poll(now_ns, std::span(completions).first(options_.completions));
  WatchConnections();
  for (size_t k = 0; k < n; ++k) {
    const Completion& done = completions[k];
    const Pending& p = pending_[done.user_data];
    if (p.type == OpType::kGet) CountGet(done.cost);
    Finish(done.user_data, {.outcome = OutcomeOfCode(done.code),
                            .found = done.found,
                            .info = done.info,
                            .value = {reinterpret_cast<const char*>(p.out.data()),
                                      std::min<size_t>(done.info.value_bytes, p.out.size())}});
  }
  for (uint32_t i = engine_->NextFinished(); i != kInvalidOp; i = engine_->NextFinished()) {
    if (!pending_[engine_->op(i).request.user_data].in_batch) {
      TakeFinished(i);
    } else {
      batch_.OnEnded();
      ended_of_batch_.push_back(i);
    }
  }
  if (!ended_of_batch_.empty() && batch_.HasToTake(*engine_)) TakeBatch();
  WatchDeadlines();
}

void SimulatedClient::TakeFinished(uint32_t i) {
  const Op& op = engine_->op(i);
  if (op.request.type == OpType::kGet) CountGet(op.done.cost);
  Finish(op.request.user_data, {.outcome = op.outcome,
                                .found = op.done.found,
                                .info = op.done.info,
                                .lock_word = op.lock.word.word(),
                                .number = op.done.counted,
                                .server = op.request.server,
                                .value = op.value,
                                .whole = true});
  engine_->Release(i);
}

void SimulatedClient::TakeBatch() {
  for (const uint32_t op : ended_of_batch_) TakeFinished(op);
  ended_of_batch_.clear();
  batch_.OnTaken();
}

bool SimulatedClient::HasStarted() {
  if (started_ || options_.groups < 2) return true;
  const std::optional<absl::Status> map = engine_->MapStatus();
  started_ = engine_->servers().session(0).ready() && map.has_value() && map->ok();
  return started_;
}

bool SimulatedClient::ready() const {
  const ServerSet& servers = engine_->servers();
  if (servers.size() < options_.groups) return false;
  for (uint32_t i = 0; i < servers.size(); ++i) {
    // It may not know yet that a group is gone.
    if (options_.has_group && !options_.has_group(ServerName(i))) continue;
    if (!servers.session(i).ready()) return false;
  }
  return true;
}

std::optional<uint64_t> SimulatedClient::Believes(uint16_t partition) const {
  const ServerSet& servers = engine_->servers();
  if (!servers.router().has_routes()) return std::nullopt;
  const Router::Route& route = servers.router().RouteOf(partition);
  if (!route.served) return std::nullopt;
  const ClientSession& session = servers.session(route.server);
  if (!session.ready() || !session.lease().ValidAt(run_->now_ns())) return std::nullopt;
  return servers.session(route.server).grant().incarnation;
}

uint64_t SimulatedClient::disbelieved() const {
  uint64_t reads = 0;
  for (uint32_t i = 0; i < engine_->servers().size(); ++i) {
    reads += engine_->servers().session(i).lease().disbelieved();
  }
  return reads;
}

std::string SimulatedClient::ServerName(uint32_t server) const {
  if (options_.groups < 2) return absl::StrCat(server);
  return engine_->servers().router().NameOf(server);
}

void SimulatedClient::WatchConnections() {
  for (uint32_t i = 0; i < engine_->servers().size(); ++i) WatchConnection(i);
}

// A connection must last if both the client and the server were polled in time.
void SimulatedClient::WatchConnection(uint32_t server) {
  const int64_t now_ns = run_->now_ns();
  const ClientSession& session = engine_->servers().session(server);
  const uint32_t id = session.ready() ? session.grant().connection_id : 0;
  const std::string name = ServerName(server);
  Connection& known = connections_[name];
  if (id == known.id) return;
  run_->Note(absl::StrCat("client ", number(), " has connection ", id, " after ", known.id));
  if (known.id != 0) {
    const int64_t excused_ns = std::max(server_->excused_ns(now_ns), health_.excused_ns(now_ns));
    if (known.since_ns > excused_ns) {
      run_->Fail(Check::kHealthyConnection,
                 absl::StrCat("client ", number(), " lost its connection: ",
                              WithoutPort(session.attempts().status().ToString())));
    }
    health_.Disturb(now_ns);
  }
  // Only the next grant says whether the server keeps them, for a session with several rails.
  std::erase_if(held_, [&](const auto& held) {
    return id != 0 && held.second.server == name &&
           LockWord(held.second.word).connection_id() != id;
  });
  known = {.id = id, .since_ns = now_ns};
  ++connects_;
}

// The client may have been stopped within its Poll.
void SimulatedClient::WatchDeadlines() {
  const int64_t now_ns = last_poll_ns_;
  for (const Pending& p : pending_) {
    if (!p.used || p.deadline_ns == 0 || now_ns < p.deadline_ns) continue;
    run_->Fail(
        Check::kEndsByDeadline,
        absl::StrCat("client ", number(), "'s operation ", static_cast<int>(p.type), " of key ",
                     p.key, " goes on ", now_ns - p.deadline_ns, " ns after its deadline"));
  }
}

void SimulatedClient::WatchRoom(bool began) {
  const int64_t now_ns = run_->now_ns();
  if (began || engine_->alive() >= options_.depth) {
    no_room_since_ns_ = 0;
  } else if (no_room_since_ns_ == 0) {
    no_room_since_ns_ = now_ns;
  } else if (now_ns - std::max(no_room_since_ns_, calm_ns()) > options_.room_ns_max) {
    run_->Fail(
        Check::kRoomComesBack,
        absl::StrCat("client ", number(), " has no room for an operation since ", no_room_since_ns_,
                     ", though only ", engine_->alive(), " of ", options_.depth, " are alive"));
  }
}

int64_t SimulatedClient::calm_ns() const {
  const int64_t now_ns = run_->now_ns();
  return std::max(server_->calm_ns(now_ns), health_.calm_ns(now_ns));
}

void SimulatedClient::CheckPatience(const Pending& p, Outcome outcome) {
  if (outcome != Outcome::kDeadlineExceeded && outcome != Outcome::kUnavailable) return;
  if (p.timeout_ns < kPatientNs || calm_ns() >= p.begun_ns) return;
  if (p.connects == 0 || p.connects != connects_) return;
  if (options_.impatient_locks && TakesLock(p.type)) return;
  run_->Fail(Check::kPatience,
             absl::StrCat("client ", number(), "'s operation ", static_cast<int>(p.type),
                          " of key ", p.key, ", begun at ", p.begun_ns, ", failed with outcome ",
                          static_cast<int>(outcome)));
}

void SimulatedClient::Finish(size_t i, const Result& result) {
  Pending& p = pending_[i];
  if (!p.used) {
    return run_->Fail(Check::kEndsOnce,
                      absl::StrCat("client ", number(), "'s operation ", static_cast<int>(p.type),
                                   " of key ", p.key, " ended twice"));
  }
  run_->Note(absl::StrCat(
      "client ", number(), " ends ", static_cast<int>(p.type), " of key ", p.key, ": ",
      static_cast<int>(result.outcome), result.found ? "+" : "-", " ", result.info.flags, " ",
      result.info.value_bytes, ", lock word ", result.lock_word,
      // A server alone begins with the machine's clock.
      IsGroup(options_.endpoint) ? absl::StrCat(", version ", result.info.version) : ""));
  p.operation.respond_ns = run_->Tick();
  if (InHistory(p)) history_->End(p.key, Writes(p.type));
  if (IsBug(result.outcome)) {
    run_->Fail(Check::kAnswers,
               absl::StrCat("client ", number(), "'s operation ", static_cast<int>(p.type),
                            " ended with outcome ", static_cast<int>(result.outcome)));
  }
  CheckPatience(p, result.outcome);
  const bool made =
      result.outcome == Outcome::kOk && IsWrite(p.type) && (!TellsFound(p.type) || result.found);
  if (made && options_.had_copies_since && !options_.had_copies_since(p.begun_ns)) {
    run_->Fail(Check::kMinCopies,
               absl::StrCat("client ", number(), "'s operation ", static_cast<int>(p.type),
                            " of key ", p.key, ", begun at ", p.begun_ns, ", was acknowledged"));
  }
  if (p.tallied) OnTally(p, result);
  switch (p.tallied || p.in_batch ? OpType::kPing : p.type) {
    case OpType::kGet:
    case OpType::kExists:
    case OpType::kGetIfChanged:
      OnRead(p, result);
      break;
    case OpType::kPut:
    case OpType::kDelete:
      OnWrite(p, result);
      break;
    case OpType::kLock:
    case OpType::kLockAndGet:
      OnLock(p, result);
      break;
    case OpType::kUnlock:
      OnUnlock(p, result);
      break;
    default:
      break;
  }
  p.used = false;
  --pending_count_;
}

void SimulatedClient::OnRead(Pending& p, const Result& result) {
  if (result.outcome != Outcome::kOk) return;
  const ItemInfo& info = result.info;
  p.operation.found = info.version != 0;
  p.operation.value = info.version != 0 ? info.flags : linearizability::kAbsent;
  known_[p.key] = {info.version, info.version != 0 ? info.flags : 0};
  if (p.operation.found) {
    history_->CheckValue(info.flags, info.value_bytes, result.value);
    history_->AddVersion(p.key, info.version, info.flags);
    history_->CheckAlive(info.flags, p.operation.invoke_ns);
    const bool needs_none = p.type == OpType::kExists ||
                            (p.type == OpType::kGetIfChanged && p.known_version == info.version);
    if (result.whole && !needs_none && result.value.size() != info.value_bytes) {
      run_->Fail(Check::kValues,
                 absl::StrCat("a value of ", info.value_bytes, " bytes has ", result.value.size()));
    }
  }
  history_->Add(p.key, p.operation);
}

void SimulatedClient::OnWrite(Pending& p, const Result& result) {
  Operation& op = p.operation;
  const bool compares = op.kind == Kind::kCompareAndSet || op.kind == Kind::kCompareAndDelete;
  switch (result.outcome) {
    case Outcome::kOk:
      op.found = result.found;
      if (op.kind == Kind::kCompareAndDelete && !result.found) {
        op.outcome = linearizability::Outcome::kRefused;
      }
      break;
    case Outcome::kNotFound:
    case Outcome::kExists:
    case Outcome::kVersionMismatch:
      if (!compares && op.kind != Kind::kReplace)
        run_->Fail(Check::kAnswers, "a condition that nobody asked for");
      op.outcome = linearizability::Outcome::kRefused;
      known_.erase(p.key);
      break;
    case Outcome::kUnknown:
    case Outcome::kFewCopies:
    case Outcome::kDeadlineExceeded:
      op.outcome = linearizability::Outcome::kUnknown;
      break;
    default:
      return;  // not applied
  }
  history_->Add(p.key, op);
  if (op.outcome == linearizability::Outcome::kRefused) return;
  AddExpiry(p);
  if (op.outcome != linearizability::Outcome::kDone) return;
  if (p.under_lock) history_->AddHeldUntil(p.acquisition, op.invoke_ns);
  if (p.ttl_ms > 0) {
    const uint64_t late_ms = options_.loose_expiry ? 100 : 1;
    history_->AddDeath(
        static_cast<uint32_t>(op.value),
        op.respond_ns + Run::TickOf(static_cast<int64_t>(p.ttl_ms + late_ms) * kNsPerMs));
  }
  if (p.type == OpType::kDelete) {
    known_[p.key] = {};
    return;
  }
  known_[p.key] = {result.info.version, static_cast<uint32_t>(op.value)};
  history_->AddApplied(number(), p.key, p.number, result.info.version,
                       static_cast<uint32_t>(op.value));
}

void SimulatedClient::OnLock(Pending& p, const Result& result) {
  if (result.outcome != Outcome::kOk || !result.found) return;
  const size_t acquisition = history_->AddAcquired(p.key, number(), result.lock_word,
                                                   p.operation.invoke_ns, p.operation.respond_ns);
  const std::string server = ServerName(result.server);
  if (LockWord(result.lock_word).connection_id() == connections_[server].id) {
    Held held{.word = result.lock_word, .acquisition = acquisition, .server = server};
    if (p.ttl_ms > 0) {
      const auto lease_ns = static_cast<int64_t>(p.ttl_ms) * kNsPerMs;
      held.lease_end_ns = run_->now_ns() + lease_ns;
    }
    held_.emplace(p.key, held);
  }
  if (p.type == OpType::kLockAndGet) OnRead(p, result);
}

void SimulatedClient::OnUnlock(Pending& p, const Result& result) {
  if (result.outcome == Outcome::kOk) history_->AddHeldUntil(p.acquisition, p.operation.invoke_ns);
}

void SimulatedClient::OnTally(Pending& p, const Result& result) {
  const bool maybe = result.outcome == Outcome::kUnknown || result.outcome == Outcome::kFewCopies ||
                     result.outcome == Outcome::kDeadlineExceeded;
  Tallies& tallies = history_->tallies();
  if (p.type == OpType::kIncr && maybe) tallies.AddUncertain();
  if (result.outcome != Outcome::kOk) return;
  const int64_t from = p.operation.invoke_ns;
  const int64_t to = p.operation.respond_ns;
  if (p.type == OpType::kIncr) {
    tallies.AddCounted(result.number, result.info.version, from, to);
  } else if (p.type == OpType::kAppend) {
    tallies.AddAppended(p.value, from, to);
  } else if (p.type != OpType::kDelete) {
    tallies.AddRead(result.found ? result.value : std::string_view(), from, to);
  }
}

bool SimulatedClient::Holds(uint64_t word) const {
  return std::any_of(held_.begin(), held_.end(), [&](const auto& held) {
    return held.second.word == word && run_->now_ns() < held.second.lease_end_ns;
  });
}

void SimulatedClient::Break() {
  run_->Note(absl::StrCat("client ", number(), " breaks its connection"));
  health_.Excuse(run_->now_ns());
  engine_->servers().Break(0, absl::UnavailableError("broken by the simulation"));
}

}  // namespace gannet::simulation
