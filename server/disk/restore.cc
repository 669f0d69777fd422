#include "server/disk/restore.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet {
namespace {

// The store's idle work is done so often meanwhile: above all, its index grows.
constexpr uint64_t kChangesPerTidy = 1024;

}  // namespace

Restorer::Restorer(Store* store, std::string path, uint64_t wall_ms)
    : store_(store), path_(std::move(path)), wall_ms_(wall_ms) {
  if (store_->evicts()) store_->UseSink(this);
}

Restorer::~Restorer() { store_->UseSink(nullptr); }

absl::Status Restorer::Apply(const Change& change) {
  version_max_ = std::max(version_max_, change.version);
  if (++applied_ % kChangesPerTidy == 0) {
    store_->Tidy(wall_ms_);
    while (store_->growing()) store_->Tidy(wall_ms_);
  }
  const ReplyStatus status = store_->Restore(change, wall_ms_);
  if (change.kind == Change::Kind::kDelete) evicted_.erase(std::string(change.key));
  if (status == ReplyStatus::kOk) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the items in ", path_, " do not fit into the memory: start with more --memory",
                   status == ReplyStatus::kIndexFull ? " or --index_slots" : ""));
}

bool Restorer::Record(const Change& change) {
  if (change.kind == Change::Kind::kDelete) {
    evicted_.insert(std::string(change.key));
  } else {
    evicted_.erase(std::string(change.key));
  }
  return true;
}

}  // namespace gannet
