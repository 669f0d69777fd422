#include "proxy/jobs/store_queue.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <span>
#include <string>

namespace gannet::proxy {
namespace {

using Kind = Operation::Kind;

// Longer values are asked for a second time, once their length is known.
constexpr size_t kRoomMax = 64 << 10;
// Of the values that one command asks for. More would fill the memory.
constexpr size_t kValueBytesOfJobMax = 256 << 20;
constexpr std::chrono::milliseconds kDeadline{1'000};
// A million items take about a second.
constexpr std::chrono::milliseconds kFlushDeadline{60'000};

ChangeOptions ToChange(const PutOptions& put) {
  return {.flags = put.flags,
          .ttl = put.ttl,
          .only_if_present = put.only_if_present,
          .only_if_version = put.only_if_version};
}

IncrOptions ToIncr(const PutOptions& put) {
  return {.flags = put.flags, .ttl = put.ttl, .only_if_present = put.only_if_present};
}

}  // namespace

void StoreQueue::Run(Job& job) {
  while (job.waiting == 0) {
    if (job.next == nullptr) {
      job.finished = true;
      return;
    }
    const Job::Stage stage = job.next;
    job.next = nullptr;
    job.began = false;
    stage(job);
    if (!job.began) continue;
    const std::span<Operation> operations = job.answers();
    job.waiting = static_cast<uint32_t>(operations.size());
    for (Operation& operation : operations) {
      // Behind those that wait, so that the writes of a key keep their order.
      if (!waiting_.empty() || !Start(operation)) waiting_.push_back(&operation);
    }
  }
}

bool StoreQueue::Start(Operation& operation) {
  const absl::Status status = Begin(operation);
  if (absl::IsResourceExhausted(status)) return false;
  has_begun_ = true;
  if (!status.ok()) {
    operation.code = status.code();
    operation.refusal = std::string(status.message());
    --operation.job->waiting;
  }
  return true;
}

absl::Status StoreQueue::Begin(Operation& operation) {
  const auto id = reinterpret_cast<uint64_t>(&operation);
  switch (operation.kind) {
    case Kind::kGet:
    case Kind::kGetAndTouch: {
      if (operation.wants_value && operation.out.size() < room_) operation.out.resize(room_);
      const std::span<std::byte> out = operation.wants_value
                                           ? std::as_writable_bytes(std::span(operation.out))
                                           : std::span<std::byte>();
      return operation.kind == Kind::kGet
                 ? client_.Get(operation.key, out, id)
                 : client_.GetAndTouch(operation.key, operation.put.ttl, out, id);
    }
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
  std::array<Completion, 64> done;
  const size_t n = client_.Poll(done);
  for (size_t i = 0; i < n; ++i) OnDone(done[i], finished);
  while (!waiting_.empty()) {
    Operation& operation = *waiting_.front();
    if (!Start(operation)) break;
    waiting_.pop_front();
    if (operation.job->waiting > 0) continue;
    // It was not valid, and the last one of its job.
    Run(*operation.job);
    if (operation.job->finished) finished->push_back(operation.job);
  }
}

void StoreQueue::OnDone(const Completion& done, std::vector<Job*>* finished) {
  Operation& operation = *reinterpret_cast<Operation*>(done.user_data);
  operation.code = done.code;
  operation.found = done.found;
  operation.info = done.info;
  operation.number = done.number();
  if (GetAgain(operation)) return;
  End(operation, finished);
}

bool StoreQueue::GetAgain(Operation& operation) {
  const bool is_get = operation.kind == Kind::kGet || operation.kind == Kind::kGetAndTouch;
  if (!is_get || !operation.wants_value || !operation.found ||
      operation.code != absl::StatusCode::kOk) {
    return false;
  }
  Job& job = *operation.job;
  const size_t bytes = operation.info.value_bytes;
  room_ = std::max(room_, std::min(std::bit_ceil(bytes), kRoomMax));
  job.value_bytes += bytes;
  if (job.value_bytes > kValueBytesOfJobMax) {
    operation.code = absl::StatusCode::kOutOfRange;
    return false;
  }
  if (bytes <= operation.out.size()) return false;
  job.value_bytes -= bytes;
  operation.out.resize(bytes);
  operation.kind = Kind::kGet;  // what it had to touch, it touched
  if (!waiting_.empty() || !Start(operation)) waiting_.push_back(&operation);
  return true;
}

void StoreQueue::End(Operation& operation, std::vector<Job*>* finished) {
  Job& job = *operation.job;
  if (--job.waiting > 0) return;
  Run(job);
  if (job.finished) finished->push_back(&job);
}

}  // namespace gannet::proxy
