#include "proxy/jobs/job.h"

namespace gannet::proxy {
namespace {

constexpr size_t kKeptBytesMax = 64 << 10;
constexpr size_t kKeptOperationsMax = 16;

void TrimText(std::string* text) {
  if (text->capacity() > kKeptBytesMax) std::string().swap(*text);
}

}  // namespace

void Job::Reset(std::string_view bytes, const Command& from) {
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
  owner = nullptr;
  client = nullptr;
  next = nullptr;
  access = Access::kNothing;
  keys.clear();
  silent = false;
  reply.clear();
  scratch = {};
  waiting = 0;
  finished = false;
  value_bytes = 0;
  key_hashes.clear();
  used_ = 0;
  tries_ = 0;
}

void Job::Trim() {
  TrimText(&bytes_);
  TrimText(&reply);
  if (operations_.size() > kKeptOperationsMax) operations_.resize(kKeptOperationsMax);
  for (Operation& operation : operations_) TrimText(&operation.out);
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
  operation = Operation();
  operation.out = std::move(out);
  operation.job = this;
  operation.kind = kind;
  operation.key = key;
  return operation;
}

void Job::BeginOnEach(Operation::Kind kind) {
  for (uint32_t server = 0; server < service->servers.size(); ++server) {
    Begin(kind, {}).server = server;
  }
}

}  // namespace gannet::proxy
