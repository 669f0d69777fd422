#include "proxy/jobs/job.h"

#include <unordered_set>

#include "proxy/jobs/scripts.h"

namespace gannet::proxy {
namespace {

constexpr size_t kKeptBytesMax = 64 << 10;
constexpr size_t kKeptOperationsMax = 16;
constexpr size_t kSmallMax = 4 << 10;

void TrimText(std::string* text, size_t kept_max) {
  if (text->capacity() > kept_max) std::string().swap(*text);
}

}  // namespace

Job::Job() = default;
Job::~Job() = default;

void Job::Reset(std::string_view bytes, const ParsedCommand& from) {
  bytes_.assign(bytes);
  const auto moved = [&](std::string_view view) {
    if (view.empty()) return std::string_view();
    return std::string_view(bytes_).substr(static_cast<size_t>(view.data() - bytes.data()),
                                           view.size());
  };
  command_.words.clear();
  for (const std::string_view word : from.words) command_.words.push_back(moved(word));
  command_.data = moved(from.data);
  command_.has_data = from.has_data;
  Clear();
}

void Job::Reset(std::string&& bytes, const ParsedCommand& from) {
  // A string this long does not move its characters.
  bytes_ = std::move(bytes);
  command_ = from;
  Clear();
}

void Job::Clear() {
  ReleaseCharges();
  holder = nullptr;
  owner = nullptr;
  client = nullptr;
  next = nullptr;
  access = Access::kNothing;
  keys.clear();
  kept_keys_.clear();
  silent = false;
  reply.clear();
  scratch = {};
  parent = nullptr;
  guard = nullptr;
  execution.reset();
  script.reset();
  waiting = 0;
  finished = false;
  value_bytes = 0;
  key_hashes.clear();
  used_ = 0;
  next_key_ = 0;
  tries_ = 0;
}

void Job::ReleaseCharges() {
  charge.Set(0);
  for (Operation& operation : operations_) operation.charge.Set(0);
}

void Job::ChargeReply() {
  charge.Set(bytes_.capacity() + reply.capacity());
  for (Operation& operation : operations_) operation.charge.ReduceTo(operation.out.capacity());
}

void Job::KeepOnlyReply() {
  TrimText(&bytes_, kSmallMax);
  TrimText(&scratch.value, kSmallMax);
  TrimText(&scratch.old_value, kSmallMax);
  kept_keys_.clear();
  for (Operation& operation : operations_) {
    TrimText(&operation.out, kSmallMax);
    operation.charge.Set(0);
  }
  execution.reset();
  script.reset();
  charge.Set(reply.capacity());
}

void Job::Orphan(Holder* orphans) {
  owner = nullptr;
  holder = orphans;
  charge.MoveTo(orphans);
  for (Operation& operation : operations_) operation.charge.MoveTo(orphans);
  if (script != nullptr) script->charge.MoveTo(orphans);
  if (execution == nullptr) return;
  execution->charge.MoveTo(orphans);
  execution->part.Orphan(orphans);
}

void Job::Trim(bool keep_one) {
  ReleaseCharges();
  const size_t one_max = keep_one ? kKeptBytesMax : kSmallMax;
  TrimText(&scratch.value, kSmallMax);
  TrimText(&scratch.old_value, kSmallMax);
  kept_keys_.clear();
  TrimText(&bytes_, one_max);
  TrimText(&reply, one_max);
  execution.reset();
  script.reset();
  if (operations_.size() > kKeptOperationsMax) operations_.resize(kKeptOperationsMax);
  size_t kept_max = one_max;  // for the first one; the others are rare
  for (Operation& operation : operations_) {
    TrimText(&operation.out, std::exchange(kept_max, kSmallMax));
  }
  if (keys.size() > kKeptOperationsMax) {
    std::vector<std::string_view>().swap(keys);
    std::vector<uint64_t>().swap(key_hashes);
  }
  if (command_.words.size() > kKeptOperationsMax) {
    std::vector<std::string_view>().swap(command_.words);
  }
}

// Keeps the buffers of operations that are not used any more. A reference to an operation is valid
// until the next Begin of the same stage, which may move all of them.
Operation& Job::Begin(Operation::Kind kind, std::string_view key) {
  if (!began) used_ = 0;
  began = true;
  if (used_ == operations_.size()) operations_.emplace_back();
  Operation& operation = operations_[used_++];
  std::string out = std::move(operation.out);
  Charge charge = operation.charge.bytes() > 0 ? std::move(operation.charge) : Charge(holder);
  operation = Operation();
  operation.out = std::move(out);
  operation.charge = std::move(charge);
  operation.job = this;
  operation.kind = kind;
  operation.key = key;
  return operation;
}

void Job::DropEqualKeys() {
  if (guard == nullptr || keys.size() == 1) return;
  std::unordered_set<std::string_view> seen;
  for (size_t i = keys.size(); i > 0; --i) {
    if (!seen.insert(keys[i - 1]).second) keys[i - 1] = {};
  }
}

void Job::BeginOnEach(Operation::Kind kind) {
  const bool listed = kind == Operation::Kind::kWalk;
  const auto count = listed ? static_cast<uint32_t>(service->servers.size()) : servers;
  for (uint32_t server = 0; server < count; ++server) {
    Begin(kind, {}).server = server;
  }
}

}  // namespace gannet::proxy
