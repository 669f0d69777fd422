#include "tools/kvload/operation_loop.h"

#include <sched.h>

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/align.h"
#include "tools/kvload/named_mix.h"

namespace gannet::kvload {
namespace {

constexpr size_t kCompletionsPerPollMax = 64;
// The thread's number is in the upper bits, so the sequences of two threads never overlap.
constexpr int kThreadShift = 48;
constexpr uint64_t kBufferAlignment = 64;

bool ReadsFirst(OpKind kind) {
  return kind == OpKind::kGet || kind == OpKind::kRmw || kind == OpKind::kRawRead ||
         kind == OpKind::kCas;
}

// Returns whether such an answer says that the store refused the operation, as it should.
bool IsRefusal(OpKind kind, absl::StatusCode code) {
  switch (kind) {
    case OpKind::kCas:
      return code == absl::StatusCode::kFailedPrecondition;
    case OpKind::kAdd:  // Redis answers NotFound
      return code == absl::StatusCode::kAlreadyExists || code == absl::StatusCode::kNotFound;
    case OpKind::kReplace:
      return code == absl::StatusCode::kNotFound;
    case OpKind::kAppend:
    case OpKind::kPrepend:
      return code == absl::StatusCode::kOutOfRange;  // the value is as long as it can be
    default:
      return false;
  }
}

// Returns whether an answer without an error tells in `found` whether the key was there.
bool TellsFound(OpKind kind) {
  return kind == OpKind::kDelete || kind == OpKind::kTouch || kind == OpKind::kGetAndTouch;
}

}  // namespace

OperationLoop::OperationLoop(const Options& options, Backend& backend, OperationSource& source,
                             const ValueMaker& values, Clock clock)
    : options_(options),
      backend_(backend),
      source_(source),
      values_(values),
      clock_(clock),
      slots_(options.depth),
      completions_(std::min<size_t>(options.depth, kCompletionsPerPollMax)),
      sequence_(uint64_t{options.thread} << kThreadShift) {
  for (uint32_t i = options.depth; i > 0; --i) free_.push_back(i - 1);
  starting_.reserve(options.depth);
  const uint64_t stride = AlignUp(options.value_bytes_max, kBufferAlignment);
  std::span<std::byte> memory = backend.Memory(options.depth * stride);
  if (memory.empty()) {
    memory_.resize(options.depth * stride);
    memory = memory_;
  }
  for (uint32_t i = 0; i < options.depth; ++i) {
    slots_[i].buffer = memory.subspan(i * stride, options.value_bytes_max);
  }
}

bool OperationLoop::Poll() {
  StartDue();
  const size_t done = backend_.Wait(completions_, PatienceNs());
  if (done > 0) {
    const int64_t now = clock_();
    NoteAnswer(now);
    for (size_t i = 0; i < done; ++i) Finish(completions_[i], now);
    // Yields before new operations start. Otherwise the pause would count as their latency.
    if (options_.shares_core && turn_.Over(now)) sched_yield();
  } else if (!backend_.lost().empty()) [[unlikely]] {
    if (!GoesOnWithoutServer()) return false;
  }
  return !source_empty_ || free_.size() < slots_.size();
}

// Between two answers of a closed loop all slots wait, so nothing was begun in that time. Time
// without a server is counted apart.
void OperationLoop::NoteAnswer(int64_t now) {
  const bool counts = last_answer_ns_ != 0 && lost_since_ns_ == 0;
  if (!counts || now - last_answer_ns_ <= metrics_.longest_stall_ns) return;
  metrics_.longest_stall_ns = now - last_answer_ns_;
}

bool OperationLoop::GoesOnWithoutServer() {
  if (lost_since_ns_ == 0) lost_since_ns_ = last_answer_ns_ == 0 ? clock_() : last_answer_ns_;
  if (options_.waits_for_server) return true;
  metrics_.lost = backend_.lost();
  return false;
}

int64_t OperationLoop::End() {
  metrics_.fail_overs = backend_.fail_overs();
  metrics_.near_cache_reads = backend_.near_cache_reads();
  metrics_.rail_works = backend_.rail_works();
  if (!metrics_.lost.empty()) return lost_since_ns_;
  const int64_t now = clock_();
  if (lost_since_ns_ != 0) metrics_.dead_ns += now - lost_since_ns_;
  return now;
}

// Returns how long Poll may wait. If all slots are taken, an operation that is due cannot start
// before an answer comes, so the due time does not limit the wait.
int64_t OperationLoop::PatienceNs() const {
  const bool waits_for_due = options_.rate != nullptr && !source_empty_ && !free_.empty();
  if (!waits_for_due) return source_empty_ && free_.size() == slots_.size() ? 0 : kPatienceNs;
  return std::clamp<int64_t>(next_due_ns_ - clock_(), 0, kPatienceNs);
}

// The source chooses keys before the clock is read, so that its work does not count as latency.
void OperationLoop::StartDue() {
  if (source_empty_ || free_.empty() || backend_.away()) return;
  const bool closed_loop = options_.rate == nullptr;
  const int64_t now = closed_loop ? 0 : clock_();
  starting_.clear();
  while (!free_.empty() && (closed_loop || next_due_ns_ <= now)) {
    const uint32_t index = free_.back();
    if (!source_.Next(slots_[index].operation)) {
      source_empty_ = true;
      break;
    }
    free_.pop_back();
    slots_[index].began_ns = next_due_ns_;
    if (!closed_loop) {
      next_due_ns_ += options_.rate->IntervalNs(next_due_ns_ - begin_ns_, options_.threads);
    }
    starting_.push_back(index);
  }
  if (starting_.empty()) return;
  const int64_t began_ns = closed_loop ? clock_() : 0;
  for (const uint32_t index : starting_) {
    if (closed_loop) slots_[index].began_ns = began_ns;
    Start(index);
  }
}

void OperationLoop::Start(uint32_t index) {
  const OpKind kind = slots_[index].operation.kind;
  const absl::Status started = ReadsFirst(kind) ? StartRead(index) : StartWrite(index);
  if (!started.ok()) Fail(index, started.code());
}

absl::Status OperationLoop::StartRead(uint32_t index) {
  Slot& slot = slots_[index];
  slot.stage = Stage::kReading;
  if (slot.operation.kind == OpKind::kRawRead) return backend_.RawRead(slot.buffer, index);
  return backend_.Get(slot.operation.key, slot.buffer, index);
}

std::string_view OperationLoop::MakeValue(Slot& slot) {
  const OpKind kind = slot.operation.kind;
  const bool counts = kind == OpKind::kIncr || kind == OpKind::kDecr;
  if (TellsFound(kind) || counts || slot.operation.value_bytes == 0) return "";
  const auto value = std::span(slot.buffer).first(slot.operation.value_bytes);
  const bool grows = kind == OpKind::kAppend || kind == OpKind::kPrepend;
  if (options_.verify && !grows) {
    values_.Make(slot.operation.key, ++sequence_, value);
  } else {
    values_.MakeUnverified(++sequence_, value);
  }
  return {reinterpret_cast<const char*>(value.data()), value.size()};
}

absl::Status OperationLoop::StartWrite(uint32_t index) {
  Slot& slot = slots_[index];
  slot.stage = Stage::kWriting;
  const OpKind kind = slot.operation.kind;
  const std::string_view value = MakeValue(slot);
  const auto ttl = slot.operation.ttl.count() > 0 ? slot.operation.ttl : options_.ttl;
  if (kind == OpKind::kPut || kind == OpKind::kInsert || kind == OpKind::kRmw) {
    return backend_.Put(slot.operation.key, value, ttl, index);
  }
  return backend_.StartChange({.kind = kind,
                               .key = slot.operation.key,
                               .value = value,
                               .ttl = ttl,
                               .version = slot.version,
                               .out = slot.buffer},
                              index);
}

void OperationLoop::Finish(const Completion& completion, int64_t now) {
  const auto index = static_cast<uint32_t>(completion.user_data);
  Slot& slot = slots_[index];
  const OpKind kind = slot.operation.kind;
  const bool writing = slot.stage == Stage::kWriting;
  const bool refused = writing && IsRefusal(kind, completion.code);
  if (completion.code != absl::StatusCode::kOk && !refused) {
    if (OwnKeys(kind)) counters_.Forget(slot.operation.key);
    Fail(index, completion.code);
    return;
  }
  errors_in_a_row_ = 0;
  last_answer_ns_ = now;
  if (lost_since_ns_ != 0) [[unlikely]] {
    metrics_.dead_ns += now - lost_since_ns_;
    lost_since_ns_ = 0;
  }
  if (slot.stage == Stage::kReading) {
    FinishRead(index, completion, now);
    return;
  }
  if (kind == OpKind::kInsert) source_.Inserted(slot.operation.record);
  if (kind == OpKind::kRmw || kind == OpKind::kCas) {
    metrics_.of(kind).verbs.AddCost(slot.first_cost);
  }
  if (kind == OpKind::kGetAndTouch) CheckRead(slot, completion);
  CheckNumber(slot, completion);
  Record(index, completion.cost, TellsFound(kind) ? completion.found : !refused, now);
  Release(index);
}

void OperationLoop::CheckNumber(const Slot& slot, const Completion& completion) {
  const OpKind kind = slot.operation.kind;
  if ((kind != OpKind::kIncr && kind != OpKind::kDecr) || !options_.verify) return;
  const int64_t delta = kind == OpKind::kIncr ? 1 : -1;
  if (counters_.IsRight(slot.operation.key, delta, completion.number(),
                        options_.counters_may_vanish)) {
    return;
  }
  metrics_.AddWrong(slot.operation.key, absl::StrCat("a counter at ", completion.number(),
                                                     ", which is not the last number and ", delta));
}

void OperationLoop::FinishRead(uint32_t index, const Completion& completion, int64_t now) {
  Slot& slot = slots_[index];
  const OpKind kind = slot.operation.kind;
  const bool right = kind == OpKind::kRawRead || CheckRead(slot, completion);
  if (kind == OpKind::kGet) CountGet(completion);
  const bool two_steps = kind == OpKind::kRmw || kind == OpKind::kCas;
  slot.version = completion.info.version;
  const bool writes_next =
      two_steps ? right && completion.found : slot.operation.put_on_miss && !completion.found;
  if (two_steps && writes_next) {
    slot.first_cost = completion.cost;  // recorded as one operation with its PUT
  } else {
    Record(index, completion.cost, completion.found || kind == OpKind::kRawRead, now);
  }
  if (!writes_next) {
    Release(index);
    return;
  }
  if (kind == OpKind::kGet) {
    slot.operation.kind = OpKind::kPut;
    slot.began_ns = now;
  }
  const absl::Status started = StartWrite(index);
  if (!started.ok()) Fail(index, started.code());
}

bool OperationLoop::CheckRead(const Slot& slot, const Completion& completion) {
  if (!completion.found) {
    if (options_.misses_are_wrong) metrics_.AddWrong(slot.operation.key, "not found");
    return !options_.misses_are_wrong;
  }
  if (!options_.verify) return true;
  const uint32_t size = completion.info.value_bytes;
  if (size > slot.buffer.size()) {
    metrics_.AddWrong(slot.operation.key,
                      absl::StrCat("a value of ", size, " bytes, larger than any in this run"));
    return false;
  }
  const auto verdict = VerifyValue(slot.operation.key, std::span(slot.buffer).first(size));
  if (verdict != ValueVerdict::kRight) metrics_.AddWrong(slot.operation.key, Describe(verdict));
  return verdict == ValueVerdict::kRight;
}

void OperationLoop::CountGet(const Completion& completion) {
  VerbSums& sums = !completion.found                      ? metrics_.get_miss
                   : completion.cost.from_near_cache      ? metrics_.get_near
                   : completion.cost.from_cached_location ? metrics_.get_warm
                                                          : metrics_.get_cold;
  ++sums.operations;
  sums.AddCost(completion.cost);
}

void OperationLoop::Record(uint32_t index, const OpCost& cost, bool found, int64_t now) {
  const Slot& slot = slots_[index];
  OpSums& sums = metrics_.of(slot.operation.kind);
  sums.latency_ns.Record(static_cast<uint64_t>(std::max<int64_t>(0, now - slot.began_ns)));
  sums.not_found += found ? 0 : 1;
  ++sums.verbs.operations;
  sums.verbs.AddCost(cost);
}

void OperationLoop::Fail(uint32_t index, absl::StatusCode code) {
  ++metrics_.of(slots_[index].operation.kind).errors;
  ++metrics_.errors_by_code[code];
  if (++errors_in_a_row_ >= kErrorsInARowMax) {
    metrics_.gave_up = true;
    source_empty_ = true;
  }
  Release(index);
}

void OperationLoop::Release(uint32_t index) {
  free_.push_back(index);
  ++finished_;
}

}  // namespace gannet::kvload
