#include "proxy/jobs/transaction.h"

#include "proxy/jobs/job.h"

namespace gannet::proxy {
namespace {

using Kind = Operation::Kind;

bool IsWrite(Kind kind) {
  switch (kind) {
    case Kind::kGet:
    case Kind::kGetAndTouch:
    case Kind::kStats:
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

void Watches::Add(std::string_view key) {
  if (Find(key) == nullptr) all_.push_back({.key = std::string(key)});
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
  if (!IsWrite(operation.kind)) {
    const bool changes = operation.kind == Kind::kFlush || operation.kind == Kind::kGetAndTouch;
    applied_ = applied_ || (changes && operation.code == absl::StatusCode::kOk);
    return;
  }
  Watches::Watch* watch = watches_ == nullptr ? nullptr : watches_->Find(operation.key);
  if (operation.code == absl::StatusCode::kOk) {
    applied_ = true;
    if (watch != nullptr) watch->written = true;
  } else if (operation.code == absl::StatusCode::kFailedPrecondition && watch != nullptr &&
             !watch->written && operation.info.version != watch->version) {
    conflict_ = true;
  }
}

}  // namespace gannet::proxy
