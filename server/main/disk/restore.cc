#include "server/main/disk/restore.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gannet {
namespace {

// How often the index may have to grow for one change.
constexpr int kTriesMax = 8;
// Steps of a growth. It does not end while homes find no room in the larger index.
constexpr int kStepsMax = 1'000;

}  // namespace

ReplyStatus RestoreChange(Store* store, const Change& change, ServerTime now) {
  // The store may record the change anew. The session that asked for it is over by now, so the new
  // record does not name it.
  Change again = change;
  again.SetOrigin(nullptr);
  again.number = 0;
  ReplyStatus status = ReplyStatus::kTryAgain;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    status = store->Apply(again, now);
    if (status != ReplyStatus::kTryAgain && status != ReplyStatus::kIndexFull) break;
    store->Tidy(now);
    for (int i = 0; i < kStepsMax && store->growing(); ++i) store->Tidy(now);
  }
  return status;
}

Restorer::Restorer(Store* store, std::string path, ServerTime now)
    : store_(store), path_(std::move(path)), now_(now) {
  if (store_->evicts()) store_->UseSink(this);
}

Restorer::~Restorer() { store_->UseSink(nullptr); }

absl::Status Restorer::Apply(const Change& change) {
  version_max_ = std::max(version_max_, change.version);
  const ReplyStatus status = RestoreChange(store_, change, now_);
  if (change.kind == Change::Kind::kDelete) evicted_.erase(std::string(change.key));
  if (status == ReplyStatus::kOk) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the items in ", path_, " do not fit into the memory: start with more --memory",
                   status == ReplyStatus::kHeapFull ? "" : " or --index_slots"));
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
