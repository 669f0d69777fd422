#include "proxy/jobs/store_queue.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <span>
#include <string>
#include <utility>

namespace gannet::proxy {
namespace {

using Kind = Operation::Kind;

// The most room that a Get has at first. A longer value is asked for again, once its length is
// known.
constexpr size_t kRoomMax = 64 << 10;
// The most bytes of values that one command may ask for. More would fill the memory.
constexpr size_t kValueBytesOfJobMax = 256 << 20;
// The deadline of operations. It is long, because applications have timeouts of their own, and an
// error tells them less than a late answer. If threads wait for cores, one in a thousand writes of
// a proxy's thread waits for seconds: each turn on a core sends only as many as there are credits.
// So the deadline is for a server that hangs in a way that its heartbeats do not show. A silent
// server is an error much sooner.
constexpr std::chrono::milliseconds kDeadline{30'000};
// A million items take about a second.
constexpr std::chrono::milliseconds kFlushDeadline{60'000};

ChangeOptions ToChange(const PutOptions& put) {
  return {.flags = put.flags,
          .ttl = put.ttl,
          .only_if_present = put.only_if_present,
          .only_if_version = put.only_if_version};
}

IncrOptions ToIncr(const PutOptions& put) {
  return {.flags = put.flags,
          .ttl = put.ttl,
          .only_if_present = put.only_if_present,
          .only_if_version = put.only_if_version};
}

bool IsGet(Kind kind) { return kind == Kind::kGet || kind == Kind::kGetAndTouch; }
bool TakesRoom(Kind kind) { return IsGet(kind) || kind == Kind::kWalk; }

const Job& WholeOf(const Operation& operation) {
  const Job& job = *operation.job;
  return job.parent != nullptr ? *job.parent : job;
}

// The other codes are answers: a condition did not hold, or a value is too long.
void CountFailure(absl::StatusCode code, Counters* counters) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
      return counters->store_unreachable.Add();
    case absl::StatusCode::kDeadlineExceeded:
      return counters->store_late.Add();
    case absl::StatusCode::kUnknown:
      return counters->store_lost.Add();
    case absl::StatusCode::kResourceExhausted:
      return counters->store_full.Add();
    case absl::StatusCode::kPermissionDenied:
      return counters->store_denied.Add();
    default:
      return;
  }
}

}  // namespace

StoreQueue::StoreQueue(AsyncClient& client, Walks& walks, WalkInbox& inbox)
    : client_(client), walks_(walks), inbox_(inbox) {
  client_.set_deadline(kDeadline);
}

void StoreQueue::Run(Job& job) {
  while (job.waiting == 0) {
    if (job.next == nullptr) {
      job.finished = true;
      EndTurns(job);
      return;
    }
    const Job::Stage stage = job.next;
    job.next = nullptr;
    job.began = false;
    job.servers = client_.server_count();
    stage(job);
    if (Job* part = job.TakePart()) {
      job.waiting = 1;
      Run(*part);
      if (part->finished) job.waiting = 0;
      continue;
    }
    if (!job.began) continue;
    const std::span<Operation> operations = job.answers();
    job.waiting = static_cast<uint32_t>(operations.size());
    for (Operation& operation : operations) {
      // It goes behind those that wait, so that the writes of a key keep their order.
      if (!waiting_.empty() || !Start(operation)) waiting_.push_back(&operation);
    }
  }
}

// A Get whose value's length is not known takes a short buffer if there is no memory for one that
// most values fit into.
size_t StoreQueue::RoomFor(const Operation& operation) const {
  if (operation.room > 0) return operation.room;
  const Holder* holder = operation.job->holder;
  return holder == nullptr || holder->Fits(2 * room_) ? room_ : kRoomMin;
}

// A buffer counts, and the same number of bytes for the reply.
size_t StoreQueue::Wanted(const Operation& operation, size_t room) {
  return operation.brings + (operation.wants_value && TakesRoom(operation.kind) ? 2 * room : 0);
}

bool StoreQueue::TakeMemory(Operation& operation) {
  Job& job = *operation.job;
  const size_t room = RoomFor(operation);
  const size_t wanted = Wanted(operation, room);
  if (job.holder != nullptr && wanted > operation.charge.bytes()) {
    const size_t more = wanted - operation.charge.bytes();
    const Job* whole = &WholeOf(operation);
    Holder& holder = *job.holder;
    // Nobody waits for a job without a connection, and it may hold what others wait for. So it ends
    // if there is no memory. A transaction goes on as long as there is memory.
    const bool waits = whole->owner != nullptr;
    // Jobs of other connections may wait for a turn of this job.
    const bool may_park = waits && job.turns.empty();
    if (may_park && wanted <= holder.most() && !holder.JobFits(whole, more)) {
      holder.parked.push_back(&operation);
      return false;
    }
    const bool fits = holder.Fits(more);
    if (wanted > holder.most() ||
        (!waits && (!fits || (job.parent == nullptr && operation.room > 0)))) {
      operation.code = absl::StatusCode::kResourceExhausted;
      operation.refusal = "the command needs more memory than --buffers allows";
      --job.waiting;
      return false;
    }
    if (!fits) {
      short_.push_back(&operation);
      return false;
    }
    operation.charge.Set(wanted);
  }
  if (IsGet(operation.kind) && operation.wants_value && operation.out.size() < room) {
    operation.out.resize(room);
  }
  return true;
}

void StoreQueue::Settle(Operation& operation) {
  const size_t bytes = operation.found ? operation.info.value_bytes : 0;
  // Short values must not keep long buffers if the command asks for many.
  constexpr size_t kManyOperations = 16;
  if (operation.job->answers().size() > kManyOperations && operation.out.size() > kRoomMin &&
      2 * bytes <= operation.out.size()) {
    operation.out = std::string(operation.out, 0, bytes);
  }
  operation.charge.ReduceTo(operation.out.size() + bytes + operation.brings);
}

void StoreQueue::StartOrWait(Operation& operation) {
  if (!waiting_.empty() || !Start(operation)) waiting_.push_back(&operation);
  Job& job = *operation.job;
  if (job.waiting > 0) return;
  GoOn(job, &ended_);
  has_begun_ = true;  // Poll is to be called
}

void StoreQueue::Unpark(Holder& holder) {
  for (size_t n = holder.parked.size(); n > 0; --n) {
    Operation& operation = *holder.parked.front();
    holder.parked.pop_front();
    StartOrWait(operation);
  }
}

void StoreQueue::Abandon(Holder& holder) {
  Unpark(holder);
  for (Operation* operation : std::exchange(short_, {})) {
    if (WholeOf(*operation).owner != nullptr) {
      short_.push_back(operation);
    } else {
      StartOrWait(*operation);
    }
  }
}

bool StoreQueue::IsShortFor(const Holder& holder) const {
  return std::any_of(short_.begin(), short_.end(),
                     [&](const Operation* operation) { return operation->job->holder != &holder; });
}

// Long ones are granted in their order. Short ones overtake long ones that still wait.
void StoreQueue::GrantShort() {
  bool long_waits = false;
  for (size_t n = short_.size(); n > 0; --n) {
    Operation& operation = *short_.front();
    short_.pop_front();
    const bool is_long = Wanted(operation, RoomFor(operation)) > Memory::kSmallMax;
    if (!(is_long && long_waits)) {
      StartOrWait(operation);
      if (short_.empty() || short_.back() != &operation) {
        ++grants_;
        continue;
      }
      short_.pop_back();
    }
    long_waits = long_waits || is_long;
    short_.push_back(&operation);
  }
}

void StoreQueue::TakeTurn(Operation& operation) {
  const auto turn = static_cast<uint64_t>(operation.delta);
  const auto [taken, is_new] = turns_.try_emplace(turn);
  if (!is_new) return taken->second.push_back(&operation);
  operation.job->turns.push_back(turn);
  --operation.job->waiting;
}

// Whoever gets a turn goes on with the next Poll.
void StoreQueue::EndTurns(Job& job) {
  for (const uint64_t turn : std::exchange(job.turns, {})) {
    const auto taken = turns_.find(turn);
    if (taken->second.empty()) {
      turns_.erase(taken);
      continue;
    }
    Operation* const next = taken->second.front();
    taken->second.pop_front();
    next->job->turns.push_back(turn);
    turned_.push_back(next);
    has_begun_ = true;
  }
}

bool StoreQueue::Start(Operation& operation) {
  if (!TakeMemory(operation)) return true;
  if (operation.kind == Kind::kTurn) return TakeTurn(operation), true;
  const absl::Status status = Begin(operation);
  if (absl::IsResourceExhausted(status)) return false;
  has_begun_ = true;
  if (!status.ok()) {
    operation.code = status.code();
    operation.refusal = std::string(status.message());
  }
  if (!status.ok() || operation.kind == Kind::kMemory) --operation.job->waiting;
  return true;
}

absl::Status StoreQueue::Begin(Operation& operation) {
  const auto id = reinterpret_cast<uint64_t>(&operation);
  if (operation.job->guard != nullptr) operation.job->guard->BeforeStart(operation);
  switch (operation.kind) {
    case Kind::kGet:
      // A Get would READ a long value whole, whatever room it has.
      if (!operation.wants_value) return client_.Exists(operation.key, id);
      [[fallthrough]];
    case Kind::kGetAndTouch: {
      const std::span<std::byte> out = operation.wants_value
                                           ? std::as_writable_bytes(std::span(operation.out))
                                           : std::span<std::byte>();
      return operation.kind == Kind::kGet
                 ? client_.Get(operation.key, out, id)
                 : client_.GetAndTouch(operation.key, operation.put.ttl, out, id);
    }
    case Kind::kMemory:
    case Kind::kTurn:
      return absl::OkStatus();
    case Kind::kWalk:
      ++walks_under_way_;
      walks_.Begin(&operation, &inbox_);
      return absl::OkStatus();
    case Kind::kStats:
      return client_.Stats(operation.server, &operation.stats, id);
    case Kind::kFlush: {
      client_.set_deadline(kFlushDeadline);
      absl::Status status = client_.Flush(operation.server, id);
      client_.set_deadline(kDeadline);
      return status;
    }
    default:
      return BeginWrite(operation, id);
  }
}

absl::Status StoreQueue::BeginWrite(Operation& operation, uint64_t id) {
  const PutOptions& put = operation.put;
  switch (operation.kind) {
    case Kind::kDelete:
      return client_.Delete(operation.key, {.only_if_version = put.only_if_version}, id);
    case Kind::kAppend:
      return client_.Append(operation.key, operation.value, ToChange(put), id);
    case Kind::kPrepend:
      return client_.Prepend(operation.key, operation.value, ToChange(put), id);
    case Kind::kIncr:
      return client_.Incr(operation.key, operation.delta, ToIncr(put), id);
    case Kind::kTouch:
      return client_.Touch(operation.key, put.ttl, {.only_if_version = put.only_if_version}, id);
    default:
      return client_.Put(operation.key, operation.value, put, id);
  }
}

void StoreQueue::Poll(std::vector<Job*>* finished) {
  has_begun_ = false;
  GrantShort();
  std::array<Completion, 64> done;
  const size_t n = client_.Poll(done);
  for (size_t i = 0; i < n; ++i) OnDone(done[i], finished);
  for (Operation* operation : std::exchange(turned_, {})) {
    --operation->job->waiting;
    GoOn(*operation->job, finished);
  }
  while (!waiting_.empty()) {
    Operation& operation = *waiting_.front();
    if (!Start(operation)) break;
    waiting_.pop_front();
    if (operation.job->waiting > 0) continue;
    // It was not valid, and it was the last one of its job.
    GoOn(*operation.job, finished);
  }
  finished->insert(finished->end(), ended_.begin(), ended_.end());
  ended_.clear();
}

void StoreQueue::OnDone(const Completion& done, std::vector<Job*>* finished) {
  Operation& operation = *reinterpret_cast<Operation*>(done.user_data);
  operation.code = done.code;
  operation.found = done.found;
  operation.info = done.info;
  operation.number = done.number();
  if (operation.job->guard != nullptr) operation.job->guard->OnAnswer(operation);
  if (GetAgain(operation)) return;
  Settle(operation);
  End(operation, finished);
}

bool StoreQueue::GetAgain(Operation& operation) {
  if (!IsGet(operation.kind) || !operation.wants_value || !operation.found ||
      operation.code != absl::StatusCode::kOk) {
    return false;
  }
  Job& job = *operation.job;
  const size_t bytes = operation.info.value_bytes;
  room_ = std::max(room_, std::min(std::bit_ceil(bytes), kRoomMax));
  job.value_bytes += bytes - std::min(bytes, operation.room);
  const size_t most = job.holder == nullptr ? kValueBytesOfJobMax : job.holder->most() / 4;
  if (job.value_bytes > std::min(most, kValueBytesOfJobMax)) {
    operation.code = absl::StatusCode::kOutOfRange;
    return false;
  }
  if (bytes <= operation.out.size()) return false;
  operation.room = bytes;
  operation.kind = Kind::kGet;  // the touch is done already
  // It asks for all that it needs anew, so that it never waits with a part of it.
  operation.out = {};
  operation.charge.Set(0);
  StartOrWait(operation);
  return true;
}

// If the keys need more room than the walk had, it is done again with more.
bool StoreQueue::WalkAgain(Operation& walk) {
  const size_t room = std::min(8 * walk.room, Operation::kWalkRoomMax);
  const Holder* holder = walk.job->holder;
  if (walk.code != absl::StatusCode::kOutOfRange || room == walk.room ||
      (holder != nullptr && 2 * room > holder->most())) {
    return false;
  }
  walk.code = absl::StatusCode::kOk;
  walk.room = room;
  walk.keys = {};
  StartOrWait(walk);
  return true;
}

void StoreQueue::TakeWalks(std::vector<Job*>* finished) {
  for (Operation* walk : inbox_.TakeAll()) {
    --walks_under_way_;
    if (!WalkAgain(*walk)) End(*walk, finished);
  }
}

void StoreQueue::End(Operation& operation, std::vector<Job*>* finished) {
  Job& job = *operation.job;
  if (operation.code != absl::StatusCode::kOk) {
    CountFailure(operation.code, job.counters);
    if (!operation.key.empty() && operation.kind != Kind::kWalk) {
      operation.server = client_.ServerOf(operation.key);
    }
  }
  if (--job.waiting == 0) GoOn(job, finished);
}

void StoreQueue::GoOn(Job& job, std::vector<Job*>* finished) {
  Run(job);
  if (!job.finished) return;
  if (job.parent == nullptr) return finished->push_back(&job);
  job.parent->waiting = 0;
  GoOn(*job.parent, finished);
}

}  // namespace gannet::proxy
