#include "proxy/jobs/transaction.h"

#include "proxy/jobs/job.h"

namespace gannet::proxy {
namespace {

using Kind = Operation::Kind;

bool IsWrite(Kind kind) {
  switch (kind) {
    case Kind::kGet:
    case Kind::kStats:
    case Kind::kWalk:
    case Kind::kMemory:
    case Kind::kTurn:
    case Kind::kFlush:
      return false;
    default:
      return true;
  }
}

}  // namespace

Watches::Watch* Watches::Find(std::string_view key) {
  for (Watch& watch : all_) {
    if (watch.key == key) return &watch;
  }
  return nullptr;
}

size_t Watches::Add(std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (Find(key) == nullptr) all_.push_back({.key = std::string(key)});
  }
  size_t bytes = 0;
  for (const Watch& watch : all_) bytes += sizeof(Watch) + watch.key.capacity();
  return bytes;
}

void TransactionGuard::BeforeStart(Operation& operation) {
  if (watches_ == nullptr || !IsWrite(operation.kind)) return;
  const Watches::Watch* watch = watches_->Find(operation.key);
  if (watch == nullptr || watch->written) return;
  // The store takes only one of the two conditions. If there was no item, they are the same.
  if (operation.put.only_if_absent && watch->version != 0) return;
  operation.put.only_if_absent = false;
  operation.put.only_if_version = watch->version;
}

void TransactionGuard::OnAnswer(const Operation& operation) {
  const bool is_done = operation.code == absl::StatusCode::kOk;
  if (operation.kind == Kind::kFlush) return OnFlush(is_done);
  if (!IsWrite(operation.kind)) return;
  Watches::Watch* watch = watches_ == nullptr ? nullptr : watches_->Find(operation.key);
  if (is_done) {
    applied_ = true;
    if (watch != nullptr) watch->written = true;
  } else if (operation.code == absl::StatusCode::kFailedPrecondition && watch != nullptr &&
             !watch->written && operation.info.version != watch->version) {
    conflict_ = true;
  }
}

// Nobody else's write is taken for the flush's: after it, the watched items are absent. If it has
// failed, it is unknown which of them are.
void TransactionGuard::OnFlush(bool is_done) {
  applied_ = true;
  if (watches_ == nullptr) return;
  for (Watches::Watch& watch : watches_->all()) {
    watch.version = 0;
    watch.written = watch.written || !is_done;
  }
}

}  // namespace gannet::proxy
