#include "server/group/cluster/etcd_upkeep.h"

#include <utility>

#include "absl/strings/match.h"
#include "common/base/clock.h"
#include "glog/logging.h"

namespace gannet {
namespace {

constexpr int64_t kWishPauseNs = kNsPerSecond;      // between two tries to delete it
constexpr int64_t kLifePauseNs = kNsPerSecond / 4;  // between two tries to tell it

}  // namespace

std::optional<std::string> SuccessorWish::Wanted() const {
  const std::optional<GroupView::Wish>& wish = view_.wish();
  if (!wish || wish->mod_revision == forgotten_) return std::nullopt;
  return wish->handover;
}

void SuccessorWish::Forget() {
  if (!Wanted()) return;
  forgotten_ = view_.wish()->mod_revision;
  deleted_at_.reset();
  Poll();
}

void SuccessorWish::Poll() {
  if (!view_.wish() || view_.wish()->mod_revision != forgotten_) return;
  const int64_t now = etcd_.NowNs();
  if (deleted_at_ && now - *deleted_at_ < kWishPauseNs) return;
  deleted_at_ = now;
  const std::string key = WishKey(cluster_, view_.group());
  etcd_.Txn({.compares = {{.key = key, .mod_revision = forgotten_}}, .deletes = {key}},
            [](const EtcdTxnResult&) {});
}

void LifeNote::Poll(const Own& own) {
  const GroupView::Life* const there = view_.FindLife(node_);
  const bool is_own = there != nullptr && there->info.incarnation == own.incarnation;
  const bool founded = view_.state().now.configuration.epoch > 0;
  if (!view_.lost() && (there == nullptr || !founded)) return;
  const NodeLife wanted = {.incarnation = own.incarnation,
                           .group = view_.group(),
                           .known = ConfigOf(view_.state().terms, view_.state().now.configuration),
                           .map = view_.map().config,
                           .policy = view_.policy(),
                           .leads = own.leads,
                           .applied = own.applied};
  if (view_.lost() && is_own && there->info == wanted) return;
  const int64_t now = etcd_.NowNs();
  if (told_at_ && now - *told_at_ < kLifePauseNs) return;
  auto standing = announcement_.Standing();
  if (!standing || (view_.lost() && !Check(wanted).ok())) return;
  told_at_ = now;
  EtcdTxn txn = {
      .compares = {*std::move(standing),
                   {.key = key_, .mod_revision = there == nullptr ? 0 : there->mod_revision}}};
  if (view_.lost()) {
    txn.puts = {{key_, Encode(wanted)}};
  } else {
    txn.deletes = {key_};
  }
  etcd_.Txn(txn, [](const EtcdTxnResult&) {});
}

// Other groups' primaries compact, too, and may have been here first: then etcd refuses.
void EtcdCompaction::Poll(bool leads) {
  const int64_t now = etcd_.NowNs();
  if (every_ms_ == 0 || !leads || now < next_at_) return;
  next_at_ = now + every_ms_ * kNsPerMs;
  const int64_t revision = std::exchange(next_to_, view_.watched());
  if (revision <= done_) return;
  etcd_.Compact(revision, [this, revision](const absl::Status& status) {
    if (status.ok()) {
      done_ = revision;
    } else if (!absl::StrContains(status.message(), "compacted")) {
      LOG(WARNING) << "cannot compact etcd (--etcd_compact): " << status.message();
    }
  });
}

}  // namespace gannet
