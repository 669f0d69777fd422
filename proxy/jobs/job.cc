#include "proxy/jobs/job.h"

namespace gannet::proxy {
namespace {

constexpr size_t kKeptBytesMax = 64 << 10;
constexpr size_t kKeptOperationsMax = 16;
constexpr size_t kSmallMax = 4 << 10;

void TrimText(std::string* text, size_t kept_max = kKeptBytesMax) {
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
  Charge(0);
  holder = nullptr;
  memory = nullptr;
  owner = nullptr;
  client = nullptr;
  next = nullptr;
  access = Access::kNothing;
  keys.clear();
  silent = false;
  reply.clear();
  scratch = {};
  parent = nullptr;
  guard = nullptr;
  execution.reset();
  waiting = 0;
  finished = false;
  value_bytes = 0;
  key_hashes.clear();
  used_ = 0;
  tries_ = 0;
}

void Job::Charge(size_t bytes) {
  if (bytes == charged_ || memory == nullptr) return;
  const bool more = bytes > charged_;
  const size_t change = more ? bytes - charged_ : charged_ - bytes;
  charged_ = bytes;
  if (holder != nullptr) return more ? holder->Add(change) : holder->Subtract(change);
  more ? memory->Add(change) : memory->Subtract(change);
}

void Job::KeepOnlyReply() {
  TrimText(&bytes_, kSmallMax);
  TrimText(&scratch.value, kSmallMax);
  TrimText(&scratch.old_value, kSmallMax);
  for (Operation& operation : operations_) {
    TrimText(&operation.out, kSmallMax);
    operation.charged = 0;
  }
  execution.reset();
  Charge(reply.capacity());
}

void Job::Orphan() {
  owner = nullptr;
  const size_t charged = charged_;
  Charge(0);
  holder = nullptr;
  Charge(charged);
  if (execution != nullptr) execution->part.Orphan();
}

void Job::Trim() {
  Charge(0);
  TrimText(&scratch.value, kSmallMax);
  TrimText(&scratch.old_value, kSmallMax);
  TrimText(&bytes_);
  TrimText(&reply);
  execution.reset();
  if (operations_.size() > kKeptOperationsMax) operations_.resize(kKeptOperationsMax);
  size_t kept_max = kKeptBytesMax;  // for the first one; the others are rare
  for (Operation& operation : operations_) {
    TrimText(&operation.out, std::exchange(kept_max, kSmallMax));
    operation.charged = 0;
  }
  if (keys.size() > kKeptOperationsMax) {
    std::vector<std::string_view>().swap(keys);
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
  const size_t charged = operation.charged;
  operation = Operation();
  operation.out = std::move(out);
  operation.charged = charged;
  operation.job = this;
  operation.kind = kind;
  operation.key = key;
  return operation;
}

void Job::BeginOnEach(Operation::Kind kind) {
  const bool listed = kind == Operation::Kind::kWalk;
  const auto count = listed ? static_cast<uint32_t>(service->servers.size()) : servers;
  for (uint32_t server = 0; server < count; ++server) {
    Begin(kind, {}).server = server;
  }
}

}  // namespace gannet::proxy
